"""What a person thinks of what is shown, by the author's text; and of what goes away again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from benchmarks.infill.outcome import similarity

Verdict = Literal["nothing", "useless", "acceptable", "good"]
VERDICTS: Sequence[Verdict] = ("nothing", "useless", "acceptable", "good")
ALIKE = 0.6
"""Similarity of two lines that a person would mend rather than write."""
_TOKEN = re.compile(r"\w+|[^\w\s]")


def verdict(shown: str, wanted: str) -> Verdict:
    """``good`` where the author's line is shown to its end, or all that is shown is right; ``acceptable`` where
    it begins with two right tokens, or its first line is nearly the author's.

    Args:
        shown: the ghost text.
        wanted: what the author wrote from the cursor on.
    """
    found, right = _TOKEN.findall(shown), _TOKEN.findall(wanted)
    if not found:
        return "nothing"
    own, line = _first(shown), _first(wanted)
    words = _TOKEN.findall(line)
    if words and _TOKEN.findall(own)[: len(words)] == words and len(_TOKEN.findall(own)) == len(words):
        return "good"
    if found == right[: len(found)] and (len(found) > 1 or len(found[0]) > 2):
        return "good"
    if len(found) > 1 and found[:2] == right[:2]:
        return "acceptable"
    return "acceptable" if similarity(own, line) >= ALIKE else "useless"


def is_flicker(before: str, typed: str, now: str) -> bool:
    """Whether a text that was shown is gone, or another one stands in its place, though what was typed is its own.

    What is longer than before is none, nor is one that was typed to its end.
    """
    if not before.startswith(typed):
        return False  # something else was typed
    left = _first(before[len(typed) :])
    return bool(left) and not _solid(_first(now)).startswith(_solid(left))


def _first(text: str) -> str:
    """Its first line that is not blank, without white space around it."""
    return next((line.strip() for line in text.split("\n") if line.strip()), "")


def _solid(text: str) -> str:
    """Without white space: editors draw it in their own ways."""
    return "".join(text.split())
