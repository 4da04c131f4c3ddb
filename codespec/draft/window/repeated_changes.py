"""What one place of a text was changed to, expected again at the next places that read alike."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from codespec.draft.text import TAIL, tokenize_after
from codespec.draft.window.window_text import WindowText

LONGEST_CHANGE = 200
"""Bytes of a change, before or after it, that is expected again."""

MOST_PLACES = 64
"""Places at which one change is expected again at most."""

_VERY_ALIKE, _DOUBTFUL = 0.75, 0.9
_VALUES = frozenset({b"None", b"True", b"False", b"null", b"nil", b"true", b"false", b"undefined"})
_MERGED = 2  # tokens before and after a change that may be cut elsewhere with it

_LEXEME = re.compile(rb"\w+|\s+|[^\w\s]")
_WORD = re.compile(rb"\w")
_CALL = re.compile(rb"\w[^\w\s][ \t]*\Z")  # what is inserted there need not stand before the same text again


@dataclass(eq=False)
class Change:
    """A replaced text, as short as it still says where it belongs.

    Attributes:
        old, new: bytes; ``old`` is never empty.
        alike: how alike the lines are where it is expected, 1 where it is the same text; see ``line_analogy``.
        taken, declined: places where it was expected and came, and where it did not come.
    """

    old: bytes
    new: bytes
    alike: float = 1.0
    taken: int = 0
    declined: int = 0

    @property
    def trusted(self) -> bool:
        """Whether it is still expected."""
        return self.declined <= self.taken + (self.alike == 1.0)

    @property
    def bin(self) -> int:
        """How often it has come, as the bin of an expectation: not yet, once, more often, or not always; then the same
        by analogy, where it is the more alike first."""
        if self.alike == 1.0:
            return 3 if self.declined else min(self.taken, 2)
        if self.taken == 0:
            return 4 if self.alike >= _VERY_ALIKE else 5
        return 7 if self.declined else 6


@dataclass(frozen=True)
class Expected:
    """A change at one place of a window.

    Attributes:
        tokens: that are expected in place of the window's from the place to ``end``; at least one, and the first is
            another one than the window's.
        end: index of the window's token after them.
    """

    change: Change
    tokens: tuple[int, ...]
    end: int


def changes_between(old: bytes, new: bytes, before: bytes = b"", after: bytes = b"") -> list[Change]:
    """What may be replaced elsewhere as it was between two texts: words, if as many stand in both.

    Args:
        before, after: what stands around both; a change that is part of a word, or an insertion, takes from it.
    """
    one, other = _LEXEME.findall(old), _LEXEME.findall(new)
    found = _words(one, other) if max(len(old), len(new)) <= 8 * LONGEST_CHANGE else {}
    if found and not _continues(one[0], before[-1:], found) and not _continues(one[-1], after[:1], found):
        stay = {left for left, right in zip(one, other, strict=True) if left == right}
        return [_of_word(left, right, left in stay) for left, right in found.items()]
    whole = _whole_words(old, new, before, after)
    return [whole] if whole is not None else []


def _words(old: list[bytes], new: list[bytes]) -> dict[bytes, bytes]:
    """The words that were replaced, by what; empty where it is more than words, or not by the same."""
    found: dict[bytes, bytes] = {}
    if len(old) == len(new):
        for left, right in zip(old, new, strict=True):
            if left != right and (not _word(left) or found.setdefault(left, right) != right):
                return {}
    return found


def _continues(lexeme: bytes, neighbour: bytes, found: dict[bytes, bytes]) -> bool:
    """Whether a replaced lexeme at the edge of the texts is only a part of a word."""
    return lexeme in found and bool(_WORD.match(neighbour))


def _telling(text: bytes) -> bool:
    """Whether a text alone says enough to be replaced wherever it stands."""
    return len(text) > 1 and _WORD.match(text) is not None and not text.isdigit()


def _word(text: bytes) -> bool:
    """Whether a text is a name, however short."""
    return text not in _VALUES and (_telling(text) or text.isalpha())


def _of_word(old: bytes, new: bytes, stays: bool = False) -> Change:
    """A replaced word; doubtful where it is a letter, or ``stays`` at other places."""
    return Change(old, new, _DOUBTFUL if stays or len(old) == 1 else 1.0)


def _whole_words(old: bytes, new: bytes, before: bytes, after: bytes) -> Change | None:
    """The replaced text without what both begin and end with, then with whole words around it."""
    begin = _common_prefix(old, new)
    end = _common_prefix(old[begin:][::-1], new[begin:][::-1])
    before, after = before + old[:begin], old[len(old) - end :] + after
    old, new = old[begin : len(old) - end], new[begin : len(new) - end]
    if not old and not new:
        return None
    left = _word_before(before) if _WORD.match(old[:1] or new[:1]) else b""
    right = _word_after(after) if _WORD.match(old[-1:] or new[-1:]) else b""
    if left + right and _word(left + old + right) and len(left + old + right) == 1:
        return _of_word(left + old + right, left + new + right)
    if not _telling(left + old + right) or left + old + right in _VALUES:
        left = left or _lexeme_before(before)
        if old or not _CALL.search(left):
            right = right or _lexeme_after(after)
    old, new = left + old + right, left + new + right
    if not old.strip() or b"\n" in old or max(len(old), len(new)) > LONGEST_CHANGE:
        return None
    return Change(old, new)


def _common_prefix(one: bytes, other: bytes) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _word_before(text: bytes) -> bytes:
    place = len(text)
    while place and _WORD.match(text[place - 1 : place]):
        place -= 1
    return text[place:]


def _word_after(text: bytes) -> bytes:
    found = re.match(rb"\w*", text)
    return found[0] if found else b""


def _lexeme_before(text: bytes) -> bytes:
    """The last word, or the last sign and the word before it, with the blanks after it."""
    found = re.match(rb"[ \t]*(?:\w+|[^\w\s]\w*)", text[: -LONGEST_CHANGE - 1 : -1])  # read backwards
    return found[0][::-1] if found else b""


def _lexeme_after(text: bytes) -> bytes:
    found = re.match(rb"[ \t]*(?:\w+|[^\w\s])", text)
    return found[0] if found else b""


def expected_places(window: WindowText, change: Change, begin: int) -> Iterator[tuple[int, Expected]]:
    """Where a change is expected from the window's token ``begin`` on: indices of its tokens, and what stands there
    then."""
    data, borders = window.data, window.borders
    place = borders[begin]
    for _ in range(MOST_PLACES):
        place = data.find(change.old, place)
        if place < 0:
            return
        end = place + len(change.old)
        if _joins(data, place, change.old[:1]) or _joins(data, end, change.old[-1:]):
            place += 1
            continue
        found = expected_at(window, change, place, end, change.new)
        if found is not None:
            yield found
        place = end


def _joins(data: bytes, place: int, inside: bytes) -> bool:
    """Whether a word goes on beyond the edge at ``place``; ``inside`` is the edge's byte."""
    before, after = data[place - 1 : place] if place else b"", data[place : place + 1]
    return all(_WORD.match(each) for each in (inside, before, after))


def expected_at(window: WindowText, change: Change, begin: int, end: int, new: bytes) -> tuple[int, Expected] | None:
    """The index of a token, and what is expected there if ``new`` comes in place of the window's bytes ``begin`` to
    ``end`` for a change; None where that is the same, or no text."""
    held, data, borders = window.tokens, window.data, window.borders
    first, last = max(0, bisect_right(borders, begin) - 1 - _MERGED), bisect_left(borders, end)
    last = min(len(held), last + _MERGED)
    text = data[borders[first] : begin] + new + data[end : borders[last]]
    tokens = tokenize_after(window.vocabulary, held[max(0, first - TAIL) : first], text)
    if text and not tokens:
        return None
    while tokens and first < last and tokens[0] == held[first]:
        del tokens[0]
        first += 1
    while tokens and first < last and tokens[-1] == held[last - 1]:
        del tokens[-1]
        last -= 1
    if not tokens:  # a deletion: what is expected is what follows
        if last >= len(held) or held[last] == held[first]:
            return None
        tokens, last = [held[last]], last + 1
    return first, Expected(change, tuple(tokens), last)
