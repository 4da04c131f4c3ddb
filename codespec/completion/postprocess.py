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
    following = suffix.lstrip(" \t") if not text.endswith((" ", "\t")) else suffix
    for size in range(min(len(text), len(following)), 0, -1):
        if not text.endswith(following[:size]):
            continue
        overlap = following[:size]
        if len(overlap.strip()) >= SURE_OVERLAP or "\n" in overlap.rstrip() or _is_one_too_many(text, overlap):
            return text[:-size]
    return text


def _is_one_too_many(text: str, overlap: str) -> bool:
    if any(c not in ")]}\"'`;,: " for c in overlap):
        return False
    if any(c in CLOSERS for c in overlap):
        return unmatched_closers(text) >= sum(c in CLOSERS for c in overlap)
    quote = overlap.strip()[:1]
    return bool(quote) and quote in "\"'`" and text.count(quote) % 2 == 1


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
