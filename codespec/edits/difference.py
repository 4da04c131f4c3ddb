"""The smallest changes that make one text of another: of lines first, then of words in them, then of their ends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from codespec.edits.lines import lines_of
from codespec.text_difference import changes

_WORDS = re.compile(r"\w+|[^\S\n]+|\n|[^\w\s]")


class Hunk(NamedTuple):
    """What stood from ``start`` to ``end`` of a text became ``text``."""

    start: int
    end: int
    text: str


def words_of(text: str) -> list[str]:
    """Words, runs of spaces, line ends and signs; joined they are the text."""
    return _WORDS.findall(text)


def whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """A place with the rest of the words at both ends."""
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return start, end


def hunks(old: str, new: str) -> list[Hunk]:
    """The changes from ``old`` to ``new``, ascending; no line, and no word at the end of one, is in them that stays."""
    return [_trimmed(old, each) for each in word_hunks(old, new)]


def applied(old: str, made: Sequence[Hunk]) -> str:
    """The text with ascending changes made."""
    for each in reversed(made):
        old = old[: each.start] + each.text + old[each.end :]
    return old


def word_hunks(old: str, new: str) -> list[Hunk]:
    """As ``hunks``, in whole words."""
    found: list[Hunk] = []
    for start, end, text in _differences(lines_of(old), lines_of(new)):
        if not text or start == end:
            found.append(Hunk(start, end, text))
            continue
        for low, high, changed in _differences(words_of(old[start:end]), words_of(text)):
            found.append(Hunk(start + low, start + high, changed))
    return found


def _trimmed(old: str, hunk: Hunk) -> Hunk:
    """Where words only become longer or shorter, what comes or goes; else whole words, which can be read."""
    gone, text = old[hunk.start : hunk.end], hunk.text
    if text.startswith(gone):
        return Hunk(hunk.end, hunk.end, text[len(gone) :])
    if text.endswith(gone):
        return Hunk(hunk.start, hunk.start, text[: len(text) - len(gone)])
    if gone.startswith(text):
        return Hunk(hunk.start + len(text), hunk.end, "")
    return Hunk(hunk.start, hunk.end - len(text), "") if gone.endswith(text) else hunk


def _differences(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Start and end of each change, in characters of the joined ``old``, and what stands there in ``new``."""
    starts = [0]
    for part in old:
        starts.append(starts[-1] + len(part))
    for low, high, new_low, new_high in changes(old, new):
        yield starts[low], starts[high], "".join(new[new_low:new_high])
