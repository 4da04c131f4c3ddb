"""The texts that are tried for one completion: one after the other, or several in one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from time import perf_counter

from codespec.completion.choice import OTHERS, following_lines, most_likely, time_for_others
from codespec.completion.counts import Counts
from codespec.completion.ending.ending import Ended
from codespec.completion.ending.stream import TextStream, follow, follow_all
from codespec.completion.prepared import PreparedRequest
from codespec.completion.report import report_of
from codespec.completion.request import Completion
from codespec.completion.trace import passes
from codespec.engine.engine import Engine
from codespec.engine.parallel import TOGETHER
from codespec.line_ends import line_feeds
from codespec.protocols import Cancel, Limits, Sampling, Statistics

# The first alternative has the temperature of the settings; the others are sampled at this one or a higher one.
ALTERNATIVE_TEMPERATURE = 0.8
ATTEMPTS = 6
"""Texts that are generated, as long as there is time, for one completion before it is given up, because none fits what
follows the cursor."""
DRAWN = 3
"""Texts that are generated for each of several completions before fewer are given, because they repeat each other."""
A_LINE = 12
"""Target calls that another text should have time for."""


class Attempts:
    """Texts for one request.

    Args:
        counts, spent: what they take is added to both.
        sampling: of the settings.
    """

    def __init__(
        self,
        engine: Engine,
        counts: Counts,
        sampling: Sampling,
        prepared: PreparedRequest,
        cancel: Cancel | None,
        spent: Statistics,
    ) -> None:
        self._engine, self._counts, self._sampling = engine, counts, sampling
        self._prepared, self._cancel, self._spent = prepared, cancel, spent

    def one(self, sampling: Sampling | None = None) -> Completion:
        """One text, sampled again (``ATTEMPTS``) where no part of it fits.

        Args:
            sampling: None is that of the settings.
        """
        prepared, sampling = self._prepared, sampling or self._sampling
        cursor = prepared.cursor
        beginnings = [""] * ATTEMPTS
        for attempt in count():
            beginning = beginnings.pop(0)
            if attempt > 0 and not beginning:
                sampling = _another(sampling)
            state, ending = cursor.state(self._engine, attempt, beginning), prepared.ending()
            chunks = self._engine.generate(
                prepared.prompt, state, sampling, self._left(), self._cancel, language=prepared.language
            )
            stream = TextStream(ending, state.wanted if state else ())
            follow(chunks, stream.add)
            ended = stream.end()
            self._engine.drafts.remember(prepared.prompt, stream.tokens)
            count_spent(self._engine, self._counts, self._spent, stream.gate_ms)
            completion = self._completion(ended, stream)
            # A model that would end at once has nothing to add; one whose text came to nothing may have.
            silent = attempt == 0 and not stream.says_more_than(cursor.lead)
            silent = silent and (state is None or state.end_was_wanted)
            said = completion.text or (silent and completion.report["gate"] != "dropped")
            if attempt == 0 and ending.another_beginning:
                beginnings.insert(0, ending.another_beginning)
            if said or completion.finish_reason == "cancelled" or not beginnings:
                break
            left_ms = self._left().time_budget_ms
            if left_ms is not None and left_ms < A_LINE * self._engine.pass_ms(len(prepared.prompt)):
                break
        return completion

    def likeliest(self, first: Completion) -> Completion:
        """``first``, or another candidate after which what follows the cursor is more likely, where time allows one."""
        prepared, cancel, spent = self._prepared, self._cancel, self._spent
        began, cursor = perf_counter(), prepared.cursor
        following = following_lines(prepared.suffix)
        prompt = prepared.prompt
        taken = replace(spent, total_ms=spent.total_ms - prepared.before_ms)
        limits = time_for_others(self._engine, len(prompt), taken, following, prepared.limits) if following else None
        own = [cursor.lead + first.text + following]
        if limits is None or not (chances := self._engine.chances(prompt, own, cancel)):
            return first  # no time, or an engine that does not tell: it is not asked for candidates
        samplings = [replace(_warm(self._sampling), sample=self._sampling.sample + n + 1) for n in range(OTHERS)]
        others = self._together(samplings, limits)
        new = {each.text: each for each in reversed(others) if each.text not in ("", first.text)}
        if any(each.finish_reason == "cancelled" for each in others) or not new:
            return first
        told = self._engine.chances(prompt, [cursor.lead + text + following for text in new], cancel)
        chances, found = (chances + told, [first, *new.values()]) if first.text else (told, [*new.values()])
        spent.total_ms = max(spent.total_ms, taken.total_ms + prepared.before_ms + (perf_counter() - began) * 1e3)
        return found[most_likely(chances)] if told else first

    def several(self, count: int) -> list[Completion]:
        """Different texts, decoded in parallel, the first one that of ``one``; a repeated text is sampled again."""
        prepared, spent = self._prepared, self._spent
        budget = prepared.limits.time_budget_ms
        found: dict[str, Completion] = {}
        drawn = 0
        while len(found) < count and drawn < DRAWN * count:
            indices = range(drawn, drawn + min(TOGETHER, count - len(found)))
            samplings = [replace(self._sampling, sample=self._sampling.sample + index) for index in indices]
            samplings = [_warm(each) if index > 0 else each for index, each in zip(indices, samplings, strict=True)]
            completions = self._together(samplings, self._left())
            if any(each.finish_reason == "cancelled" for each in completions):
                return []
            for completion in completions:
                found.setdefault(completion.text, completion)
            drawn = indices.stop
            if budget and spent.total_ms - prepared.before_ms > budget / 2:
                break
        if not any(text for text in found):
            return [self.one(_another(self._sampling))]
        return [completion for text, completion in found.items() if text]

    def _together(self, samplings: Sequence[Sampling], limits: Limits) -> list[Completion]:
        prepared = self._prepared
        states = [prepared.cursor.state(self._engine) for _ in samplings]
        streams = [TextStream(prepared.ending(), state.wanted if state else ()) for state in states]
        stopped: set[int] = set()
        chunks = self._engine.generate_together(prepared.prompt, states, samplings, limits, self._cancel, stopped)
        ends = follow_all(chunks, streams, stopped)
        count_spent(self._engine, self._counts, self._spent, sum(each.gate_ms for each in streams))
        return [self._completion(ended, stream) for ended, stream in zip(ends, streams, strict=True)]

    def _completion(self, ended: Ended, stream: TextStream) -> Completion:
        cursor = self._prepared.cursor
        ended = replace(ended, text=line_feeds(ended.text))  # as the document has them here
        return completion_of(self._engine, ended, stream, cursor.grammar.note, self._spent).without(cursor.lead)

    def _left(self) -> Limits:
        """The limits, with the time that is left of theirs; preparing took none of it."""
        limits = self._prepared.limits
        if not limits.time_budget_ms:
            return limits
        return replace(limits, time_budget_ms=limits.time_budget_ms - (self._spent.total_ms - self._prepared.before_ms))


def count_spent(engine: Engine, counts: Counts, spent: Statistics, gate_ms: float) -> None:
    """Add what the latest generation took to ``counts`` and ``spent``."""
    latest = engine.statistics
    spent.add(latest)
    counts.add(latest, engine.pass_ms(latest.prefill_tokens + latest.reused_tokens))
    spent.grammar_ms += gate_ms
    spent.total_ms += gate_ms


def completion_of(engine: Engine, ended: Ended, stream: TextStream, grammar: str, spent: Statistics) -> Completion:
    """The completion of a finished generation.

    Args:
        grammar: what the report says of it.
        spent: of all attempts so far.
    """
    return Completion(
        ended.text,
        ended.reason,
        tuple(stream.rounds),
        report_of(spent, grammar, ended.gate, engine.drafts.chosen, engine.name),
        passes=passes(stream.rounds, stream.times_ms, engine.vocabulary),
        broken_line=ended.broken_line,
        invented=ended.invented,
    )


def _warm(sampling: Sampling) -> Sampling:
    return replace(sampling, temperature=max(sampling.temperature, ALTERNATIVE_TEMPERATURE))


def _another(sampling: Sampling) -> Sampling:
    """For the next attempt at the same completion: other noise than that of any alternative."""
    return replace(_warm(sampling), seed=sampling.seed + 1)
