"""A completion for a position in a document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from codespec.completion.ending import Ended, Ending
from codespec.completion.fitting import OpenDocuments, lead_of
from codespec.completion.local import LocalEngine
from codespec.completion.prompt import file_header, fim_prompt, tail
from codespec.completion.teaching import Teacher
from codespec.config import Config
from codespec.draft.profiles import Profiles, default_folder
from codespec.grammar import Grammar
from codespec.languages import by_id
from codespec.models.fim import fim_format
from codespec.models.registry import find_draft, find_target
from codespec.protocols import Cancel, Chunk, CodespecError, FinishReason, Limits, Round, Sampling, Snippet, Statistics

# Of alternatives the first is what was asked for, the others are drawn at no less than this temperature.
ALTERNATIVE_TEMPERATURE = 0.8
REPEATS = 50
ATTEMPTS = 3
"""Texts that are generated for a completion before it is given up because nothing of them fits what follows."""
SAVE_EVERY_S = 300.0
"""How often what was learnt of drafts is kept while running; at the end it is in any case."""


@dataclass(frozen=True)
class Request:
    """Where a completion is wanted.

    Attributes:
        text: the whole document.
        offset: of the cursor, in characters of ``text``.
        language: LSP identifier.
        path: file name or URI, may be empty.
        count: how many different completions are wanted at most.
        max_tokens: None follows the settings.
        workspace: folder or URI of the workspace, what was learnt in which may speed things up; empty is none.
        context: pieces of other files, those first that change least between requests: their KV is reused.
    """

    text: str
    offset: int
    language: str
    path: str = ""
    count: int = 1
    max_tokens: int | None = None
    workspace: str = ""
    context: tuple[Snippet, ...] = ()


@dataclass(frozen=True)
class Completion:
    """A text to insert at the cursor, and how it came about.

    Attributes:
        text: after stop rules and trimming; may be empty.
        finish_reason: why it ends where it ends.
        rounds: the passes of the target, in order, before any trimming.
        backed_up: how many characters before the cursor the rounds begin with; they are not part of ``text``.
        report: the fields of ``--json`` other than the first two.
    """

    text: str
    finish_reason: FinishReason
    rounds: tuple[Round, ...]
    report: dict[str, Any]
    backed_up: int = 0

    def as_json(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {"text": self.text, "finish_reason": self.finish_reason, **self.report}


class Completer:
    """Completes documents with one engine. One request at a time; only ``abort`` may come from another thread."""

    def __init__(self, engine: LocalEngine, config: Config, sampling: Sampling | None = None) -> None:
        self.engine = engine
        self._config = config
        self._sampling = sampling or Sampling(temperature=config.temperature, seed=config.seed)
        self._layout = fim_format(engine.model)
        self._documents = OpenDocuments(engine)
        self._teacher = Teacher(engine, config.learn)
        self._totals = Statistics()
        self._generated = self._read_ahead = 0

    def complete(self, request: Request, cancel: Cancel | None = None) -> list[Completion]:
        """Different completions, best first; empty once ``cancel`` is set.

        Raises:
            CodespecError: the draft or grammar of the settings cannot be used.
        """
        text, offset = _normal(request)
        prefix, suffix = text[:offset], text[offset:]
        language = by_id(request.language)
        settings = self._config.for_language(request.language)
        self.engine.use_draft(find_draft(settings.draft, language))
        limits = self._limits(request)
        budget = limits.time_budget_ms
        began = perf_counter()
        spot = self._documents.spot(request.path, language, settings.grammar, text, offset, self._config.gate)
        before_ms = (perf_counter() - began) * 1e3
        prompt = self._prompt(_without_lead(prefix), suffix, request.path, limits)
        self._teacher.use(request.workspace, request.language, suffix)
        found: dict[str, Completion] = {}
        for index in range(request.count):
            sampling = replace(self._sampling, sample=self._sampling.sample + index)
            if index > 0:
                sampling = _warm(sampling)
            spent = Statistics(grammar_ms=before_ms, total_ms=before_ms) if index == 0 else Statistics()
            for attempt in range(ATTEMPTS):
                if attempt > 0:
                    sampling = _another(sampling)
                state = spot.state(self.engine, attempt)
                left = replace(limits, time_budget_ms=budget and budget - spent.total_ms)
                chunks = self.engine.generate(prompt, state, sampling, left, cancel, language=request.language)
                ending = Ending(spot.rule, spot.gate, spot.tidy, "unavailable" if spot.unavailable else "off")
                completion = self._finish(chunks, ending, spot.place.note, state.wanted if state else (), spent)
                said = completion.text.strip() or (attempt == 0 and completion.report["gate"] != "dropped")
                if said or completion.finish_reason == "cancelled":
                    break
                if budget and spent.total_ms > budget / 2:
                    break
            if spot.lead and completion.text.startswith(spot.lead):
                completion = replace(completion, text=completion.text[len(spot.lead) :], backed_up=len(spot.lead))
            if completion.finish_reason == "cancelled":
                return []
            if not completion.text.strip():
                completion = replace(completion, text="")  # blanks are nothing to show
            found.setdefault(completion.text, completion)
        return list(found.values())

    def prefill(self, request: Request, cancel: Cancel | None = None) -> int:
        """Let the target read what a completion at this place would have it read, so that it need not wait for that.

        What was read when ``cancel`` is set, or ``abort`` called, is kept.

        Returns:
            How many tokens were decoded.
        """
        text, offset = _normal(request)
        prompt = self._prompt(_without_lead(text[:offset]), text[offset:], request.path, self._limits(request))
        decoded = self.engine.prefill(prompt, cancel)
        self._read_ahead += decoded
        return decoded

    def status(self) -> dict[str, Any]:
        """What is loaded and how it has done so far, in plain data; from any thread.

        ``tokens_per_second`` counts from the first token on; ``prefill_tokens`` were read by completions, also by those
        that were prefetched, ``read_ahead`` by ``prefill``.
        """
        totals, draft = self._totals, self.engine.draft
        decoding_s = (totals.total_ms - totals.prefill_ms) / 1e3
        return {
            "target": self.engine.model.path.stem,
            "draft": draft.stem if draft else "none",
            "grammar": self._config.grammar,
            "completions": self._generated,
            "tokens": totals.tokens,
            "tokens_per_second": round(totals.tokens / decoding_s, 1) if decoding_s > 0 else 0.0,
            "target_calls": totals.target_calls,
            "drafted": totals.drafted,
            "accepted": totals.accepted,
            "prefill_tokens": totals.prefill_tokens,
            "reused_tokens": totals.reused_tokens,
            "read_ahead": self._read_ahead,
        }

    def _limits(self, request: Request) -> Limits:
        return Limits(request.max_tokens or self._config.max_tokens, self._config.time_budget_ms or None)

    def generate(
        self,
        prompt: str,
        grammar: Grammar | None = None,
        count: int = 1,
        limits: Limits | None = None,
        draft: str = "auto",
        language: str = "python",
        file_name: str = "",
    ) -> Iterator[Completion]:
        """Different texts that follow ``prompt`` and match ``grammar``, with no stop rules or trimming.

        A text that came before is dropped and another one drawn; fewer than ``count`` come where ``REPEATS`` in a
        row brought nothing new, and one at temperature 0.

        Args:
            file_name: tells a model that was trained with file names what it is writing.

        Raises:
            CodespecError: the prompt is too long, or the draft cannot be used.
        """
        self.engine.use_draft(find_draft(draft, by_id(language)))
        self.engine.use_nothing_learnt()
        vocabulary = self.engine.vocabulary
        header = file_header(vocabulary, self._layout, file_name) if self._layout else []
        start = [vocabulary.beginning] if vocabulary.beginning is not None else []
        tokens = [*start, *header, *vocabulary.tokenize(prompt)] or sorted(vocabulary.end_tokens)[:1]
        seen: set[str] = set()
        index = repeats = 0
        while len(seen) < count and repeats < (REPEATS if self._sampling.temperature else 1):
            sampling = replace(self._sampling, sample=self._sampling.sample + index)
            state = self.engine.grammar_state(grammar) if grammar else None
            chunks = self.engine.generate(tokens, state, sampling, limits)
            completion = self._finish(chunks, Ending(None, None), grammar.name if grammar else "none")
            index += 1
            repeats = repeats + 1 if completion.text in seen else 0
            if not repeats:
                seen.add(completion.text)
                yield completion

    def _prompt(self, prefix: str, suffix: str, path: str, limits: Limits) -> list[int]:
        vocabulary = self.engine.vocabulary
        # One more row than tokens: exact decoding pads.
        budget = self.engine.context_length - min(limits.max_tokens, self.engine.context_length // 2) - 1
        if self._layout is not None:
            return fim_prompt(vocabulary, self._layout, prefix, suffix, path, budget)
        start = [vocabulary.beginning] if vocabulary.beginning is not None else []
        tokens = [*start, *tail(vocabulary, prefix, budget - len(start))]
        return tokens or sorted(vocabulary.end_tokens)[:1]

    def _finish(
        self,
        chunks: Iterator[Chunk],
        ending: Ending,
        grammar: str,
        wanted: Sequence[str] = (),
        spent: Statistics | None = None,
    ) -> Completion:
        """Generate up to the end. ``wanted`` grows by the ends that are refused; ``spent``, what the completion took
        before, by what this takes."""
        text = ""
        rounds: list[Round] = []
        reason: FinishReason = "length"
        ended: Ended | None = None
        gate_ms = 0.0
        with closing(chunks):  # type: ignore[type-var]  # the engine's are generators
            for chunk in chunks:
                text += chunk.text
                if chunk.round is not None:
                    rounds.append(chunk.round)
                began = perf_counter()
                ended = ending.stop(text)
                gate_ms += (perf_counter() - began) * 1e3
                if ended is not None:
                    break
                if chunk.finish_reason is not None:
                    reason = chunk.finish_reason
        began = perf_counter()
        ended = ended or ending.finish(text, reason, wanted)
        gate_ms += (perf_counter() - began) * 1e3
        s = spent or Statistics()
        s.add(self.engine.statistics)
        self._totals.add(self.engine.statistics)
        self._generated += 1
        s.grammar_ms += gate_ms
        s.total_ms += gate_ms
        return Completion(ended.text, ended.reason, tuple(rounds), self._report(s, grammar, ended.gate))

    def _report(self, s: Statistics, grammar: str, gate: str) -> dict[str, Any]:
        draft = self.engine.draft
        return {
            "tokens": s.tokens,
            "target_calls": s.target_calls,
            "drafted": s.drafted,
            "accepted": s.accepted,
            "by_source": {name: asdict(count) for name, count in s.by_source.items()},
            "prefill_tokens": s.prefill_tokens,
            "reused_tokens": s.reused_tokens,
            "grammar": grammar,
            "gate": gate,
            "draft": draft.stem if draft else "none",
            "target": self.engine.model.path.stem,
            "timings_ms": {
                name: round(getattr(s, f"{name}_ms"), 3) for name in ("prefill", "draft", "verify", "grammar", "total")
            },
        }

    def learn(self, text: str, path: str, language: str, workspace: str = "", offset: int | None = None) -> None:
        """Learn a document, for later completions in its workspace and language. Takes about 1 ms for 2 KB.

        Args:
            path: file name or URI.
            offset: where it is being edited: that line is left out, and a document is learnt every few seconds at
                most. None: it was just opened or saved.
        """
        self._teacher.learn(text, path, language, workspace, offset)

    def accepted(self, request: Request, text: str) -> None:
        """Learn that the user has taken ``text`` for ``request``."""
        before = request.text[: request.offset]
        self._teacher.accepted(before, text, request.path, request.language, request.workspace)

    def forget(self, workspace: str) -> None:
        """Forget all that a workspace taught.

        Raises:
            CodespecError: a file cannot be deleted.
        """
        self._teacher.forget(workspace)

    def idle(self, go_on: Callable[[], bool]) -> bool:
        """Use time in which nobody waits: measure models that were not measured yet, keep what was learnt.

        Args:
            go_on: asked every moment; where it says False, or ``abort`` is called, this returns.

        Returns:
            Whether there is nothing left to do.
        """
        done = self.engine.measure(go_on)
        self.engine.save(every_s=SAVE_EVERY_S)
        return done

    def abort(self) -> None:
        """Stop the running request at once; from any thread."""
        self.engine.abort()

    def close(self) -> None:
        """Free the models, and keep what was learnt."""
        self.engine.close()


def _normal(request: Request) -> tuple[str, int]:
    """The text with ``\\n`` as its line ends, and the cursor's offset in it."""
    return request.text.replace("\r\n", "\n"), request.offset - request.text.count("\r\n", 0, request.offset)


