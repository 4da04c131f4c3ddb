"""Several texts in one pass: each proposes, the target reads its weights once for all, each accepts its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import NamedTuple, TypeAlias

from codespec.protocols import Aborted, CodespecError, ContextFull, Logits, Proposal, Round
from codespec.speculative.generate import Generator
from codespec.speculative.run import NOTHING, Run, since

Outcome: TypeAlias = "Round | CodespecError"


class Text(NamedTuple):
    """One of them: a generator with a sequence of its own, all of one context, and a run that it has begun."""

    generator: Generator
    run: Run

    @property
    def lacking(self) -> list[int]:
        """The text's tokens that the sequence does not hold yet: the last one, at least."""
        return self.run.tokens[len(self.generator.sequence.tokens) :]


def next_rounds(
    texts: Sequence[Text], most_rows: int, on_pass: Callable[[int, int, float], object] = lambda rows, held, ms: None
) -> list[Outcome]:
    """The next round of every text, from one pass of the target, or why that text cannot go on.

    Args:
        most_rows: that a pass may have.
        on_pass: called with the tokens decoded, the most that a sequence held before, and the milliseconds.

    Raises:
        Aborted: another thread asked to stop; every text is as before the call.
        ContextFull: no room for one more token of each; every text is as before the call.
        CodespecError: decoding failed; every text is as before the call.
    """
    rounds = [text.generator.propose(text.run) for text in texts]
    live = [(text, step) for text, step in zip(texts, rounds, strict=True) if isinstance(step, Proposal)]
    if live:
        settled = iter(_pass([text for text, _ in live], [step for _, step in live], most_rows, on_pass))
        return [step if isinstance(step, Round) else next(settled) for step in rounds]
    return [step for step in rounds if isinstance(step, Round)]


def _pass(
    texts: Sequence[Text],
    proposals: list[Proposal],
    most_rows: int,
    on_pass: Callable[[int, int, float], object],
) -> list[Outcome]:
    proposals = _cut(texts, proposals, most_rows)
    try:
        try:
            began = perf_counter()
            logits, counts = _decode(texts, proposals)
        except ContextFull:
            if not any(each.tokens for each in proposals):
                raise
            proposals = [NOTHING] * len(texts)
            logits, counts = _decode(texts, proposals)
    except (Aborted, CodespecError):
        for text in texts:
            text.run.bring_draft_grammar_along(0, ())  # nothing of the proposal was decoded
            text.run.ahead = 0
        raise
    ms = since(began)
    on_pass(sum(counts), max(len(text.run.tokens) for text in texts) - 1, ms)
    share, last = ms / len(texts), 0
    found: list[Outcome] = []
    for text, proposal, count in zip(texts, proposals, counts, strict=True):
        last += count
        statistics = text.run.statistics
        statistics.target_calls += 1
        statistics.target_ms += share
        statistics.verify_ms += share
        try:
            found.append(text.generator.settle(text.run, proposal, logits[last - 1 - len(proposal.tokens) : last]))
        except CodespecError as error:
            found.append(error)
    return found


def _cut(texts: Sequence[Text], proposals: Sequence[Proposal], most_rows: int) -> list[Proposal]:
    """The proposals as far as a pass has rows for them."""
    room = most_rows - sum(len(text.lacking) for text in texts)
    found = []
    for proposal in proposals:
        found.append(proposal if len(proposal.tokens) <= room else proposal.first(max(0, room)))
        room -= len(found[-1].tokens)
    return found


def _decode(texts: Sequence[Text], proposals: Sequence[Proposal]) -> tuple[Logits, list[int]]:
    """The logits of all texts, and how many rows each has."""
    tokens = [[*text.lacking, *proposal.tokens] for text, proposal in zip(texts, proposals, strict=True)]
    logits = texts[0].generator.sequence.extend_each([text.generator.sequence for text in texts], tokens)
    return logits, [len(each) for each in tokens]
