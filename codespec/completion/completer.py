"""A completion for a position in a document."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from codespec.completion.attempts import Attempts, completion_of, count_spent
from codespec.completion.counts import Counts
from codespec.completion.ending.ending import Ending
from codespec.completion.ending.stream import TextStream, follow
from codespec.completion.language_version import grammar_for
from codespec.completion.learning import WorkspaceLearner
from codespec.completion.lora_settings import LoraSelection
from codespec.completion.open_documents import OpenDocuments
from codespec.completion.prepared import PreparedRequest
from codespec.completion.prompt.prompt import text_prompt
from codespec.completion.prompt.timely import TimelyPrompts
from codespec.completion.report import draft_name, report_of
from codespec.completion.request import Completion, Request
from codespec.config import Config
from codespec.engine.engine import Engine, add_note
from codespec.grammar import Grammar
from codespec.grammar.errors import GrammarGaveUp
from codespec.languages import USUAL, by_id
from codespec.models.fim import FimFormat, Order
from codespec.patience import JUDGING_S, give_up, within
from codespec.protocols import Aborted, Cancel, CodespecError, Limits, Sampling, Statistics

REPEATS = 50
"""Texts in a row that ``Completer.generate`` may sample without a new one before it stops."""
PREPARING_S = 10.0
"""Seconds to find out what is at a position: of a real file some milliseconds a kilobyte, the first time."""
SAVE_EVERY_S = 300.0
"""Seconds between two writes of the drafts' acceptance rates to the disk; closing the engine writes them as well."""


