"""The engine on this machine: target and drafts loaded with llama.cpp, the speculative loop over them."""

from __future__ import annotations

import codecs
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from time import monotonic, perf_counter

from codespec.completion.forks import Forks
from codespec.completion.learnt import Calibration, ModelCosts
from codespec.completion.warm import WarmSettings, WarmTexts
from codespec.draft.compose import Combined
from codespec.draft.costs import LONGEST, RunningCosts
from codespec.draft.forced import ForcedDraft
from codespec.draft.foreign import ForeignDraft, foreign_note
from codespec.draft.learnt import Learnt, LearntStore
from codespec.draft.markers import shared_markers
from codespec.draft.model import ModelDraft
from codespec.draft.ngram import NgramDraft
from codespec.draft.profiles import Profiles, Setup, model_hash
from codespec.draft.recode import cut_alike
from codespec.grammar import Grammar, Tokenizer
from codespec.llama.context import BATCH, EXACT_CHUNK, Context
from codespec.llama.llguidance_tokenizer import tokenizer_from_vocab
from codespec.llama.model import Model
from codespec.llama.runtime import Cancellation
from codespec.models.registry import same_vocabulary, vocabulary_hash
from codespec.protocols import (
    Cancel,
    Chunk,
    CodespecError,
    Draft,
    GrammarState,
    Limits,
    Round,
    Sampling,
    Statistics,
    Target,
)
from codespec.speculative.generate import Generator

LONGEST_AUTOMATIC_CONTEXT = 8192
PREFILL_STEP_MS = 50.0
"""About how long the first step of reading a prompt takes, and so whoever comes meanwhile waits."""
LONGEST_STEP_MS = 500.0
"""The same of the last: steps get longer, because many tokens at a time are read faster."""
PREFILL_ROWS = 64
"""Tokens of a prompt that are decoded at a time at most on a CPU: more are no faster."""
SOURCES = frozenset({"forced", "ngram", "model"})

_log = logging.getLogger("codespec")


class _Any:
    def __init__(self, flags: Sequence[Cancel]) -> None:
        self._flags = flags

    def is_set(self) -> bool:
        return any(flag.is_set() for flag in self._flags)


