"""The engine on this machine: target and draft models loaded with llama.cpp, and speculative decoding over them."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from time import monotonic, perf_counter

from codespec.draft.costs import LONGEST
from codespec.draft.ngram_store import NgramStore, WorkspaceNgrams
from codespec.draft.storage.profiles import Profiles, Setup, model_hash
from codespec.engine.adapters import Adapters, LoraRequest
from codespec.engine.drafts import DRAFTS_BYTES, Drafts
from codespec.engine.parallel import ParallelSequences
from codespec.engine.prefill_steps import prefill_steps
from codespec.engine.prompt_cache import PromptCache, PromptCacheSettings
from codespec.files import StrPath
from codespec.grammar import Grammar, Tokenizer
from codespec.languages import Language
from codespec.llama.context import EXACT_CHUNK, Context
from codespec.llama.devices import ResolvedSetting
from codespec.llama.devices import gpu_layers as layers_on_gpus
from codespec.llama.llguidance_tokenizer import tokenizer_from_vocab
from codespec.llama.model import Model, check_file
from codespec.llama.runtime import Cancellation, Either
from codespec.models.trimmed import VOCABULARY_KEY
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


class LocalEngine:
    """A target, its drafts and their KV caches. One generation at a time, from one thread at a time.

    Args:
        target: a GGUF file.
        context_length: in tokens; 0 is what the target was trained with, at most 8,192.
        threads: 0 chooses by the size of the model.
        gpu_layers: of the target and of each draft model; None: as many as fit into the GPUs' memory, the target's
            first; none in exact decoding.
        draft_length: how many tokens are proposed at a time at most; 0: as many as are expected to save time.
        drafts_bytes: of memory that draft models take at most; those longest unused are freed.
        kv_type, flash_attention: of the target's KV cache, see ``Context``.
        exact: the same text whatever the draft, at the cost of speed: every decode has the same numerics.
        learnt_folder: where the n-grams of workspaces are kept, instead of the user's data folder.
        wrap: called with the sequence of the target and of each draft model, and the role (``target``, ``draft``);
            the object it returns decodes in its stead. For measuring, like ``clock``, the clock of the drafts.
        progress: called with 0..1 while the target loads.
        prompt_cache: how much of the KV caches of documents is kept; the default keeps nothing between runs.
        profiles: costs and acceptance rates of earlier runs; None: none, and none are saved.

    Raises:
        CodespecError: the target cannot be loaded.

    Attributes:
        drafts: the draft sources; ``costs`` and ``notes`` are its own.
        learnt: the n-grams of workspaces; ``use_learnt`` chooses among them.
        prompt_cache: the KV caches of earlier prompts; ``enter`` names the workspace.
        threads: threads that the target decodes with.
    """

    def __init__(
        self,
        target: StrPath,
        *,
        context_length: int = 0,
        threads: int = 0,
        gpu_layers: int | None = None,
        draft_length: int = 0,
        drafts_bytes: int = DRAFTS_BYTES,
        exact: bool = False,
        kv_type: str = "auto",
        flash_attention: str = "auto",
        learnt_folder: StrPath | None = None,
        progress: Callable[[float], bool] | None = None,
        wrap: Callable[[Target, str], Target] = lambda sequence, role: sequence,
        clock: Callable[[], float] = perf_counter,
        profiles: Profiles | None = None,
        prompt_cache: PromptCacheSettings | None = None,
    ) -> None:
        if exact and gpu_layers:
            raise CodespecError("exact decoding works on the CPU only; set gpu_layers = 0")
        target = Path(target)
        check_file(target)
        longest = context_length or LONGEST_AUTOMATIC_CONTEXT
        self._placed = layers_on_gpus(gpu_layers, target, longest, kv_type, flash_attention, exact)
        self.model = Model(target, gpu_layers=int(self._placed.value), plain_buffers=exact, progress=progress)
        try:
            if self.model.metadata(VOCABULARY_KEY) is not None:
                raise CodespecError(f"{target}: a draft that has only some of its target's tokens; it can be no target")
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
        self._adapters = Adapters(self._context)
        self.drafts = Drafts(self._context, gpu_layers, threads, profiles or Profiles(None), wrap, clock, drafts_bytes)
        self.costs, self.notes = self.drafts.costs, self.drafts.notes
        self.learnt = NgramStore(
            self.drafts.vocabulary_hash, Path(learnt_folder) if learnt_folder is not None else None
        )
        self._saved = monotonic()
        # FIM markers and the like are no text; the end tokens among the control tokens stay possible.
        self._banned = dict.fromkeys(self.vocabulary.control_tokens - self.vocabulary.end_tokens, float("-inf"))
        self._cancellation = Cancellation()
        self._sequence = self._context.sequence()
        self._parallel = ParallelSequences(self._context)
        self._generator = Generator(
            wrap(self._sequence, "target"),
            None,
            self.vocabulary.end_tokens,
            # In exact mode a forward pass has one chunk's rows at most.
            min(draft_length or LONGEST - 1, EXACT_CHUNK - 1 if exact else LONGEST - 1),
            on_pass=self.costs.observe,
            steps=lambda: prefill_steps(self.costs, self._context.exact, bool(self.model.gpu_layers)),
            whole_steps=self._context.whole_steps,
        )
        self.prompt_cache = self._cache_of(prompt_cache or PromptCacheSettings())

    def _cache_of(self, settings: PromptCacheSettings) -> PromptCache:
        settings = replace(settings, shift=settings.shift and not self._context.exact)
        setup = asdict(Setup.of(self._context, None))
        about = {"model": model_hash(self.model.path), "shift": settings.shift, **setup}
        return PromptCache(self._sequence, self._generator, settings, about)

    @property
    def choices(self) -> dict[str, ResolvedSetting]:
        """``gpu_layers``, ``kv_type``, ``flash_attention`` and ``threads`` as they are in force."""
        return {"gpu_layers": self._placed, **self._context.choices}

    @property
    def draft(self) -> Path | None:
        """The draft model in use."""
        return self.drafts.chosen

    @property
    def reading(self) -> bool:
        """Whether a prompt is being decoded; from any thread."""
        return self._generator.reading

    @property
    def statistics(self) -> Statistics:
        """The counts of the current or last generation."""
        return self._generator.statistics

    def use_draft(self, path: StrPath | None, wait: bool = True) -> None:
        """Draft with this model from the next generation on; None for no draft model. Loads it the first time.

        A draft with another vocabulary than the target's works at a price, which ``notes`` then names.

        Args:
            wait: False returns at once: while the model loads, the previous one serves.

        Raises:
            CodespecError: it cannot be loaded; the draft stays what it was.
        """
        self.drafts.choose(Path(path) if path is not None else None, wait)

    def use_adapters(self, target: LoraRequest | None, draft: LoraRequest | None) -> None:
        """Decode from the next generation on with these LoRA adapters. One that cannot be used is left out;
        ``adapter_problem``, ``drafts.adapter_problem`` and ``notes`` then say why.

        KV caches computed with other adapters are put aside until those are used again.
        """
        if self._adapters.use(target):
            self.prompt_cache.change_adapter(self._context.adapter_key)
            self.costs.begin_anew()
        if self.adapter_problem:
            self.drafts.note(self.adapter_problem)
        self.drafts.use_adapter(draft)

    @property
    def adapter_problem(self) -> str:
        """Why the target decodes without the LoRA adapter that it was to have; empty where it has it."""
        return self._adapters.problem

    def find_draft(self, name: StrPath, language: Language) -> Path | None:
        """The file of a draft for this target; None where no draft model is wanted or known.

        Args:
            name: ``none``, a name, a path, or ``auto``: the best installed one with the target's vocabulary, see
                ``best_draft``, else the embedded one of the language.

        Raises:
            CodespecError: there is no draft of this name or path.
        """
        return self.drafts.find(name, language)

    def use_learnt(self, folder: StrPath | None, language: str, following: Sequence[int] = ()) -> WorkspaceNgrams:
        """Draft from the next generation on with the n-grams of a workspace and language, too.

        Args:
            folder: of the workspace; None: the n-grams learnt in this session outside any workspace.
            following: tokens after the cursor, which n-grams must not propose again.
        """
        learnt = self.learnt.of(Path(folder) if folder is not None else None, language)
        self.drafts.ngrams.learnt = learnt.index
        self.drafts.ngrams.following = list(following)
        return learnt

    def use_nothing_learnt(self) -> None:
        """Draft without n-grams of workspaces from the next generation on, until the next ``use_learnt``."""
        self.drafts.ngrams.learnt = None

    def remember(self, prompt: Sequence[int], generated: Sequence[int]) -> None:
        """Add the text generated after a prompt to the n-grams: the next prompt mostly differs by a key."""
        self.drafts.ngrams.remember(prompt, generated)

    def forget_generated(self) -> None:
        """Forget the texts of ``remember``."""
        self.drafts.ngrams.forget_generated()

    def warm_up(self) -> None:
        """Prepare the vocabulary for grammars, which the first request would wait for.

        Raises:
            CodespecError: no grammar can be used with this vocabulary.
        """
        _ = self._grammar_tokenizer

    def grammar_state(self, grammar: Grammar) -> GrammarState:
        """The start state of a grammar over this model's vocabulary."""
        return grammar.state(self._grammar_tokenizer)

    @cached_property
    def _grammar_tokenizer(self) -> Tokenizer:
        return tokenizer_from_vocab(self.vocabulary)

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
        """Generate text in chunks of whole characters; close the iterator to stop early.

        Args:
            prompt: token ids.
            grammar: constrains the text, starting from this state, which is advanced.
            speculate: False decodes one token at a time with the target alone; a draft replaces the engine's own.
            language: of the text; acceptance rates are learnt for each language apart.

        Raises:
            CodespecError: the prompt is too long, or decoding failed.
        """
        sampling = self._without_markers(sampling or Sampling())
        kind = f"{language}/{'greedy' if sampling.temperature == 0 else 'sampled'}/{'grammar' if grammar else 'free'}"
        if isinstance(speculate, bool):
            self._generator.draft = self.drafts.combined(kind) if speculate else None
        else:
            self._generator.draft = speculate
        self._cancellation = Cancellation()
        self.prompt_cache.turn_to(prompt)
        decode = self._decoder()
        with self._context.cancellable(self._cancellation), self.drafts.cancellable(self._cancellation):
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
        """Generate at most ``TOGETHER`` texts for one prompt in chunks, each with the index of its text.

        They are decoded in one batch, without drafts, except in exact mode: then one after the other.

        Args:
            grammars, samplings: one for each text.
            stopped: indices of texts that are to end; the caller may add to it meanwhile.

        Raises:
            CodespecError: as ``generate``.
        """
        if self._context.exact:
            yield from self._one_by_one(prompt, grammars, samplings, limits, cancel, stopped)
            return
        samplings = [self._without_markers(each) for each in samplings]
        self._cancellation = Cancellation()
        self.prompt_cache.turn_to(prompt)
        decoders = [self._decoder() for _ in samplings]
        with self._context.cancellable(self._cancellation), self._parallel.cancellable(self._cancellation):
            fork = self._parallel.of(self._sequence)
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
        """A function that turns the rounds of one text into chunks."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")

        def decode(step: Round) -> Chunk:
            data = b"".join(self.vocabulary.token_bytes(token) for token in step.tokens)
            return Chunk(decoder.decode(data, final=step.finish_reason is not None), step, step.finish_reason)

        return decode

    def prefill(self, prompt: Sequence[int], cancel: Cancel | None = None) -> int:
        """Decode the tokens of a prompt that the KV cache lacks, for a later ``generate``; ends a running generation.

        Tokens decoded before ``cancel`` is set, or ``abort`` is called, stay in the KV cache.

        Returns:
            How many tokens were decoded.

        Raises:
            CodespecError: the prompt is too long, or decoding failed.
        """
        self._cancellation = Cancellation()
        self.prompt_cache.turn_to(prompt)
        with self._context.cancellable(self._cancellation):
            return self._generator.prefill(prompt, self._stopped(cancel))

    def _stopped(self, cancel: Cancel | None) -> Cancel:
        """``cancel``, or ``abort``."""
        return Either(self._cancellation, cancel)

    def measure(self, go_on: Callable[[], bool]) -> bool:
        """Measure the costs of the loaded models' forward passes, where no earlier run has; seconds for each model.

        Args:
            go_on: asked before every forward pass; False stops.

        Returns:
            Whether all is measured; False where ``go_on`` or ``abort`` stopped it: the next call goes on.
        """
        self._cancellation = Cancellation()
        return self.drafts.measure(go_on, self._cancellation)

    def save(self, every_s: float = 0.0) -> None:
        """Save the drafts' acceptance rates, unless that was done less than ``every_s`` seconds ago."""
        if monotonic() - self._saved >= every_s:
            self.drafts.save()
            self._saved = monotonic()

    def abort(self) -> None:
        """Stop the running generation or measurement, from any thread: within one node of llama.cpp's graph, or, during
        a prefill, at the end of a step."""
        self._cancellation.set()

    def close(self) -> None:
        """Save what was learnt, free models and caches; a second call does nothing."""
        self.learnt.close()
        self.save()
        if self._context.pointer:
            self.prompt_cache.save()
        self.drafts.close()
        self._parallel.close()
        self._context.close()
        self._adapters.close()
        self.model.close()