def _without_lead(prefix: str) -> str:
    """What the model is shown before the cursor: not a last space, which the next token begins with."""
    return prefix[: len(prefix) - len(lead_of(prefix))]


def _warm(sampling: Sampling) -> Sampling:
    return replace(sampling, temperature=max(sampling.temperature, ALTERNATIVE_TEMPERATURE))


def _another(sampling: Sampling) -> Sampling:
    """For the next attempt at the same completion; no alternative is drawn with the same noise."""
    return replace(_warm(sampling), seed=sampling.seed + 1)


def load_completer(
    config: Config,
    progress: Callable[[str, int], None] | None = None,
    *,
    exact: bool = False,
    sampling: Sampling | None = None,
) -> Completer:
    """Load the target of the settings; takes seconds for a large one.

    Args:
        progress: called with a message and percent.

    Raises:
        CodespecError: the model cannot be loaded; names the file and the remedy.
    """
    if exact and sampling is not None and sampling.verify == "rejection" and sampling.temperature > 0:
        raise CodespecError("exact decoding gives one text with any draft, rejection sampling does not; choose one")
    target = find_target(config.target.path)
    told = -1

    def report(fraction: float) -> bool:
        nonlocal told
        percent = int(fraction * 100)
        if progress is not None and percent > told:
            progress(f"loading {Path(target).name}", percent)
            told = percent
        return True

    try:
        engine = LocalEngine(
            target,
            context_length=config.target.context,
            threads=config.target.threads,
            gpu_layers=config.target.gpu_layers,
            draft_length=config.draft_length,
            exact=exact,
            kv_type=config.target.kv_type,
            flash_attention=config.target.flash_attention,
            progress=report,
            profiles=Profiles(default_folder()),
        )
    except ImportError as error:
        raise CodespecError(f"llama-cpp-python does not load ({error}); reinstall it, see `codespec doctor`") from error
    return Completer(engine, config, sampling)
