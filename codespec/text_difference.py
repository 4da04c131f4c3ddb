"""What two versions of a text have in common."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Sequence
from difflib import Match, SequenceMatcher
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

MOST_COMPARED = 250_000
"""Pairs of parts that are compared, in some milliseconds; of twice as many it takes four times as long, or eight."""
MOST_IN_ALL = 4 * MOST_COMPARED
"""Where the parts are alike and nothing is long, the same pairs are looked at again and again, up to these."""


class _TooMuchError(Exception):
    """The pairs are too many."""


class _Bounded(SequenceMatcher[T]):
    """Raises ``_TooMuchError`` where comparing takes too long."""

    def __init__(self, old: Sequence[T], new: Sequence[T]) -> None:
        super().__init__(None, old, new, autojunk=False)
        self._sizes, self._left = (len(old), len(new)), MOST_IN_ALL

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        ahi, bhi = self._sizes[0] if ahi is None else ahi, self._sizes[1] if bhi is None else bhi
        self._left -= (ahi - alo) * (bhi - blo)
        if self._left < 0:
            raise _TooMuchError
        return super().find_longest_match(alo, ahi, blo, bhi)


def changes(old: Sequence[T], new: Sequence[T]) -> list[tuple[int, int, int, int]]:
    """Start and end of each change, in the parts of the old text and in those of the new one; of two texts that take
    long to compare, all between what both begin and end with."""
    if len(old) * len(new) <= MOST_COMPARED:
        with contextlib.suppress(_TooMuchError):
            codes = _Bounded(old, new).get_opcodes()
            return [(start, end, first, last) for tag, start, end, first, last in codes if tag != "equal"]
    start, end = common_parts(old, new)
    return [] if start == len(old) == len(new) else [(start, len(old) - end, start, len(new) - end)]


def common_parts(old: Sequence[T], new: Sequence[T]) -> tuple[int, int]:
    """How many parts two texts have in common at the beginning, and how many of the rest at the end."""
    most = min(len(old), len(new))
    start = next((index for index in range(most) if old[index] != new[index]), most)
    most -= start
    end = next((index for index in range(most) if old[-1 - index] != new[-1 - index]), most)
    return start, end


def common_ends(old: str, new: str) -> tuple[int, int]:
    """How many characters two texts have in common at the beginning, and how many of the rest at the end."""
    start = _common(old, new, 0, min(len(old), len(new)), end=False)
    return start, _common(old, new, 0, min(len(old), len(new)) - start, end=True)


def _common(old: str, new: str, low: int, high: int, end: bool) -> int:
    """Slices are compared in C: each half of the rest once, so all of it about twice."""
    while low < high:
        middle = (low + high + 1) // 2
        if end:
            same = old[len(old) - middle : len(old) - low] == new[len(new) - middle : len(new) - low]
        else:
            same = old[low:middle] == new[low:middle]
        low, high = (middle, high) if same else (low, middle - 1)
    return low
