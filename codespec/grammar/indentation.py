"""The indentations of a document, for which a grammar with levels is unrolled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

UNIT = " " * 4
"""Indentation where a document shows none."""
DEEPER = 3
"""Levels beyond those that a document uses."""
MAX_LEVELS = 16
"""Each one costs a copy of the rules that depend on it; deeper blocks than that are rare."""
WIDEST = 200
"""Columns; deeper lines are no blocks but continue what is above them."""
_TAB = 8

# What a scan of a line must know: the ends of strings, brackets, comments, escapes.
_MARK = re.compile(r"""\\[\s\S]|#[^\n]*|\"{3}|'{3}|["'()\[\]{}\n]""")
_INDENT = re.compile(r"[ \t]*(?:\f[ \t]*)*")
_STRING_END = {q: (re.compile(rf"\\[\s\S]|{q}|\n"), re.compile(rf"\\[\s\S]|{q * 3}")) for q in "\"'"}
# How a line begins that cannot stand inside brackets.
_STATEMENT = re.compile(r"[ \t]*(?:(?:async[ \t]+)?def|class|return|import|while|with|try|raise)\b[ \t:]")
# YAML: a document marker, a list entry or a key before anything else; lines that hold a key or a list entry.
_YAML = re.compile(
    r"""(?:[ \t]*(?:#[^\n]*)?\n)*(?:---|%YAML|- |-\n|(?!(?:try|else|finally):)["']?[\w$./-]+["']?:(?:[ \t\n]|$))"""
)
_YAML_ENTRY = re.compile(r"^( *)((?:- +)*)(?=-(?:\s|$)|[^\s#].*?:(?:\s|$))", re.MULTILINE)
_YAML_UNIT = "  "
_DASH = re.compile("- +")
_TAIL = 200  # characters between a colon and the end of its line


def detect(text: str) -> tuple[str, ...]:
    """The indentations of ``text``, the outermost (none) first, and three deeper ones by its own unit.

    Counted is the first line of each block: the one after a line that ends in ``:``. ``text`` may stop anywhere and
    need not be correct; strings and brackets are skipped as far as a scan without a parser can tell.

    A text that begins like YAML has a level for each column in which a key or an entry of a list begins.
    """
    if _YAML.match(text):
        return extend(sorted(_columns(text), key=width)[: MAX_LEVELS - DEEPER], _YAML_UNIT)
    blocks = [block for block in _blocks(text) if width(block[0])[0] <= WIDEST]
    used = {indent for indent, _ in blocks}
    unit = unit_of(blocks)
    kept = sorted({"", *used}, key=width)[: MAX_LEVELS - DEEPER]
    return extend(kept, unit, DEEPER)


def usual(unit: str = UNIT) -> list[tuple[str, ...]]:
    """The sets of indentations that ``detect`` finds in most documents: blocks one to six deep, by one unit."""
    return [extend([""], unit, deep + DEEPER) for deep in range(1, 7)]


def _columns(text: str) -> set[str]:
    """The columns, as blanks, in which keys and list entries of a YAML text begin, also after the dashes of lists."""
    found = {""}
    for match in _YAML_ENTRY.finditer(text):
        column = len(match[1])
        found.add(" " * column)
        for dash in _DASH.findall(match[2]):
            column += len(dash)
            found.add(" " * column)
    return {indent for indent in found if len(indent) <= WIDEST}


def opens(line: str, after: str) -> bool:
    """Whether a line that is still being written opens a block, since what comes ``after`` it is deeper."""
    brackets = sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
    following = next((text for text in after.split("\n", 50)[:50] if text.strip()), "")
    return bool(line.strip()) and brackets <= 0 and width(_indent(following)) > width(_indent(line))


def opener(line: str) -> str:
    """A line in the place of ``line`` that opens a block."""
    return f"{_indent(line)}if x:"


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def extend(levels: Sequence[str], unit: str = UNIT, count: int = DEEPER) -> tuple[str, ...]:
    """``levels`` and ``count`` deeper ones, each ``unit`` deeper than the one before."""
    found = list(levels) or [""]
    for _ in range(count):
        found.append(found[-1] + unit)
    return tuple(found)


def inside(levels: Iterable[str], outermost: str) -> tuple[str, ...]:
    """``levels`` as a block at the indentation ``outermost`` sees them: itself and what is deeper, never empty."""
    deeper = {level for level in levels if width(level) > width(outermost)}
    return (outermost, *sorted(deeper, key=width))


def unit_of(blocks: Iterable[tuple[str, str]]) -> str:
    """The commonest step from a line to the block under it, of (block, line above) pairs; four blanks where none is."""
    counts: dict[str, int] = {}
    for block, above in blocks:
        if block.startswith(above) and block != above:
            step = block[len(above) :]
            counts[step] = counts.get(step, 0) + 1
    return max(counts, key=lambda step: (counts[step], -len(step))) if counts else UNIT


def width(indent: str) -> tuple[int, int]:
    """How deep an indentation is: its column with tabs to every eighth, then its length."""
    return len(indent.expandtabs(_TAB)), len(indent)


def _blocks(text: str) -> Iterable[tuple[str, str]]:
    """The indentation of each block's first line, with that of the line above it."""
    above = ""
    opened = False
    for indent, ends_in_colon in _logical_lines(text):
        if opened and width(indent) > width(above):
            yield indent, above
        above, opened = indent, ends_in_colon


def _logical_lines(text: str) -> Iterable[tuple[str, bool]]:
    """Of each line with code: its indentation, and whether its last character outside comments is a colon."""
    at = 0
    while at < len(text):
        match = _INDENT.match(text, at)
        assert match is not None
        start = match.end()
        end, ends_in_colon = _line(text, start)
        if text[start : start + 1].strip() and text[start] != "#":
            yield match[0].rpartition("\f")[2], ends_in_colon
        at = end


def _line(text: str, at: int) -> tuple[int, bool]:
    """Where the logical line that begins at ``at`` ends, and whether its code ends in a colon.

    A bracket left open ends at a line that begins like no line inside brackets: code being written is full of them.
    """
    start, depth, code_end = at, 0, -1
    while (match := _MARK.search(text, at)) is not None:
        mark, at = match[0], match.end()
        if mark[0] in _STRING_END:
            at = _string(text, at, mark)
        elif mark in "([{":
            depth += 1
        elif mark in ")]}":
            depth = max(0, depth - 1)
        elif mark[0] == "#":
            code_end = match.start()
        elif mark == "\n":
            if depth == 0 or _STATEMENT.match(text, at):
                return at, _ends_in_colon(text, start, match.start() if code_end < 0 else code_end)
            code_end = -1
    return len(text), _ends_in_colon(text, start, len(text) if code_end < 0 else code_end)


def _string(text: str, at: int, quote: str) -> int:
    """The end of a string whose contents begin at ``at``: after its closing quote, or before the end of its line."""
    for match in _STRING_END[quote[0]][len(quote) == 3].finditer(text, at):
        if match[0][0] != "\\":
            return match.start() if match[0] == "\n" else match.end()
    return len(text)


def _ends_in_colon(text: str, start: int, end: int) -> bool:
    return text[max(start, end - _TAIL) : end].rstrip().endswith(":")