class LocalEngine:
    """A target, its drafts and their KV caches. One generation at a time, from one thread at a time.

    Args:
        target: a GGUF file.
        context_length: in tokens; 0 is what the target was trained with, at most 8,192.
        threads: 0 chooses by the size of the model.
        draft_length: how many tokens are proposed at a time at most; 0: as many as are expected to save time.
        kv_type, flash_attention: of the target's KV cache, see ``Context``.
        exact: the same text whatever the draft, at the cost of speed: every decode has the same numerics.
        learnt_folder: where what workspaces teach is kept, instead of the user's data folder.
        wrap: called with the sequence of the target and of each draft model, and their roles (``target``, ``draft``);
            what it returns is decoded with instead. For measuring, like ``clock``, by which drafts count their time.
        progress: called with 0..1 while the target loads.
        warm: how much of what was read of documents is kept; the default keeps nothing between runs.
        profiles: what earlier runs learnt of the models and this machine; None: nothing, and nothing is kept.

    Raises:
        CodespecError: the target cannot be loaded.

    Attributes:
        learnt: what workspaces taught; ``use_learnt`` chooses of it.
        warm: what the target has read; ``enter`` says of which workspace.
        threads: that the target decodes with.
        notes: what the user should know about the drafts in use, one sentence or two each.
    """

    def __init__(
        self,
        target: Path,
        *,
        context_length: int = 0,
        threads: int = 0,
        gpu_layers: int = 0,
        draft_length: int = 0,
        exact: bool = False,
        kv_type: str = "f16",
        flash_attention: str = "auto",
        learnt_folder: Path | None = None,
        progress: Callable[[float], bool] | None = None,
        wrap: Callable[[Target, str], Target] = lambda sequence, role: sequence,
        clock: Callable[[], float] = perf_counter,
        profiles: Profiles | None = None,
        warm: WarmSettings | None = None,
    ) -> None:
        if exact and gpu_layers:
            raise CodespecError("exact decoding works on the CPU only; set gpu_layers = 0")
        self.model = Model(target, gpu_layers=gpu_layers, plain_buffers=exact, progress=progress)
        self._threads = threads
        self._wrap, self._clock = wrap, clock
        self._gpu_layers = gpu_layers
        try:
            length = context_length or min(self.model.trained_context, LONGEST_AUTOMATIC_CONTEXT)
            self._context = Context(
                self.model,
                context_length=length,
                threads=threads,
                exact=exact,
                kv_type=kv_type,
                flash_attention=flash_attention,
            )
        except CodespecError:
            self.model.close()
            raise
        self.vocabulary = self.model.vocabulary
        self.context_length = self._context.length
        self.threads = self._context.threads
        self._drafts: dict[Path, tuple[Model, Context, ModelDraft | ForeignDraft, RunningCosts]] = {}
        self._profiles = profiles or Profiles(None)
        self._model_costs: list[ModelCosts] = []
        self.costs = self._costs_of(self._context)
        self.sources = SOURCES
        self.learnt = LearntStore(vocabulary_hash(self.vocabulary), learnt_folder)
        self._calibrations: dict[Path | None, Calibration] = {}  # by draft
        self._saved = monotonic()
        self._combined: dict[tuple[str, Path | None, tuple[str, ...]], Combined] = {}
        self._forced = ForcedDraft(self.vocabulary)
        self._ngrams = NgramDraft()
        # FIM markers and the like are no text; the end tokens among the control tokens stay possible.
        self._banned = dict.fromkeys(self.vocabulary.control_tokens - self.vocabulary.end_tokens, float("-inf"))
        self._cancellation = Cancellation()
        sequence = self._sequence = self._context.sequence()
        self._forks = Forks(self._context)
        self._generator = Generator(
            wrap(sequence, "target"),
            None,
            self.vocabulary.end_tokens,
            # In exact mode a pass has one chunk's rows at most.
            min(draft_length or LONGEST - 1, EXACT_CHUNK - 1 if exact else LONGEST - 1),
            on_pass=self.costs.observe,
            steps=self._prefill_steps,
            whole_steps=self._context.whole_steps,
        )
        warm = warm or WarmSettings()
        warm = replace(warm, shift=warm.shift and not exact)
        setup = asdict(Setup.of(self._context, gpu_layers, None))
        about = {"model": model_hash(target), "shift": warm.shift, **setup}
        self.warm = WarmTexts(sequence, self._generator, warm, about)
        self.draft: Path | None = None
        self.notes: list[str] = []

    @property
    def statistics(self) -> Statistics:
        """Of the current or last generation."""
        return self._generator.statistics

    def use_draft(self, path: Path | None) -> None:
        """Draft with this model from the next generation on; None for no draft model. Loads it the first time.

        A draft with another vocabulary than the target's works at a price, which ``notes`` then names.

        Raises:
            CodespecError: it cannot be loaded; the draft stays what it was.
        """
        if path is not None and path not in self._drafts:
            self._drafts[path] = self._load_draft(path)
        self.draft = path

    def use_learnt(self, folder: Path | None, language: str, following: Sequence[int] = ()) -> Learnt:
        """Draft from the next generation on with what a workspace taught in a language, too.

        Args:
            folder: of the workspace; None: what was taught in this session outside any.
            following: tokens behind the cursor, which are no guess of what comes before them.
        """
        learnt = self.learnt.of(folder, language)
        self._ngrams.learnt = learnt.index
        self._ngrams.following = list(following)
        return learnt

    def use_nothing_learnt(self) -> None:
        """Draft from the next generation on with the text alone, until the next ``use_learnt``."""
        self._ngrams.learnt = None

    def remember(self, prompt: Sequence[int], generated: Sequence[int]) -> None:
        """Draft from now on also with what was generated behind a prompt: the next one mostly differs by a key."""
        self._ngrams.remember(prompt, generated)

    def forget_generated(self) -> None:
        """Forget what was remembered."""
        self._ngrams.forget_generated()

    def _load_draft(self, path: Path) -> tuple[Model, Context, ModelDraft | ForeignDraft, RunningCosts]:
        model = Model(path, gpu_layers=self._gpu_layers)
        try:
            if same_vocabulary(self.vocabulary, model.vocabulary):
                context = Context(model, context_length=self.context_length, threads=self._threads)
                draft = ModelDraft(self._wrap(context.sequence(), "draft"), self.vocabulary.end_tokens)
                return model, context, draft, self._costs_of(context, rows=1)
            # The same text may take more tokens than the target's; beyond its training the model would guess badly.
            length = min(self.context_length, model.trained_context)
            context = Context(model, context_length=length, threads=self._threads)
        except CodespecError:
            model.close()
            raise
        return model, context, self._foreign(model, context), RunningCosts()

    def _foreign(self, model: Model, context: Context) -> ForeignDraft:
        alike = cut_alike(model.vocabulary, self.vocabulary)
        self.note(foreign_note(model.path.name, self.model.path.name, alike))
        return ForeignDraft(
            self._wrap(context.sequence(), "draft"),
            model.vocabulary,
            self.vocabulary,
            shared_markers(model.vocabulary, self.vocabulary),
            context.length,
            alike,
        )

    def note(self, text: str) -> None:
        """Tell the user, once."""
        if text not in self.notes:
            self.notes.append(text)
            _log.warning(text)

    def grammar_state(self, grammar: Grammar) -> GrammarState:
        """The start state of a grammar over this model's vocabulary."""
        return grammar.state(self._grammar_tokenizer)

    @cached_property
    def _grammar_tokenizer(self) -> Tokenizer:
        return tokenizer_from_vocab(self.vocabulary.pointer)

    def generate(
        self,
        prompt: Sequence[int],
        grammar: GrammarState | None = None,
        sampling: Sampling | None = None,
        limits: Limits | None = None,
        cancel: Cancel | None = None,
        speculate: bool | Draft = True,
        language: str = "",
    ) -> Iterator[Chunk]:
        """Text as it comes, whole characters at a time; close the iterator to stop early.

        Args:
            prompt: token ids.
            grammar: constrains the text, starting from this state, which is advanced.
            speculate: False decodes one token at a time with the target alone; a draft takes the place of the
                engine's own.
            language: what is generated; how often drafts are right is learnt for each apart.

        Raises:
            CodespecError: the prompt is too long, or decoding failed.
        """
        sampling = self._without_markers(sampling or Sampling())
        kind = f"{language}/{'greedy' if sampling.temperature == 0 else 'sampled'}/{'grammar' if grammar else 'free'}"
        if isinstance(speculate, bool):
            self._generator.draft = self._draft_for(kind) if speculate else None
        else:
            self._generator.draft = speculate
        self._cancellation = Cancellation()
        self.warm.turn_to(prompt)
        decode = self._decoder()
        with self._cancellable(self._cancellation):
            for step in self._generator.generate(prompt, sampling, limits or Limits(), grammar, self._stopped(cancel)):
                yield decode(step)

    def generate_together(
        self,
        prompt: Sequence[int],
        grammars: Sequence[GrammarState | None],
        samplings: Sequence[Sampling],
        limits: Limits | None = None,
        cancel: Cancel | None = None,
        stopped: Collection[int] = (),
    ) -> Iterator[tuple[int, Chunk]]:
        """At most ``TOGETHER`` texts for one prompt as they come, each piece with its text's index.

        They are decoded side by side, without drafts, except in exact mode: then one after the other.

        Args:
            grammars, samplings: one for each text.
            stopped: indices of texts of which no more is wanted; may grow meanwhile.

        Raises:
            CodespecError: as ``generate``.
        """
        if self._context.exact:
            yield from self._one_by_one(prompt, grammars, samplings, limits, cancel, stopped)
            return
        samplings = [self._without_markers(each) for each in samplings]
        self._cancellation = Cancellation()
        self.warm.turn_to(prompt)
        decoders = [self._decoder() for _ in samplings]
        with self._context.cancellable(self._cancellation), self._forks.cancellable(self._cancellation):
            fork = self._forks.of(self._sequence)
            steps = self._generator.together(
                prompt, samplings, limits or Limits(), grammars, stopped, self._stopped(cancel), fork
            )
            with closing(steps):  # type: ignore[type-var]  # a generator
                for index, step in steps:
                    yield index, decoders[index](step)

    def _one_by_one(
        self,
        prompt: Sequence[int],
        grammars: Sequence[GrammarState | None],
        samplings: Sequence[Sampling],
        limits: Limits | None,
        cancel: Cancel | None,
        stopped: Collection[int],
    ) -> Iterator[tuple[int, Chunk]]:
        # Cells that one fork gives up are taken by another, which then adds up in another order.
        spent = Statistics()
        for index, (grammar, sampling) in enumerate(zip(grammars, samplings, strict=True)):
            with closing(self.generate(prompt, grammar, sampling, limits, cancel)) as chunks:  # type: ignore[type-var]
                for chunk in chunks:
                    yield index, chunk
                    if index in stopped:
                        break
            if index + 1 < len(samplings):
                spent.add(self.statistics)
        self.statistics.add(spent)

    def _without_markers(self, sampling: Sampling) -> Sampling:
        return replace(sampling, logit_bias={**self._banned, **sampling.logit_bias})

    def _decoder(self) -> Callable[[Round], Chunk]:
        """From the rounds of one text to its pieces."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")

        def decode(step: Round) -> Chunk:
            data = b"".join(self.vocabulary.token_bytes(token) for token in step.tokens)
            return Chunk(decoder.decode(data, final=step.finish_reason is not None), step, step.finish_reason)

        return decode

    def prefill(self, prompt: Sequence[int], cancel: Cancel | None = None) -> int:
        """Decode what the KV cache lacks of a prompt, for a ``generate`` to come; ends a generation that still runs.

        What was decoded when ``cancel`` is set, or ``abort`` called, stays.

        Returns:
            How many tokens were decoded.

        Raises:
            CodespecError: the prompt is too long, or decoding failed.
        """
        self._cancellation = Cancellation()
        self.warm.turn_to(prompt)
        with self._context.cancellable(self._cancellation):
            return self._generator.prefill(prompt, self._stopped(cancel))

    def _stopped(self, cancel: Cancel | None) -> Cancel:
        """``cancel``, or ``abort``."""
        return _Any([self._cancellation, *([cancel] if cancel is not None else [])])

    def _prefill_steps(self) -> tuple[int, int]:
        """Tokens of the first step, and of a step at most: the longer nobody comes, the longer nobody will."""
        if self._context.exact:
            return EXACT_CHUNK, EXACT_CHUNK
        costs = self.costs.kept(0)

        def within(ms: float) -> int:
            return max((n for n in range(1, LONGEST) if costs[n] <= ms), default=1)

        if within(PREFILL_STEP_MS) == LONGEST - 1:
            return PREFILL_ROWS, BATCH if self._gpu_layers else PREFILL_ROWS
        first = max(4, within(PREFILL_STEP_MS))
        return first, PREFILL_ROWS if costs[LONGEST - 1] <= LONGEST_STEP_MS / 2 else max(first, within(LONGEST_STEP_MS))

    def _cancellable(self, cancellation: Cancellation) -> ExitStack:
        stack = ExitStack()
        stack.enter_context(self._context.cancellable(cancellation))
        if self.draft is not None:
            stack.enter_context(self._drafts[self.draft][1].cancellable(cancellation))
        return stack

    @property
    def model_draft(self) -> Draft | None:
        """The draft model in use, by itself."""
        return self._drafts[self.draft][2] if self.draft is not None else None

    def _draft_for(self, kind: str) -> Draft | None:
        """The sources that are switched on, as one draft with what it has learnt of this kind of text."""
        if not self.sources:
            return None
        model, costs = self._drafts[self.draft][2:] if self.draft is not None else (None, None)
        sources = tuple(sorted(self.sources))
        found = self._combined.get((kind, self.draft, sources))
        if found is None:
            found = self._combined[kind, self.draft, sources] = Combined(
                self.costs,
                self._calibration().of(kind),
                ngrams=self._ngrams if "ngram" in sources else None,
                model=model if "model" in sources and isinstance(model, ModelDraft) else None,
                foreign=model if "model" in sources and isinstance(model, ForeignDraft) else None,
                forced=self._forced if "forced" in sources else None,
                model_costs=costs,
                end_tokens=self.vocabulary.end_tokens,
                clock=self._clock,
            )
        return found

    def _costs_of(self, context: Context, rows: int | None = None) -> RunningCosts:
        costs = ModelCosts(context, self._gpu_layers, rows, self._profiles)
        self._model_costs.append(costs)
        return costs.running

    def _calibration(self) -> Calibration:
        found = self._calibrations.get(self.draft)
        if found is None:
            found = self._calibrations[self.draft] = Calibration(self.model.path, self.draft, self._profiles)
        return found

    def measure(self, go_on: Callable[[], bool]) -> bool:
        """Measure what passes of the loaded models cost, where no earlier run has; seconds for each model.

        Args:
            go_on: asked before every pass; False stops.

        Returns:
            Whether all is measured; False where ``go_on`` or ``abort`` stopped it: the next call goes on.
        """
        self._cancellation = Cancellation()
        return all(costs.measure(go_on, self._cancellation) for costs in self._model_costs)

    def save(self, every_s: float = 0.0) -> None:
        """Keep how often drafts were right for the next run, unless that was done less than ``every_s`` ago."""
        if monotonic() - self._saved >= every_s:
            for calibration in self._calibrations.values():
                calibration.save()
            self._saved = monotonic()

    def abort(self) -> None:
        """Stop the running generation or measurement, from any thread: within one node of llama.cpp's graph, or, while
        a prompt is read, at the end of a step."""
        self._cancellation.set()

    def close(self) -> None:
        """Save what was learnt, free models and caches; a second call does nothing."""
        self.learnt.close()
        self.save()
        if self._context.pointer:
            self.warm.save()
        self._model_costs.clear()
        for model, context, *_ in self._drafts.values():
            context.close()
            model.close()
        self._drafts.clear()
        self._forks.close()
        self._context.close()
        self.model.close()
