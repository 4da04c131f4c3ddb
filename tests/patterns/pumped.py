"""Texts that make a backtracking pattern work hard, made from the pattern itself, and what they cost it.

Each repeated part of a pattern is repeated here: on its own, with what stands before it once, and with that many
times; then comes what makes the match fail. What a linear pattern takes for a character stays the same however long
such a text is.
"""

from __future__ import annotations

import itertools
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

if sys.version_info >= (3, 11):
    from re import _constants as constants
    from re import _parser as parser
else:
    import sre_constants as constants
    import sre_parse as parser

SMALL = (16, 20, 24, 28, 32, 48, 96, 256, 1024)
"""Steps at first: what doubles with each character is told before it takes minutes."""
FIRST, LAST = 4096, 16384
CHARACTER_S = 1e-5
"""Seconds for a character of a text: a hundred times what most patterns take."""
SURE_S = 1e-6
"""Seconds for a character that are mostly those of the part that grows, if one does."""
FLOOR_S = 3e-7
"""Seconds for a character of the longest text that are no noise: what takes the square of its length takes more."""
NOTHING_S = 5e-4
"""Less, for ``FIRST``, is not looked at."""
GROWTH = 2.0
"""Times that a character of a text may take when the text is four times as long; with quadratic time it is four."""
_LONG = 8  # a repetition that may be as long counts as one
_ALPHABET = [*map(chr, range(9, 14)), *map(chr, range(32, 127)), "\0", "é", "ſ", "\u2028", "中"]
_MOST_SIGNS = 10
_WIDEST = 300


@dataclass(frozen=True)
class Cost:
    """A text that a pattern takes too long for.

    Attributes:
        text: how it is made.
        size: characters of it.
        seconds: for a character of it.
    """

    text: str
    size: int
    seconds: float


