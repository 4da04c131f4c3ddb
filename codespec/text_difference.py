"""What two versions of a text have in common."""

from __future__ import annotations


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
