"""A document's text as models of edits see it, and positions in it."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from lsprotocol import types

from codespec.lsp.workspace.documents import Document, valid


class PlainText:
    r"""The text of one version of a document, with ``\n`` as its line ends.

    Attributes:
        lines: without their ends.
    """

    def __init__(self, document: Document) -> None:
        self._units = document.units
        self.lines = [valid(line.rstrip("\r\n")) for line in document.lines]
        self._starts = list(accumulate((len(line) + 1 for line in self.lines), initial=0))

    @property
    def text(self) -> str:
        """The whole text, with line feeds alone between lines."""
        return "\n".join(self.lines)

    def offset(self, row: int, column: int) -> int:
        """Of a position in characters."""
        return self._starts[row] + min(column, len(self.lines[row]))

    def row(self, offset: int) -> int:
        """Of the line that an offset lies in."""
        return min(bisect_right(self._starts, offset), len(self.lines)) - 1

    def position(self, offset: int) -> types.Position:
        """The protocol's position of an offset."""
        row = self.row(offset)
        return types.Position(row, self._units.length(self.lines[row][: offset - self._starts[row]]))
