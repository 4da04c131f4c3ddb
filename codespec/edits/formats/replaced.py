"""What one line has to have replaced, or put in, to become another."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from codespec.text_difference import changes, common_ends

WORDS = re.compile(r"\w+|[^\w\n]")


MOST_WORDS = 500
"""Words and signs of a line: what replaces which takes the square of their number to tell."""
_CALL = re.compile(r"\b(\w+)\($")


class Added(NamedTuple):
    """One more argument, the last, of a function's calls, or one more parameter of its own."""

    function: str
    argument: str


class Replaced(NamedTuple):
    """A piece of a line, and what it becomes wherever it stands in that line."""

    old: str
    new: str


def replace(line: str, pair: Replaced) -> str | None:
    """The line with a piece replaced wherever it stands as whole words; None where it does not."""
    found = places(line, pair.old)
    at, parts = 0, []
    for place in found:
        parts += [line[at:place], pair.new]
        at = place + len(pair.old)
    return "".join([*parts, line[at:]]) if found else None


def difference(old: str, new: str) -> Replaced | None:
    """The smallest piece whose replacement makes one line of the other; None where little stays, and for long lines.

    What is put in comes with the word behind it where that is enough: one more argument is ``)``, ``, x)`` at any call.
    """
    before, after = WORDS.findall(old), WORDS.findall(new)
    found = changes(before, after) if max(len(before), len(after)) <= MOST_WORDS else []
    if not found:
        return None
    first, last = found[0], found[-1]
    tail = len(after) - len(before)
    for start, end in [first[:2], *_wider(before, first[0], last[1])]:
        pair = Replaced("".join(before[start:end]), "".join(after[start : end + tail]))
        if pair.old.strip() and start <= first[0] and end >= last[1] and replace(old, pair) == new:
            return pair
        # One of several places that are alike.
        pair = Replaced(pair.old, "".join(after[first[2] : first[3]]))
        if (start, end) == first[:2] and pair.old.strip() and replace(old, pair) == new:
            return pair
    return None


def _wider(words: Sequence[str], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Ever larger pieces around one: with the word behind it, with that before it, and so on to the whole line."""
    yield start, end
    while start > 0 or end < len(words):
        if end < len(words):
            yield start, end + 1
        if start > 0:
            yield start - 1, end
        start, end = max(0, start - 1), min(len(words), end + 1)
        yield start, end


def places(line: str, piece: str) -> list[int]:
    """Where a piece stands as whole words."""
    found = []
    at = line.find(piece) if piece else -1
    while at >= 0:
        end = at + len(piece)
        inside = _joined(line[at - 1 : at], piece[0]) or _joined(piece[-1], line[end : end + 1])
        if not inside:
            found.append(at)
        at = line.find(piece, at + 1 if inside else end)
    return found


def _joined(left: str, right: str) -> bool:
    return bool(left and right and (left.isalnum() or left == "_") and (right.isalnum() or right == "_"))


def added(old: str, new: str) -> Added | None:
    """The argument that one line has more than the other, and whose; None where that is not all."""
    at, tail = common_ends(old, new)
    if at + tail != len(old) or old[at : at + 1] != ")":
        return None
    text = new[at : len(new) - tail]
    found = Added(called(old[:at]), text.removeprefix(", "))
    return found if found.function and found.argument.strip() and with_argument(old, found) == new else None


def with_argument(line: str, more: Added) -> str | None:
    """The line with an argument more in every call of a function; None where it has none that ends in it."""
    parts, at = [], 0
    for start, end in arguments(line, more.function):
        if end < at:
            return None  # a call in a call
        inside = line[start:end]
        joint = ", " if inside.strip() else ""
        parts += [line[at:end], joint + more.argument]
        at = end
    return "".join([*parts, line[at:]]) if parts else None


def arguments(line: str, function: str) -> list[tuple[int, int]]:
    """Where the arguments of the calls of a function stand, without the brackets."""
    starts = [place + len(function) for place in (places(line, function) if function else ())]
    ends = _closings(line) if starts else {}
    return [(start + 1, ends[start]) for start in starts if start in ends]


def _closings(line: str) -> dict[int, int]:
    """Where the bracket stands that closes each opening one."""
    found, opened = {}, []
    for at, sign in enumerate(line):
        if sign == "(":
            opened.append(at)
        elif sign == ")" and opened:
            found[opened.pop()] = at
    return found


def called(text: str, behind: bool = False) -> str:
    """The function whose arguments a text ends within; empty where it ends in none.

    Args:
        behind: the one whose call it ends with, if it does.
    """
    behind = behind and text.endswith(")")
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[at], 0)
        if depth < 0 or (behind and depth == 0):
            match = _CALL.search(text[: at + 1])
            return match[1] if match else ""
    return ""