def slowest(pattern: re.Pattern[Any], way: str) -> Cost | None:
    """The first text found that takes too long, or None.

    Args:
        way: ``search`` (anywhere), ``match``, ``fullmatch``, ``tokens`` (one match behind the other, until one fails)
            or ``lines`` (at the beginning of each line).
    """
    for prefix, pump, suffix in attacks(pattern):

        def took(size: int, times: int = 1, parts: tuple[str, str, str] = (prefix, pump, suffix)) -> float:
            text = parts[0] + parts[1] * (-(-size // len(parts[1]))) + parts[2]
            return min(_seconds(pattern, way, text) for _ in range(times)) / len(text)

        cost = _too_long(took)
        if cost is not None:
            return Cost(f"{prefix!r} + {pump!r} * n + {suffix!r}", *cost)
    return None


def _too_long(took: Callable[..., float]) -> tuple[int, float] | None:
    """The size from which on a text takes too long, and what a character of it takes."""
    each = 0.0
    for size in (*SMALL, FIRST):
        before, each = each, took(size)
        if each * size > 2 * NOTHING_S and each > CHARACTER_S and (each := took(size, 3)) > CHARACTER_S:
            return size, each
    # What takes long though not longer, the longer the text is, is not tried with a longer one.
    if each * FIRST < NOTHING_S or (each > SURE_S and each < GROWTH * before):
        return None
    if took(LAST) > min(CHARACTER_S, GROWTH * each):
        before, each = took(FIRST, 3), took(LAST, 3)
        if each > CHARACTER_S or each > max(FLOOR_S, GROWTH * before):
            return LAST, each
    return None


def _seconds(pattern: re.Pattern[Any], way: str, text: str) -> float:
    given: Any = text.encode() if isinstance(pattern.pattern, bytes) else text
    began = time.thread_time()
    if way == "search":
        for _ in pattern.finditer(given):
            pass
    elif way == "tokens":
        at = 0
        while at < len(given) and (match := pattern.match(given, at)) is not None:
            at = max(at + 1, match.end())
    elif way == "lines":
        for line in re.finditer("^" if isinstance(given, str) else b"^", given, re.MULTILINE):
            pattern.match(given, line.start())
    else:
        getattr(pattern, way)(given)
    return time.thread_time() - began


def attacks(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str, str]]:
    """Beginnings, parts to be repeated, and ends."""
    written = pattern.pattern
    source = written.decode("latin-1") if isinstance(written, bytes) else str(written)
    tree = parser.parse(source, pattern.flags & ~re.UNICODE if isinstance(written, bytes) else pattern.flags)
    repeats = list(_repeats(list(tree)))
    if not repeats:
        return
    signs = _signs(source, pattern)
    pumps: dict[tuple[str, str], None] = {}
    for before, bodies in repeats:
        for body in bodies:
            pumps[before, body] = None
            pumps["", before + body] = None
            pumps["", before + body * 3] = None
        for sign in dict.fromkeys((*signs, *_read_twice(list(tree)))):
            pumps[before, sign] = None
    # A text that is too short for any match fails at once, and the next one may take hours.
    ends = ("\0" * max(1, min(tree.getwidth()[0], _WIDEST)), "", "\n")
    for (before, pump), end in itertools.product(pumps, ends):
        if pump:
            yield before, pump, end
    for left, right in itertools.product(signs, repeat=2):
        if left != right:
            yield "", left + right, ends[0]


def _signs(source: str, pattern: re.Pattern[Any]) -> list[str]:
    """A character of each kind that the pattern tells apart."""
    kinds = list(_kinds(parser.parse(source, pattern.flags & (re.IGNORECASE | re.VERBOSE))))
    found: dict[tuple[bool, ...], str] = {}
    for character in _ALPHABET:
        # Anchors tell line breaks and letters apart.
        signature = character == "\n", character.isalnum(), *(_holds(kind, character) for kind in kinds)
        found.setdefault(signature, character)
    # Those first that many parts match: where parts compete for a text, there are many ways to read it.
    order = sorted(found, key=lambda each: (not each[0], -sum(each)))
    return [found[each] for each in order[:_MOST_SIGNS]]


def _read_twice(items: list[Any]) -> Iterator[str]:
    """A character for each choice that two of its alternatives begin with: repeated, it is read in ever more ways."""
    for operator, value in items:
        if operator is constants.BRANCH:
            firsts = [next(iter(_kinds(list(part))), None) for part in value[1]]
            same = (each for each in _ALPHABET if sum(kind is not None and _holds(kind, each) for kind in firsts) > 1)
            yield from itertools.islice(same, 1)
        for inner in _inner(operator, value):
            yield from _read_twice(list(inner))


def _kinds(items: Any) -> Iterator[Any]:
    for operator, value in items:
        if operator in (constants.LITERAL, constants.NOT_LITERAL, constants.IN, constants.ANY):
            yield operator, value
        else:
            for inner in _inner(operator, value):
                yield from _kinds(inner)


def _inner(operator: Any, value: Any) -> list[Any]:
    """The parts of an item that hold others."""
    if operator is constants.BRANCH:
        return list(value[1])
    if operator is constants.SUBPATTERN:
        return [value[-1]]
    if operator in (constants.ASSERT, constants.ASSERT_NOT):
        return [value[1]]
    if operator is constants.GROUPREF_EXISTS:
        return [each for each in value[1:] if each is not None]
    if operator.name == "ATOMIC_GROUP":
        return [value]
    return [value[2]] if operator.name in _REPEATED else []


def _holds(kind: tuple[Any, Any], character: str) -> bool:
    operator, value = kind
    code = ord(character)
    if operator is constants.LITERAL:
        return bool(code == value)
    if operator is constants.NOT_LITERAL:
        return bool(code != value)
    if operator is constants.ANY:
        return character != "\n"
    negated, holds = False, False
    for part, argument in value:
        if part is constants.NEGATE:
            negated = True
        elif part is constants.LITERAL:
            holds |= code == argument
        elif part is constants.RANGE:
            holds |= argument[0] <= code <= argument[1]
        elif part is constants.CATEGORY:
            holds |= _in_category(argument, character)
    return holds != negated


def _in_category(category: Any, character: str) -> bool:
    name = category.name.removeprefix("CATEGORY_")
    holds = {
        "DIGIT": character.isdigit(),
        "SPACE": character.isspace(),
        "WORD": character.isalnum() or character == "_",
    }[name.removeprefix("NOT_")]
    return holds != name.startswith("NOT_")


def _repeats(items: list[Any], before: tuple[str, ...] = ("",)) -> Iterator[tuple[str, list[str]]]:
    """The parts that may be repeated often: a text that leads to each, and texts that it may be."""
    for operator, value in items:
        if operator.name in _REPEATED:
            _, most, body = value
            if most >= _LONG:
                for each in before:
                    yield each, _samples(list(body))
            yield from _repeats(list(body), before)
        else:
            for inner in _inner(operator, value):
                yield from _repeats(list(inner), before)
        if operator not in (constants.ASSERT, constants.ASSERT_NOT):
            more = _sample([(operator, value)]), _sample([(operator, value)], rich=True)
            before = tuple(dict.fromkeys((before[0] + more[0], before[-1] + more[1])))


def _samples(items: list[Any]) -> list[str]:
    """Texts of a sequence, one for each alternative of its first parts."""
    found = [_sample(items), _sample(items, rich=True)]
    for index, (operator, value) in enumerate(items):
        if operator in (constants.BRANCH, constants.SUBPATTERN):
            head, tail = _sample(items[:index]), _sample(items[index + 1 :])
            found += [head + each + tail for part in _inner(operator, value) for each in _samples(list(part))]
    return list(dict.fromkeys(each for each in found if each))[:8]


def _sample(items: list[Any], rich: bool = False) -> str:
    """A text that a sequence matches, look-arounds and back references left aside: the shortest, or one with all parts
    that may be left out."""
    text = ""
    for operator, value in items:
        if operator is constants.LITERAL:
            text += chr(value)
        elif operator in (constants.NOT_LITERAL, constants.IN, constants.ANY):
            text += next((each for each in _PREFERRED if _holds((operator, value), each)), "a")
        elif operator is constants.BRANCH:
            text += _sample(list(value[1][-1 if rich else 0]), rich)
        elif operator is constants.SUBPATTERN or operator.name == "ATOMIC_GROUP":
            text += _sample(list(_inner(operator, value)[0]), rich)
        elif operator.name in _REPEATED:
            text += _sample(list(value[2]), rich) * max(int(value[0]), int(rich))
        elif operator is constants.GROUPREF:
            text += '"'
    return text


_REPEATED = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_PREFERRED = [*'"a1A _.-:\n', *_ALPHABET]
