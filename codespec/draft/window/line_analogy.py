"""Lines that are like a changed one, changed as it was: an argument added to one call is added to the next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate

from codespec.text_difference import changes

LEAST_ALIKE = 0.5
"""Of the signs and words of two lines, words counted twice, that both must have for one to be changed as the other."""

LONGEST_LINE = 400
"""Bytes of a line that is looked at: to compare two takes the square of their lengths."""

_LEXEME = re.compile(rb"\w+|[ \t]+|[^\w \t]")
_WORD = re.compile(rb"\w")


@dataclass(frozen=True)
class Replacement:
    """Bytes ``start`` to ``end`` of a line, which may be none, and what stands there then."""

    start: int
    end: int
    new: bytes


class ChangedLine:
    """A line as it was and as it is.

    Attributes:
        old, new: without the ends of the lines.
    """

    def __init__(self, old: bytes, new: bytes) -> None:
        self.old, self.new = old, new
        self._old, new_lexemes = _LEXEME.findall(old), _LEXEME.findall(new)
        self._words = {each for each in self._old if _WORD.match(each)}
        codes = SequenceMatcher(None, self._old, new_lexemes, autojunk=False).get_opcodes()
        self._edits = [(a, b, new_lexemes[c:d]) for tag, a, b, c, d in codes if tag != "equal"]

    def analogy(self, line: bytes) -> tuple[float, list[Replacement]] | None:
        """How alike a line is to the old one, and the replacements that change it as that was; None where it is too
        unlike, or lacks what was replaced."""
        lexemes = _LEXEME.findall(line)
        if len(line) > LONGEST_LINE or self._words.isdisjoint(lexemes):
            return None
        codes = SequenceMatcher(None, self._old, lexemes, autojunk=False).get_opcodes()
        where = {a + n: c + n for tag, a, b, c, _ in codes if tag == "equal" for n in range(b - a)}
        alike = _weight([self._old[n] for n in where]) / max(1, _weight(self._old), _weight(lexemes))
        if alike < LEAST_ALIKE:
            return None
        swapped = {
            self._old[a + n]: lexemes[c + n]
            for tag, a, b, c, d in codes
            if tag == "replace" and b - a == d - c
            for n in range(b - a)
        }
        found = []
        borders = [0, *accumulate(map(len, lexemes))]
        for start, end, new in self._edits:
            place = _place(start, end, where, len(self._old), len(lexemes))
            if place is None:
                return None
            text = b"".join(swapped.get(each, each) for each in new)
            begin, stop = borders[place[0]], borders[place[1]]
            if begin == stop and _WORD.search(text) and (line.startswith(text, begin) or line.endswith(text, 0, begin)):
                return None  # it was changed so already
            found.append(Replacement(begin, stop, text))
        return alike, found


def _weight(lexemes: Sequence[bytes]) -> int:
    return sum(2 if _WORD.match(each) else 1 for each in lexemes if each.strip())


def _place(start: int, end: int, where: dict[int, int], old: int, new: int) -> tuple[int, int] | None:
    """Where lexemes of the old line stand in the other one; None where they do not, or not in a row."""
    if start < end:
        if any(n not in where for n in range(start, end)) or where[end - 1] - where[start] != end - 1 - start:
            return None
        return where[start], where[end - 1] + 1
    if start in where:
        return where[start], where[start]
    if start - 1 in where:
        return where[start - 1] + 1, where[start - 1] + 1
    if start == old and old:
        return new, new
    return None


def changed_lines(old: bytes, new: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The lines of two texts that stand for each other and differ; long ones are passed over."""
    one, other = old.splitlines(), new.splitlines()
    for a, b, c, d in changes(one, other):
        if b - a == d - c:
            pairs = zip(one[a:b], other[c:d], strict=True)
            yield from (pair for pair in pairs if max(map(len, pair)) <= LONGEST_LINE)
