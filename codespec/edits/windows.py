"""The window of a document that a model may change, and how it was before the last edit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codespec.edits.lines import lines_of
from codespec.edits.request import RecentEdit


@dataclass(frozen=True)
class Window:
    """Some lines of a document.

    Attributes:
        path, language, text: of the document.
        line: of the first line, from 0.
        start, end: in characters of ``text``.
    """

    path: str
    language: str
    text: str
    line: int
    start: int
    end: int

    @property
    def inside(self) -> str:
        """The window's text, without what lies around it in the document."""
        return self.text[self.start : self.end]

    def holds(self, line: int) -> bool:
        """Whether a line of the document lies in it."""
        return self.line <= line < self.line + len(lines_of(self.inside))


def window_at(path: str, language: str, text: str, line: int, around: tuple[int, int]) -> Window:
    """The lines around ``line``: so many above it, and so many below."""
    lines = lines_of(text)
    first = max(0, min(line, len(lines) - 1) - around[0])
    start = sum(map(len, lines[:first]))
    return Window(path, language, text, first, start, start + sum(map(len, lines[first : line + around[1] + 1])))


def line_of(text: str, offset: int) -> int:
    """The line of a position, from 0."""
    return text.count("\n", 0, offset)


def original(window: Window, recent: Sequence[RecentEdit]) -> str:
    """The window before the last edit; as it is now where that lies elsewhere, or only in part in it."""
    if not recent or recent[-1].path != window.path:
        return window.inside
    last, lines = recent[-1], lines_of(window.inside)
    begin, after = last.line - window.line, lines_of(last.after)
    if begin < 0 or lines[begin : begin + len(after)] != after:
        return window.inside
    return "".join([*lines[:begin], last.before, *lines[begin + len(after) :]])
