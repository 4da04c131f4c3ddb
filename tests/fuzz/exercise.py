"""Everything a generation does with a grammar, each step checked and timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TypeVar

import numpy as np

from codespec.grammar import Grammar, byte_tokenizer
from codespec.protocols import CodespecError, GrammarState

T = TypeVar("T")
WORDS = (257 + 31) // 32
SECONDS = 3.0  # of processor time for one walk or one long text


@dataclass
class Report:
    """What one grammar did.

    Attributes:
        outcome: ``works``, or the error that ended it.
        slowest: seconds of processor time of the slowest single operation, and which it was.
    """

    outcome: str = "works"
    slowest: float = 0.0
    operation: str = ""

    def timed(self, name: str, operation: Callable[..., T]) -> T:
        """The operation's result; its time counts even if it fails."""
        began = time.process_time()
        try:
            return operation()
        finally:
            taken = time.process_time() - began
            if taken > self.slowest:
                self.slowest, self.operation = taken, name


def exercise(
    grammar: Grammar, rng: Random, walks: int = 3, steps: int = 60, length: int = 4000, report: Report | None = None
) -> Report:
    """Random walks along ``grammar`` with copies and rollbacks, then a long text; the engine may give up, no more.

    Raises:
        AssertionError: mask, ``allows``, ``accept``, ``copy`` and ``rollback`` contradict each other.
    """
    report = report or Report()
    try:
        state = report.timed("state", lambda: grammar.state(byte_tokenizer()))
        texts = [walk(state.copy(), rng, steps, report) for _ in range(walks)]
        for text in texts:
            again = state.copy()
            assert report.timed("accept", lambda s=again, t=text: s.accept(t)) == len(text), "fed afresh it is refused"
        longest = max(texts, key=len, default=[])
        feed_on(state, longest, report, length)
    except CodespecError as error:
        report.outcome = f"gives up: {error}"
        mask(grammar.state(byte_tokenizer()), report)  # the grammar outlives the state that gave up
    return report


def walk(state: GrammarState, rng: Random, steps: int, report: Report) -> list[int]:
    """Tokens chosen from the mask, with a look back and aside now and then."""
    taken: list[int] = []
    began = time.process_time()
    for _ in range(steps):
        if time.process_time() - began > SECONDS:
            break
        allowed = mask(state, report)
        for token in rng.sample(range(-1, 258), 4):
            assert report.timed("allows", lambda t=token: state.allows(t)) == (token in allowed), f"token {token}"
        assert not state.finished or allowed in ([], [256]), "what is finished has a continuation"
        if not allowed:
            break
        token = rng.choice(allowed)
        forced = report.timed("forced", state.forced)
        assert token == 256 or not forced or forced[0] == token, "what is forced is not what is allowed"
        assert report.timed("accept", lambda t=token: state.accept([t])) == 1, f"token {token} is refused"
        taken.append(token)
        if rng.random() < 0.15:
            back = rng.randint(1, len(taken))
            other = report.timed("copy", state.copy)
            report.timed("rollback", lambda n=back: state.rollback(n))
            assert state.accept(taken[-back:]) == back, "what was rolled back is refused"
            assert mask(state, report) == mask(other, report), "the mask differs after a rollback"
    return taken


def feed_on(state: GrammarState, tokens: list[int], report: Report, length: int = 4000) -> None:
    """Feed the text over and over, as far as it goes: what is ambiguous shows in the long run."""
    text = [token for token in tokens if token != 256]
    fed, began = 0, time.process_time()
    while text and fed < length and time.process_time() - began < SECONDS:
        state = report.timed("copy", state.copy)
        count = report.timed("accept", lambda s=state: s.accept(text))
        fed += count
        mask(state, report)
        if count < len(text):
            return


def mask(state: GrammarState, report: Report) -> list[int]:
    """The allowed tokens in order."""
    bits = np.full(WORDS, 0xFFFFFFFF, np.uint32)
    report.timed("mask", lambda: state.mask_into(bits))
    return [int(token) for token in np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little"))]
