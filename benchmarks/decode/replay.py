"""Targets for measuring: one that counts its time, one that writes a text that is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np

from codespec.draft.wrapped_target import WrappedTarget
from codespec.protocols import Logits, Target


class TimedTarget(WrappedTarget):
    """Passes everything on to ``target`` and adds up the time of its passes.

    Attributes:
        ms: milliseconds in ``decode`` so far.
    """

    def __init__(self, target: Target, clock: Callable[[], float] = perf_counter) -> None:
        super().__init__(target)
        self._clock = clock
        self.ms = 0.0

    def decode(self, tokens: Sequence[int], last: int | None = None) -> Logits:
        began = self._clock()
        logits = super().decode(tokens, last)
        self.ms += (self._clock() - began) * 1e3
        return logits


class ReplayTarget(TimedTarget):
    """Does the work of ``target`` and then says what a known text says: its time, a better writer's choice.

    A small model repeats itself, which flatters drafts that copy. Replayed text is what a person wrote.

    Attributes:
        text: token ids, prompt included; None lets the target speak for itself.
    """

    text: Sequence[int] | None = None

    def decode(self, tokens: Sequence[int], last: int | None = None) -> Logits:
        logits = super().decode(tokens, last)
        if self.text is None:
            return logits
        began = self._clock()
        known = np.full(logits.shape, -30.0, np.float32)
        first = self.n_past - len(logits) + 1
        for row, place in enumerate(range(first, first + len(logits))):
            if place < len(self.text):
                known[row, self.text[place]] = 0.0
        self.ms += (self._clock() - began) * 1e3  # not the time of what is measured
        return known
