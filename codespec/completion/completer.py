"""A completion for a position in a document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

from codespec.completion.ending import Ended, Ending
from codespec.completion.fitting import OpenDocuments, Spot, lead_of
from codespec.completion.following import Following, follow, follow_all
from codespec.completion.forks import TOGETHER
from codespec.completion.local import LocalEngine
from codespec.completion.loras import Loras
from codespec.completion.prompt import LEAST_CONTEXT, Prompts, file_header, file_name, relative_path
from codespec.completion.report import draft_name, report_of
from codespec.completion.request import Completion, Request
from codespec.completion.teaching import Teacher
from codespec.completion.trace import passes
from codespec.completion.versions import grammar_for
from codespec.config import Config
from codespec.grammar import Grammar
from codespec.languages import by_id
from codespec.models.fim import FimFormat, Order, fim_format
from codespec.protocols import Aborted, Cancel, CodespecError, Limits, Sampling, Statistics

# Of alternatives the first is what was asked for, the others are drawn at no less than this temperature.
ALTERNATIVE_TEMPERATURE = 0.8
REPEATS = 50
ATTEMPTS = 3
"""Texts that are generated for a completion before it is given up because nothing of them fits what follows, or it is
no other than those before."""
SAVE_EVERY_S = 300.0
"""How often what was learnt of drafts is kept while running; at the end it is in any case."""


@dataclass(frozen=True)
class _Task:
    """What the texts for one request have in common."""

    prompt: list[int]
    spot: Spot
    language: str
    limits: Limits
    before_ms: float  # to get ready; a language's first grammar takes seconds, which are no part of the time budget

    def ending(self) -> Ending:
        """For one text."""
        spot = self.spot
        return Ending(spot.rule, spot.gate, spot.tidy, "unavailable" if spot.unavailable else "off")


class Completer:
    """Completes documents with one engine. One request at a time; only ``abort`` may come from another thread.

    Attributes:
        problems: what the user should know of the settings, a sentence each.

    Args:
        patient: whether a request waits for its draft model to load; False: the one before it serves until then.
    """

    def __init__(
        self, engine: LocalEngine, config: Config, sampling: Sampling | None = None, patient: bool = True
    ) -> None:
        self._patient = patient
        self.engine = engine
        self._config = config
        self._sampling = sampling or Sampling(temperature=config.temperature, seed=config.seed)
        self._layout = self._layout_of(config.target.fim)
        self._prompts = Prompts(engine.vocabulary, self._layout)
        self._documents = OpenDocuments(engine)
        self._teacher = Teacher(engine, config.learn)
        self._totals = Statistics()
        self._generated = self._read_ahead = 0
        self._pass_ms = 0.0
        self._draft: Path | None = None
        self.problems: list[str] = []
        self._loras = Loras(engine, config, self.problems)
        self._loras.use()
        if engine.adapter_problem:
            self.problems.append(engine.adapter_problem)

    def _layout_of(self, wanted: str) -> FimFormat | None:
        orders: dict[str, Order] = {"psm": "psm", "spm": "spm"}
        model, order = self.engine.model, orders.get(wanted)
        layout = fim_format(model, order)
        if order is not None and (layout is None or layout.order != order):
            own = f"keeping {layout.order}" if layout is not None else "it cannot fill in the middle"
            self.engine.drafts.note(f"{model.path.name} was not trained on {order} prompts (`target.fim`): {own}")
        return layout

    def complete(self, request: Request, cancel: Cancel | None = None) -> list[Completion]:
        """Different completions, best first; empty once ``cancel`` is set.

        Raises:
            CodespecError: the draft or grammar of the settings cannot be used.
        """
        try:
            return self._complete(self._task(request, cancel), request, cancel)
        except Aborted:  # in the middle of the gate's questions
            return []

    def _complete(self, task: _Task, request: Request, cancel: Cancel | None) -> list[Completion]:
        if request.count > 1:
            return self._several(task, request.count, cancel)
        spent = Statistics(grammar_ms=task.before_ms, total_ms=task.before_ms)
        completion = self._one(task, self._sampling, cancel, spent)
        return [] if completion.finish_reason == "cancelled" else [completion]

    def _task(self, request: Request, cancel: Cancel | None) -> _Task:
        text, offset = request.normalized()
        prefix, suffix = text[:offset], text[offset:]
        language = by_id(request.language)
        settings = self._config.for_language(request.language)
        self._use_draft(request, self._patient)
        self.engine.warm.enter(self._kept_for(request))
        limits = self._limits(request)
        began = perf_counter()
        grammar = request.grammar or settings.grammar
        if grammar == "auto":
            grammar = grammar_for(language, request.path, request.workspace) or "none"
        whole = (request.begins, request.ends)
        stopped = cancel.is_set if cancel is not None else lambda: False
        gate = self._config.gate
        spot = self._documents.spot(request.path, language, grammar, text, offset, gate, whole, stopped)
        before_ms = (perf_counter() - began) * 1e3
        prompt = self._prompt(prefix[: offset - len(spot.lead)], suffix, request, limits)
        self._teacher.use(request.workspace, request.language, suffix)
        return _Task(prompt, spot, request.language, limits, before_ms)

    def _use_draft(self, request: Request, wait: bool) -> None:
        name = request.draft or self._config.for_language(request.language).draft
        self.engine.use_draft(self.engine.find_draft(name, by_id(request.language)), wait)
        self._loras.use()
        self._draft = self.engine.draft  # another completer may use another one

    def _one(self, task: _Task, sampling: Sampling, cancel: Cancel | None, spent: Statistics) -> Completion:
        """One text, another one where nothing of it fits; ``spent`` grows by what it takes."""
        budget, spot = task.limits.time_budget_ms, task.spot
        beginnings = [""] * ATTEMPTS
        for attempt in count():
            beginning = beginnings.pop(0)
            if attempt > 0 and not beginning:
                sampling = _another(sampling)
            state, ending = spot.state(self.engine, attempt, beginning), task.ending()
            left = replace(task.limits, time_budget_ms=budget and budget - (spent.total_ms - task.before_ms))
            chunks = self.engine.generate(task.prompt, state, sampling, left, cancel, language=task.language)
            following = Following(ending, state.wanted if state else ())
            ended = follow(chunks, following)
            self.engine.remember(task.prompt, following.tokens)
            completion = self._finished(ended, following, spot.place.note, spent).behind(spot.lead)
            silent = attempt == 0 and (state is None or state.end_was_wanted)
            said = completion.text or (silent and completion.report["gate"] != "dropped")
            if attempt == 0 and ending.another_beginning:
                beginnings.insert(0, ending.another_beginning)
            if said or completion.finish_reason == "cancelled" or not beginnings:
                break
            if budget and spent.total_ms - task.before_ms > budget / 2:
                break
        return completion

    def _several(self, task: _Task, count: int, cancel: Cancel | None) -> list[Completion]:
        """Different texts, decoded side by side, first what ``_one`` would give; what repeats is drawn again."""
        budget, spent = task.limits.time_budget_ms, Statistics(grammar_ms=task.before_ms, total_ms=task.before_ms)
        found: dict[str, Completion] = {}
        drawn = 0
        while len(found) < count and drawn < ATTEMPTS * count:
            indices = range(drawn, drawn + min(TOGETHER, count - len(found)))
            samplings = [replace(self._sampling, sample=self._sampling.sample + index) for index in indices]
            samplings = [_warm(each) if index > 0 else each for index, each in zip(indices, samplings, strict=True)]
            left = replace(task.limits, time_budget_ms=budget and budget - (spent.total_ms - task.before_ms))
            completions = self._together(task, samplings, left, cancel, spent)
            if any(each.finish_reason == "cancelled" for each in completions):
                return []
            for completion in completions:
                found.setdefault(completion.text, completion)
            drawn = indices.stop
            if budget and spent.total_ms - task.before_ms > budget / 2:
                break
        if not any(text for text in found):
            return [self._one(task, _another(self._sampling), cancel, spent)]
        return [completion for text, completion in found.items() if text]

    def _together(
        self,
        task: _Task,
        samplings: Sequence[Sampling],
        limits: Limits,
        cancel: Cancel | None,
        spent: Statistics,
    ) -> list[Completion]:
        states = [task.spot.state(self.engine) for _ in samplings]
        followings = [Following(task.ending(), state.wanted if state else ()) for state in states]
        stopped: set[int] = set()
        chunks = self.engine.generate_together(task.prompt, states, samplings, limits, cancel, stopped)
        ends = follow_all(chunks, followings, stopped)
        self._count(spent, sum(each.gate_ms for each in followings))
        return [
            self._completion(ended, following, task.spot.place.note, spent).behind(task.spot.lead)
            for ended, following in zip(ends, followings, strict=True)
        ]

    def prefill(self, request: Request, cancel: Cancel | None = None) -> int:
        """Let the target read what a completion at this place would have it read, so that it need not wait for that.

        What was read when ``cancel`` is set, or ``abort`` called, is kept.

        Returns:
            How many tokens were decoded.
        """
        text, offset = request.normalized()
        self._loras.use()
        self.engine.warm.enter(self._kept_for(request))
        prompt = self._prompt(_without_lead(text[:offset]), text[offset:], request, self._limits(request))
        decoded = self.engine.prefill(prompt, cancel)
        self._read_ahead += decoded
        with suppress(CodespecError):  # who completes will be told
            self._use_draft(request, wait=False)
        return decoded

    @property
    def reading(self) -> bool:
        """Whether a prompt is being read, of which a step is always finished; from any thread."""
        return self.engine.reading

    def status(self, languages: Iterable[str] = ()) -> dict[str, Any]:
        """What is loaded and how it has done so far, in plain data; from any thread.

        ``draft`` is the model that drafted for the latest request, another one than wanted while that loads; ``drafts``
        names for each of ``languages`` the model that ``auto`` means.
        ``tokens_per_second`` counts from the first token on; ``prefill_tokens`` were read by completions, also by those
        that were prefetched, ``read_ahead`` by ``prefill``; ``pass_ms`` is what a pass over one token
        takes behind the latest prompt; ``kept_mib`` of ``cache.memory_mib`` are in use. ``settings`` and
        ``draft_settings`` give the value in force of each and, where it was chosen, ``why``;
        ``target_lora`` and ``draft_lora``, where they are set, the ``problem`` that they are not used for.
        """
        totals, draft = self._totals, self._draft
        decoding_s = (totals.total_ms - totals.prefill_ms) / 1e3
        return {
            "target": self.engine.model.path.stem,
            "draft": draft_name(draft),
            "drafts": {each: draft_name(self.engine.find_draft("auto", by_id(each))) for each in languages},
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
            "pass_ms": round(self._pass_ms, 3),
            "kept_mib": round(self.engine.warm.kept_bytes / 2**20, 3),
            "context": self.engine.context_length,
            "threads": self.engine.threads,
            **self._loras.told,
            "settings": {name: asdict(choice) for name, choice in self.engine.choices.items()},
            "draft_settings": {name: asdict(choice) for name, choice in self.engine.drafts.choices.items()},
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
        self.engine.use_draft(self.engine.find_draft(draft, by_id(language)))
        self._loras.use()
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
            following = Following(Ending(None, None))
            name = grammar.name if grammar else "none"
            completion = self._finished(follow(chunks, following), following, name, Statistics())
            index += 1
            repeats = repeats + 1 if completion.text in seen else 0
            if not repeats:
                seen.add(completion.text)
                yield completion

    def _kept_for(self, request: Request) -> str:
        """The workspace with which the disk may keep what is read for a request; empty: nothing is kept of it."""
        kept = self._teacher.may_keep(request.path, request.workspace, request.text)
        return request.workspace if kept else ""

    def _prompt(self, prefix: str, suffix: str, request: Request, limits: Limits) -> list[int]:
        vocabulary = self.engine.vocabulary
        # One more row than tokens: exact decoding pads.
        budget = self.engine.context_length - min(limits.max_tokens, self.engine.context_length // 2) - 1
        path, workspace = request.path, request.workspace
        context = request.context if self.engine.context_length >= LEAST_CONTEXT else ()
        tokens = self._prompts.prompt(
            prefix,
            suffix,
            relative_path(path, workspace) if context else file_name(path),
            budget,
            context=context,
            repository=file_name(workspace.rstrip("/")),
            comment=by_id(request.language).line_comment,
        )
        if self._layout is None and vocabulary.beginning is not None:
            tokens = [vocabulary.beginning, *tokens]
        return tokens or sorted(vocabulary.end_tokens)[:1]

    def _finished(self, ended: Ended, following: Following, grammar: str, spent: Statistics) -> Completion:
        """What a generation that is over comes to; ``spent`` grows by what it took."""
        self._count(spent, following.gate_ms)
        return self._completion(ended, following, grammar, spent)

    def _count(self, spent: Statistics, gate_ms: float) -> None:
        latest = self.engine.statistics
        spent.add(latest)
        self._totals.add(latest)
        self._pass_ms = self.engine.costs.kept(latest.prefill_tokens + latest.reused_tokens)[1]
        self._generated += 1
        spent.grammar_ms += gate_ms
        spent.total_ms += gate_ms

    def _completion(self, ended: Ended, following: Following, grammar: str, spent: Statistics) -> Completion:
        report = report_of(spent, grammar, ended.gate, self.engine.draft, self.engine.model.path)
        told = passes(following.rounds, following.times_ms, self.engine.vocabulary)
        return Completion(ended.text, ended.reason, tuple(following.rounds), report, passes=told)

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
        self.engine.forget_generated()
        try:
            self.engine.warm.forget(workspace)
        except OSError as error:
            raise CodespecError(f"what was read in {workspace} cannot be deleted: {error}") from error

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

    def hasten(self, request: Request) -> None:
        """Nothing: it runs as fast as it can."""

    def abort(self) -> None:
        """Stop the running request, see ``LocalEngine.abort``; from any thread."""
        self.engine.abort()

    def close(self) -> None:
        """Free the models, and keep what was learnt."""
        self.engine.close()


def _without_lead(prefix: str) -> str:
    """What the model is shown before the cursor: nothing of what the completion begins with again."""
    return prefix[: len(prefix) - len(lead_of(prefix))]


def _warm(sampling: Sampling) -> Sampling:
    return replace(sampling, temperature=max(sampling.temperature, ALTERNATIVE_TEMPERATURE))


def _another(sampling: Sampling) -> Sampling:
    """For the next attempt at the same completion; no alternative is drawn with the same noise."""
    return replace(_warm(sampling), seed=sampling.seed + 1)
