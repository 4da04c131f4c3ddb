"""Cuts gaps into files: a line, several lines, or a random span."""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.infill.task import MULTI, SINGLE, SPAN, Task
from codespec.languages import Language

SMALLEST, LARGEST = 400, 40_000
"""Bytes of a file."""
LONGEST_LINE = 160
LEAST_TOKENS = 3
"""Of code in a line that is cut out."""
LINES = (2, 6)
"""Of a gap of several lines."""
SPAN_LINES = 3
"""A random span ends at most so many lines below its first one."""

_TOKEN = re.compile(r"\w+|[^\w\s]")
_WORD = re.compile(r"[^\W\d]\w")
# What programs write at the beginning of what they write, and what transpilers leave in it.
_GENERATED = re.compile(
    r"generated (?:by|from|file|code|automatically)|auto-?generated|do not (?:edit|modify)|@generated"
    r"|__esModule|__webpack|sourceMappingURL|_interopRequire|regeneratorRuntime|\b__extends\b|tslib",
    re.IGNORECASE,
)
# Of tree-sitter's grammars: in these nodes nothing is code.
_NO_CODE = ("comment", "string", "template_string", "raw_string", "char_literal", "heredoc")


@dataclass(frozen=True)
class Lines:
    """A file by its lines.

    Attributes:
        starts: where each line begins, in characters.
        barred: the numbers of lines that are no code, or not all of them.
        good: of those that can be cut out.
    """

    text: str
    lines: Sequence[str]
    starts: Sequence[int]
    barred: Set[int]
    good: Sequence[int]

    def between(self, first: int, last: int) -> tuple[int, int]:
        """Where these lines begin, and where the last one ends before its line break, in characters."""
        return self.starts[first], self.starts[last] + len(self.lines[last])


def is_written_by_hand(text: str) -> bool:
    """Whether a file looks as if its author typed it."""
    lines = text.split("\n")
    return not _GENERATED.search(text[:3000]) and "\0" not in text and max(map(len, lines)) <= LONGEST_LINE


def lines_of(text: str, language: Language) -> Lines:
    """The lines of a file; those can be cut out that are code, have a few tokens, and are there once."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    times = Counter(line.strip() for line in lines)
    barred = _barred(text, language)
    good = [
        row
        for row, line in enumerate(lines)
        if times[line.strip()] == 1
        and line == line.rstrip()
        and len(_TOKEN.findall(line)) >= LEAST_TOKENS
        and _WORD.search(line)
        and row not in barred
    ]
    return Lines(text, lines, starts, barred, good)


def _barred(text: str, language: Language) -> Set[int]:
    """The lines with a comment or a part of a text of several lines, by their numbers."""
    tree_sitter: Any = import_module("tree_sitter")
    module, _, function = language.parser.partition(":")
    parser = tree_sitter.Parser(tree_sitter.Language(getattr(import_module(module), function or "language")()))
    barred: set[int] = set()
    pending = [parser.parse(text.encode()).root_node]
    while pending:
        node = pending.pop()
        first, last = node.start_point[0], node.end_point[0]
        if "comment" in node.type or (node.type.startswith(_NO_CODE) and last > first) or node.is_error:
            barred.update(range(first, last + 1))
        elif node.type not in _NO_CODE:
            pending.extend(node.children)
    # A docstring of one line is a statement that is a text alone; directives of C are another language.
    others = ('"', "'", "`", "#") if language.preprocessed else ('"', "'", "`")
    barred.update(row for row, line in enumerate(text.split("\n")) if line.lstrip().startswith(others))
    return barred


def cut(path: str, text: str, language: Language, kind: str, count: int, chooser: random.Random) -> Iterator[Task]:
    """Up to ``count`` gaps of a kind in a file; they do not touch each other."""
    found = lines_of(text, language)
    rows = list(found.good)
    chooser.shuffle(rows)
    taken: set[int] = set()
    for row in rows:
        if count <= 0:
            return
        gap = _GAPS[kind](found, row, chooser)
        if gap is None:
            continue
        first, last = gap
        touched = range(_row(found, first), _row(found, last) + 1)
        if taken.isdisjoint(touched) and text[first:last].strip():
            taken.update(touched)
            count -= 1
            yield Task(
                task_id=f"{path}:{touched[0] + 1}",
                entry_point="",
                prompt=text[:first],
                suffix=text[last:],
                canonical_solution=text[first:last],
                test="",
                language=language.id,
                kind=kind,
                path=path,
                cursor="within" if kind == SPAN else "start",
            )


def _row(found: Lines, offset: int) -> int:
    return bisect_right(found.starts, offset) - 1


def _line(found: Lines, row: int, _chooser: random.Random) -> tuple[int, int]:
    return found.between(row, row)


def _several(found: Lines, row: int, chooser: random.Random) -> tuple[int, int] | None:
    """Lines without a comment, of which none is less indented than the first, and that close what they open: who writes
    blocks has both ends of them, or none."""
    least = _width(found.lines[row])
    ends = []
    for last in range(row, min(row + LINES[1], len(found.lines))):
        line = found.lines[last]
        if last in found.barred or (line.strip() and _width(line) < least):
            break
        start, end = found.between(row, last)
        if last >= row + LINES[0] - 1 and line.strip() and _is_balanced(found.text[start:end]):
            ends.append(end)
    return (found.starts[row], chooser.choice(ends)) if ends else None


def _is_balanced(text: str) -> bool:
    """Whether brackets close what was opened; those in texts and comments count, too."""
    depth = 0
    for sign in text:
        depth += (sign in "([{") - (sign in ")]}")
        if depth < 0:
            return False
    return depth == 0


def _width(line: str) -> int:
    return len(line) - len(line.lstrip())


def _span(found: Lines, row: int, chooser: random.Random) -> tuple[int, int] | None:
    """From a random character of the line's code to one behind it, in the same line or one of the next."""
    start, end = found.between(row, row)
    first = chooser.randrange(start + _width(found.lines[row]), end)
    last_row = min(row + chooser.randrange(SPAN_LINES), len(found.lines) - 1)
    if last_row not in found.good:
        last_row = row
    _, end = found.between(last_row, last_row)
    start, _ = found.between(last_row, last_row)
    low = max(first, start + _width(found.lines[last_row]))
    return (first, chooser.randrange(low, end) + 1) if low < end else None


_GAPS: dict[str, Callable[[Lines, int, random.Random], tuple[int, int] | None]] = {
    SINGLE: _line,
    MULTI: _several,
    SPAN: _span,
}


def read_file(path: Path) -> str | None:
    """The text of a file that can be cut; None for one that is too long, not UTF-8, or not written by hand."""
    try:
        if not SMALLEST <= path.stat().st_size <= LARGEST:
            return None
        text = path.read_bytes().decode().replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError):
        return None
    return text if is_written_by_hand(text) else None