class Completer:
    """Completes documents with one engine. One request at a time; only ``abort`` may be called from another thread.

    Attributes:
        problems: settings that could not be followed, a sentence each for the user.
        prompt_tokens, spent: of the latest completion: the length of its prompt, and what all attempts at it took.

    Args:
        patient: whether a request waits for its draft model to load; False: the previous draft serves until then.
    """

    def __init__(self, engine: Engine, config: Config, sampling: Sampling | None = None, patient: bool = True) -> None:
        self._patient = patient
        self.engine = engine
        self._config = config
        self._sampling = sampling or Sampling(temperature=config.temperature, seed=config.seed)
        self.problems: list[str] = []
        self._adapters = LoraSelection(engine, config, self.problems)
        if engine.adapter_problem:
            self.problems.append(engine.adapter_problem)
        self._layout = self._layout_of(config.target.fim) or self._adapters.layout
        self._prompts = TimelyPrompts(engine, self._layout)
        self._documents = OpenDocuments(engine, unseen=self._layout is None)
        self._learner = WorkspaceLearner(engine.vocabulary, engine.drafts, engine.prompt_cache, config.learn)
        self._counts = Counts()
        self._draft: Path | None = None
        self.prompt_tokens, self.spent = 0, Statistics()
        self._workspace = ""  # of the latest request, see `_enter`

    def _layout_of(self, wanted: str) -> FimFormat | None:
        orders: dict[str, Order] = {"psm": "psm", "spm": "spm"}
        order = orders.get(wanted)
        layout = self.engine.fim_format(order)
        if order is not None and (layout is None or layout.order != order):
            own = f"keeping {layout.order}" if layout is not None else "it cannot fill in the middle"
            told = f"{self.engine.name} was not trained on {order} prompts (`target.fim`): {own}"
            add_note(self.engine.notes, told)
        return layout

    def complete(self, request: Request, cancel: Cancel | None = None) -> list[Completion]:
        """Up to ``request.count`` different completions, best first; an empty list once ``cancel`` is set.

        Raises:
            CodespecError: the draft or grammar of the settings cannot be used.
        """
        budget = self._config.time_budget_ms / 1000
        stopped = cancel.is_set if cancel is not None else lambda: False
        with within(budget + JUDGING_S if budget else math.inf, stopped):
            try:
                return self._texts(request, cancel)
            except Aborted:  # while something was read or judged
                if stopped():
                    return []
        report = report_of(self.spent, "none", "unavailable", self.engine.drafts.chosen, self.engine.name)
        return [Completion("", "time", (), report)]

    def _texts(self, request: Request, cancel: Cancel | None) -> list[Completion]:
        """As ``complete``.

        Raises:
            Aborted: it was cancelled, or took too long, while something was judged.
        """
        spent = self.spent = Statistics()
        prepared = self._prepare(request, cancel)
        self.prompt_tokens = len(prepared.prompt)
        spent.grammar_ms = spent.total_ms = prepared.before_ms
        attempts = Attempts(self.engine, self._counts, self._sampling, prepared, cancel, spent)
        try:
            if request.count > 1:
                return attempts.several(request.count)
            completion = attempts.one()
            if self._layout is None and completion.finish_reason != "cancelled":
                completion = attempts.likeliest(completion)
        except GrammarGaveUp:
            if self._wanted_grammar(request) == "auto":
                give_up()
            raise  # it is the user's own
        return [] if completion.finish_reason == "cancelled" else [completion]

    def _prepare(self, request: Request, cancel: Cancel | None) -> PreparedRequest:
        text, offset = request.normalized()
        prefix, suffix = text[:offset], text[offset:]
        language = by_id(request.language)
        self._use_draft(request, self._patient)
        self._enter(request)
        limits = self._limits(request)
        began = perf_counter()
        grammar = self._wanted_grammar(request)
        if grammar == "auto":
            grammar = grammar_for(language, request.path, request.workspace) or "none"
        whole = (request.begins, request.ends)
        gate = self._config.gate
        with within(PREPARING_S):
            cursor = self._documents.context_at(request.path, language, grammar, text, offset, gate, whole)
        before_ms = (perf_counter() - began) * 1e3
        prompt = self._prompts.prompt(prefix[: offset - len(cursor.lead)], suffix, request, limits)
        self._learner.use(request.workspace, request.language, suffix)
        return PreparedRequest(prompt, cursor, request.language, limits, before_ms, suffix)

    def _wanted_grammar(self, request: Request) -> str:
        """A name, a file, ``none``, or ``auto``: the language's own."""
        return request.grammar or self._config.for_language(request.language).grammar

    def _use_draft(self, request: Request, wait: bool) -> None:
        drafts, name = self.engine.drafts, request.draft or self._config.for_language(request.language).draft
        drafts.choose(drafts.find(name, by_id(request.language)), wait)
        self._adapters.use()
        self._draft = drafts.chosen  # another completer may use another one

    def prefill(self, request: Request, cancel: Cancel | None = None) -> int:
        """Prefill the prompt of a completion at this position, ahead of the request.

        Tokens decoded before ``cancel`` is set, or ``abort`` is called, stay in the KV cache.

        Returns:
            How many tokens were decoded.
        """
        text, offset = request.normalized()
        self._adapters.use()
        self._enter(request)
        before = text[:offset]
        before = before[: offset - len(self._documents.lead(before))]  # which the completion generates again
        prompt = self._prompts.prompt(before, text[offset:], request, self._limits(request))
        decoded = self.engine.prefill(prompt, cancel)
        self._counts.read_ahead += decoded
        with suppress(CodespecError):  # the completion itself will report it
            self._use_draft(request, wait=False)
        return decoded

    @property
    def reading(self) -> bool:
        """Whether a prompt is being prefilled (a step of which always runs to its end); from any thread."""
        return self.engine.reading

    def status(self, languages: Iterable[str] = ()) -> dict[str, Any]:
        """The models that are loaded, and ``Counts`` since they were, as plain data; from any thread.

        ``draft``: the draft model of the latest request; while the wanted one loads, the one in use instead.
        ``drafts``: for each of ``languages``, the draft model that ``auto`` means.
        ``kept_mib``: of ``cache.memory_mib``, in use.
        ``settings``, ``draft_settings``: the value in force of each and, where the machine decided it, ``why``.
        ``target_lora``, ``draft_lora``: where they are set, with the ``problem`` that keeps an adapter from use.
        """
        drafts = self.engine.drafts
        return {
            "target": self.engine.name,
            "draft": draft_name(self._draft),
            "drafts": {each: draft_name(drafts.find("auto", by_id(each))) for each in languages},
            "grammar": self._config.grammar,
            **self._counts.as_json(),
            "kept_mib": round(self.engine.prompt_cache.kept_bytes / 2**20, 3),
            "context": self.engine.context_length,
            "threads": self.engine.threads,
            **self.engine.about,
            **self._adapters.told,
            "settings": {name: asdict(choice) for name, choice in self.engine.choices.items()},
            "draft_settings": {name: asdict(choice) for name, choice in drafts.choices.items()},
        }

    def _limits(self, request: Request) -> Limits:
        return Limits(request.max_tokens or self._config.max_tokens, self._config.time_budget_ms or None)

    def use_for_texts(self, draft: str = "auto", language: str = USUAL) -> None:
        """Prepare the engine for texts that belong to no document: nothing learnt is used, no prompt kept on the disk.

        Raises:
            CodespecError: the draft cannot be used.
        """
        drafts = self.engine.drafts
        drafts.choose(drafts.find(draft, by_id(language)), self._patient)
        self.use_no_document()

    def use_no_document(self) -> None:
        """The same, whatever the draft model is."""
        self._adapters.use()
        self.engine.drafts.use_learnt()
        self.engine.prompt_cache.enter("")

    def bounded(self, sampling: Sampling, time_budget_ms: float | None) -> Completer:
        """This completer with other settings of sampling and time; it shares everything else."""
        other = copy(self)
        other._sampling = sampling
        budget = 0 if time_budget_ms is None else max(1, int(time_budget_ms))
        other._config = replace(self._config, time_budget_ms=budget)
        return other

    def generate(
        self,
        prompt: str | Sequence[int],
        grammar: Grammar | None = None,
        count: int = 1,
        limits: Limits | None = None,
        draft: str = "auto",
        language: str = USUAL,
        file_name: str = "",
    ) -> Iterator[Completion]:
        """Different texts that follow ``prompt`` and match ``grammar``, without stop rules or trimming.

        A text that repeats an earlier one is dropped and another one sampled; after ``REPEATS`` repetitions in a row
        there are fewer than ``count``. At temperature 0 there is one.

        Args:
            prompt: token ids are taken as they are, nothing before them.
            file_name: shown to models that were trained with file names.

        Raises:
            CodespecError: the prompt is too long, or the draft cannot be used.
        """
        self.use_for_texts(draft, language)
        tokens = (
            text_prompt(self.engine.vocabulary, self._layout, prompt, file_name)
            if isinstance(prompt, str)
            else list(prompt)
        )
        if len(tokens) > self.engine.context_length:  # told before it is read
            size = f"{len(tokens):,} tokens, the model's context {self.engine.context_length:,}"
            raise CodespecError(f"the prompt has {size}; shorten it, or set a larger `target.context`")
        seen: set[str] = set()
        index = repeats = 0
        while len(seen) < count and repeats < (REPEATS if self._sampling.temperature else 1):
            sampling = replace(self._sampling, sample=self._sampling.sample + index)
            state = self.engine.grammar_state(grammar, (limits or Limits()).max_tokens) if grammar else None
            chunks = self.engine.generate(tokens, state, sampling, limits)
            stream = TextStream(Ending(None, None))
            name = grammar.name if grammar else "none"
            follow(chunks, stream.add)
            ended, spent = stream.end(), Statistics()
            count_spent(self.engine, self._counts, spent, stream.gate_ms)
            completion = completion_of(self.engine, ended, stream, name, spent)
            index += 1
            repeats = repeats + 1 if completion.text in seen else 0
            if not repeats:
                seen.add(completion.text)
                yield completion

    def _enter(self, request: Request) -> None:
        """Have KV caches from now on written to the disk under the request's workspace, or not at all."""
        kept = self._learner.may_keep(request.path, request.workspace, request.text)
        self._workspace = request.workspace if kept else ""
        self.engine.prompt_cache.enter(self._workspace)

    def learn(self, text: str, path: str, language: str, workspace: str = "", offset: int | None = None) -> None:
        """Add a document's n-grams to those of its workspace and language. Takes about 1 ms for 2 KB.

        Args:
            path: file name or URI.
            offset: of the cursor while the document is edited: its line is left out, and the document is learnt at
                most every few seconds. None: it was just opened or saved.
        """
        self._learner.learn(text, path, language, workspace, offset)

    def accepted(self, request: Request, text: str) -> None:
        """Add a completion that the user accepted to the n-grams of its workspace and language."""
        before = request.text[: request.offset]
        self._learner.accepted(before, text, request.path, request.language, request.workspace)

    def forget(self, workspace: str) -> None:
        """Delete the n-grams and KV caches of a workspace, in memory and on the disk.

        Raises:
            CodespecError: a file cannot be deleted.
        """
        self.engine.drafts.forget_generated()
        self._prompts.unread = []
        self._learner.forget(workspace)

    def idle(self, go_on: Callable[[], bool]) -> bool:
        """Use idle time: read the whole prompt where time allowed only a part, measure target calls of models that were
        not measured yet, save acceptance rates.

        Args:
            go_on: asked before every forward pass; where it says False, or ``abort`` is called, this returns.

        Returns:
            Whether nothing is left to do.
        """
        if self._prompts.unread:
            prompt, self._prompts.unread = self._prompts.unread, []
            # Another completer of this engine may have entered another workspace, or use another adapter.
            self.engine.prompt_cache.enter(self._workspace)
            self._adapters.use()
            self._counts.read_ahead += self.engine.prefill(prompt, Busy(go_on))
        done = self.engine.measure(go_on)
        self.engine.drafts.save(every_s=SAVE_EVERY_S)
        return done

    def abort(self) -> None:
        """Stop the running request, see ``Engine.abort``; from any thread."""
        self.engine.abort()

    def close(self) -> None:
        """Save what was learnt and free the models."""
        self.engine.close()


class Busy:
    """A ``Cancel`` that is set as soon as ``go_on`` says False."""

    def __init__(self, go_on: Callable[[], bool]) -> None:
        self._go_on = go_on

    def is_set(self) -> bool:
        return not self._go_on()
