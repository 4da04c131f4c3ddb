"""Finds where a generated text begins to repeat itself."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise

SIMILAR_LINES = 5
"""Lines in a row that resemble each other are one too many from this number on."""
CYCLE, ROUNDS, LONG_LINE = 3, 3, 8
"""So many lines at most, so many times over; a single line of so many characters at least."""
LONGEST_PHRASE, TIMES, AT_LEAST = 40, 5, 20
"""Within a line: characters of a phrase, how often it comes in a row, and how many characters that makes."""
SIGNS, ROWS, LONG_ROW = 4, 8, 48
"""Tables and rulers repeat numbers and signs: so many different ones in a phrase, so often, and so many characters."""
QUOTES = frozenset("\"'`")
"""Signs that no table or ruler is made of."""
BLANKS = (100, 30)
"""Spaces, and tabs, in a row that no line begins with."""
ALIKE_COMMENTS = 3
"""Comments that differ in numbers alone are one too many from this number on."""
MOST_COMPARED = 100_000
"""Characters of a text times those that may differ: a fifth of a second."""
_NUMBER = re.compile(r"\d+")
ALIKE = 0.1
"""Lines resemble each other if so much of the longer one would have to be changed at most."""


class Repetition:
    """Follows one text as it grows; the steps in which it grows make no difference.

    Args:
        start: where to begin: the text before is the document's own.
        comment: what begins a comment of one line; empty where nothing does.
    """

    def __init__(self, start: int = 0, comment: str = "") -> None:
        self._comment = comment
        self._read = self._line = start
        self._runs: dict[int, int] = {}  # characters in a row that equal the one so much further back
        self._lines: deque[tuple[int, str]] = deque(maxlen=max(SIMILAR_LINES, CYCLE * ROUNDS))
        self.found: tuple[int, int] | None = None

    def follow(self, text: str) -> tuple[int, int] | None:
        """Where the repetition shows, and the length of the text up to the end of its first occurrence."""
        while self.found is None and self._read < len(text):
            at, self._read = self._read, self._read + 1
            if text[at] == "\n":
                self._lines.append((self._line, text[self._line : at].strip()))
                self._line, self._runs = at + 1, {}
                self.found = self._of_lines(at)
            else:
                self.found = self._of_a_phrase(text, at)
        return self.found

    def _of_a_phrase(self, text: str, at: int) -> tuple[int, int] | None:
        before, self._runs = self._runs, {}
        for size in _same(text, at, max(self._line, at - LONGEST_PHRASE)):
            self._runs[size] = before.get(size, 0) + 1
            length = self._runs[size] + size
            if length < max(size * TIMES, AT_LEAST):
                continue
            start = at + 1 - length
            if size == 1 and text[at].isspace() and length >= BLANKS[text[at] == "\t"]:
                return at + 1, start
            phrase = text[start : start + size]
            words = phrase.isalnum() or any(character.isalpha() or character == "_" for character in phrase)
            signs = len(set(phrase)) >= SIGNS or not QUOTES.isdisjoint(phrase)
            if words or (signs and length >= max(size * ROWS, LONG_ROW)):
                return at + 1, _end_of_word(text, start + size, start + 2 * size)
        return None

    def _of_lines(self, at: int) -> tuple[int, int] | None:
        lines = list(self._lines)
        again = self._comment_again(lines)
        if again is not None:
            return at, self._end(again)
        for size in range(1, CYCLE + 1):
            last = [line for _, line in lines[-size * ROUNDS :]]
            long = size > 1 or len(last[0]) >= LONG_LINE
            if len(last) == size * ROUNDS and any(last) and long and last == last[:size] * ROUNDS:
                return at, self._end(lines[-size * ROUNDS + size][0])
        last = [line for _, line in lines[-SIMILAR_LINES:]]
        alike = len(last) == SIMILAR_LINES and all(similar(a, b) for a, b in pairwise(last))
        return (at, self._end(lines[-SIMILAR_LINES + 1][0])) if alike else None

    def _comment_again(self, lines: Sequence[tuple[int, str]]) -> int | None:
        """Where the second one begins of comments that say the same: of two, or of three that differ in numbers alone.

        Models list examples without end in comments, and nobody misses the second one.
        """
        last = lines[-1][1]
        says = self._comment and last.startswith(self._comment) and any(map(str.isalnum, last))
        if not says or len(last) < LONG_LINE:
            return None
        if any(line == last for _, line in lines[:-1]):
            return lines[-1][0]
        shape = _NUMBER.sub("0", last)
        alike = [start for start, line in lines if _NUMBER.sub("0", line) == shape]
        return alike[1] if len(alike) >= ALIKE_COMMENTS else None

    @staticmethod
    def _end(start: int) -> int:
        """Before the line end in front of the line at ``start``."""
        return max(0, start - 1)


def _same(text: str, at: int, start: int) -> Iterator[int]:
    """How far before ``at``, in ``text[start:at]``, the same character stands, nearest first."""
    place = text.rfind(text[at], start, at)
    while place >= 0:
        yield at - place
        place = text.rfind(text[at], start, place)


def _end_of_word(text: str, at: int, limit: int) -> int:
    """The first place from ``at`` on that is not within a word; ``at`` itself where there is none up to ``limit``."""
    for place in range(at, limit):
        if not (text[place - 1 : place + 1].isidentifier() or text[place - 1 : place + 1].isalnum()):
            return place
    return at


def similar(one: str, other: str) -> bool:
    """Whether two lines, neither of them blank, say nearly the same."""
    if not one or not other:
        return False
    return one == other or within(one, other, int(ALIKE * max(len(one), len(other))))


def within(one: str, other: str, limit: int) -> bool:
    """Whether no more than ``limit`` characters need to be put in, taken out or exchanged to make one the other; not of
    texts that are too long to tell."""
    if one == other:
        return True
    if limit <= 0 or abs(len(one) - len(other)) > limit or len(one) * limit > MOST_COMPARED:
        return False
    # Levenshtein's table, only as far to either side of the diagonal as can matter.
    row = {j: j for j in range(min(limit, len(other)) + 1)}
    for i, character in enumerate(one, 1):
        last, row = row, {}
        for j in range(max(0, i - limit), min(len(other), i + limit) + 1):
            best = last.get(j, limit) + 1
            if j:
                best = min(best, row.get(j - 1, limit) + 1, last.get(j - 1, limit + 1) + (character != other[j - 1]))
            row[j] = best
        if min(row.values()) > limit:
            return False
    return row.get(len(other), limit + 1) <= limit
