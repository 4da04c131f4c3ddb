"""What two versions of a text have in common."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

MOST_COMPARED = 250_000
"""Pairs of parts that are compared, in some milliseconds; of twice as many it takes four times as long, or eight."""


def changes(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Start and end of each change, in the parts of the old text and in those of the new one; of two texts with many
    parts, all between what both begin and end with."""
    if len(old) * len(new) <= MOST_COMPARED:
        codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        return [(start, end, first, last) for tag, start, end, first, last in codes if tag != "equal"]
    start, end = common_parts(old, new)
    return [] if start == len(old) == len(new) else [(start, len(old) - end, start, len(new) - end)]


def common_parts(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
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
