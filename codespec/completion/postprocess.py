"""What is done to a generated text before it is shown."""

from __future__ import annotations

CLOSERS = {")": "(", "]": "[", "}": "{"}
# An overlap with what follows the cursor is trimmed as a repetition from this length on; shorter ones
# are so often chance that only brackets and quotes that are one too many go.
SURE_OVERLAP = 4


def trim_suffix_overlap(text: str, suffix: str) -> str:
    """``text`` without an end that what follows the cursor begins with.

    ``foo(|)`` and ``a, b)`` give ``a, b``; ``foo(|)`` and ``bar()`` stay ``bar()``.
    """
    # White space at the cursor may or may not have been generated again.
    for following in dict.fromkeys((suffix, suffix.lstrip(" \t"))):
        for size in range(min(len(text), len(following)), 0, -1):
            overlap = following[:size]
            if text.endswith(overlap) and _is_repetition(text, overlap):
                return text[:-size]
    return text


def _is_repetition(text: str, overlap: str) -> bool:
    return len(overlap.strip()) >= SURE_OVERLAP or "\n" in overlap.rstrip() or _is_one_too_many(text, overlap)


def _is_one_too_many(text: str, overlap: str) -> bool:
    if any(c not in ")]}\"'`;,: " for c in overlap):
        return False
    if any(c in CLOSERS for c in overlap):
        return unmatched_closers(text) >= sum(c in CLOSERS for c in overlap)
    mark = overlap.strip()[:1]
    if mark in ('"', "'", "`"):
        return text.count(mark) % 2 == 1
    return mark != ""


def unmatched_closers(text: str) -> int:
    """How many closing brackets in ``text`` close nothing that it opened."""
    open_brackets: list[str] = []
    unmatched = 0
    for character in text:
        if character in "([{":
            open_brackets.append(character)
        elif character in CLOSERS:
            if open_brackets and open_brackets[-1] == CLOSERS[character]:
                open_brackets.pop()
            else:
                unmatched += 1
    return unmatched
