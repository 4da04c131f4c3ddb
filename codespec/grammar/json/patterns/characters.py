"""Sets of characters: sorted ranges of code points, and those that regular expressions have names for."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

Ranges: TypeAlias = "tuple[tuple[int, int], ...]"
"""First and last code point of each range; sorted, with gaps between them."""

LAST = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)


class Characters(NamedTuple):
    """A set of characters.

    Attributes:
        ranges: the characters.
        named: further ones in Rust's notation (``\\p{Greek}``), whose code points are not known here.
        negated: it holds what ``ranges`` and ``named`` do not.
    """

    ranges: Ranges = ()
    named: tuple[str, ...] = ()
    negated: bool = False

    @property
    def known(self) -> bool:
        """Whether the code points are known."""
        return not self.named

    def plain(self) -> Ranges:
        """The code points of a set that is known."""
        return complement(self.ranges) if self.negated else self.ranges


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The characters in any of the ranges; halves of surrogate pairs are none."""
    low, high = _SURROGATES
    parts = []
    for first, last in ranges:
        parts += [(first, min(last, low - 1)), (max(first, high + 1), last)]
    found: list[tuple[int, int]] = []
    for first, last in sorted(part for part in parts if part[0] <= part[1]):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def complement(ranges: Ranges) -> Ranges:
    """All other characters."""
    found, next_ = [], 0
    for first, last in ranges:
        found.append((next_, first - 1))
        next_ = last + 1
    return union([*((first, last) for first, last in found if first <= last), (next_, LAST)])


def common(a: Ranges, b: Ranges) -> Ranges:
    """The characters in both."""
    return complement(union((*complement(a), *complement(b))))


def holds(ranges: Ranges, code: int) -> bool:
    """Whether a code point is among the ranges."""
    return any(first <= code <= last for first, last in ranges)


def of_text(text: str) -> Ranges:
    """The characters of ``text``."""
    return union((ord(char), ord(char)) for char in text)


def folded(ranges: Ranges) -> Ranges:
    """With what differs only in case (ECMA-262, Canonicalize)."""
    found = [*ranges]
    for group in _cases().values():
        if any(holds(ranges, code) for code in group):
            found += [(code, code) for code in group]
    return union(found)


@functools.cache
def _cases() -> dict[str, list[int]]:
    """Characters that are one in different cases."""
    groups: dict[str, list[int]] = {}
    for code in range(0x1E944):
        char = chr(code)
        same = char.lower() if len(char.lower()) == 1 else char
        if len(char.casefold()) == 1:
            same = char.casefold()
        groups.setdefault(same, []).append(code)
    return {same: group for same, group in groups.items() if len(group) > 1}


ANY = Characters(complement(()))
DIGITS = of_text("0123456789")
WORD = union([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
# ECMA-262, 12.2 and 12.3: white space and the ends of lines.
SPACE = of_text("\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B))))
LINE_ENDS = of_text("\n\r\u2028\u2029")
CLASSES = {"d": DIGITS, "w": WORD, "s": SPACE}
