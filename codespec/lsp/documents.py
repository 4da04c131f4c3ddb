"""Open documents: lines as the protocol defines them, and positions that can never be out of range.

pygls' own document splits lines at form feeds and other characters that editors do not count as line ends, puts a
position beyond the end of the last line before its last character, and rejoins the whole text at each change.
"""

from __future__ import annotations

import io
import re

from lsprotocol import types
from pygls.workspace import PositionCodec, TextDocument, Workspace

_SURROGATE = re.compile("[\ud800-\udfff]")


def split_lines(text: str) -> list[str]:
    r"""The lines of ``text``, line ends (``\n``, ``\r\n`` or ``\r``) kept; the last one has none and may be empty."""
    lines = list(io.StringIO(text, newline=""))
    if not lines or lines[-1].endswith(("\n", "\r")):
        lines.append("")
    return lines


class Document(TextDocument):
    """A document that the editor has open; its text is always the editor's, never the file's."""

    def __init__(
        self,
        uri: str,
        source: str | None = None,
        version: int | None = None,
        language_id: str | None = None,
        local: bool = True,
        sync_kind: types.TextDocumentSyncKind = types.TextDocumentSyncKind.Incremental,
        position_codec: PositionCodec | None = None,
    ) -> None:
        super().__init__(uri, "", version, language_id, local, sync_kind, position_codec)
        self._lines = split_lines(source or "")
        self._text: str | None = source or ""

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines with their ends; the last one has none."""
        return tuple(self._lines)

    @property
    def source(self) -> str:
        """The whole text."""
        if self._text is None:
            self._text = "".join(self._lines)
        return self._text

    def text(self) -> str:
        """The whole text as valid Unicode: an edit in the middle of a surrogate pair leaves halves behind."""
        source = self.source
        try:
            source.encode()
        except UnicodeEncodeError:
            return _SURROGATE.sub("\ufffd", source)
        return source

    def locate(self, position: types.Position) -> tuple[int, int]:
        """Line and column, in characters, of a position, or of the nearest one that exists."""
        row = position.line
        if row >= len(self._lines):  # clients that replace everything name a line beyond the last
            return len(self._lines) - 1, len(self._lines[-1])
        line = self._lines[row].rstrip("\r\n")
        units = min(position.character, self.position_codec.client_num_units(line))
        inside = types.Position(0, units)
        return row, self.position_codec.position_from_client_units([line], inside).character

    def behind(self, change: types.TextDocumentContentChangePartial) -> tuple[int, int]:
        """Line and column behind the text of a change that was the last one: where the cursor most likely is."""
        row, column = self.locate(change.range.start)
        added = split_lines(change.text)
        column = len(added[-1]) + (column if len(added) == 1 else 0)
        row = min(row + len(added) - 1, len(self._lines) - 1)
        return row, min(column, len(self._lines[row].rstrip("\r\n")))

    def position(self, row: int, column: int) -> types.Position:
        """The position, in the client's units, of a line and a column in characters."""
        return types.Position(row, self.position_codec.client_num_units(self._lines[row][:column]))

    def offset(self, row: int, column: int) -> int:
        """The index into the text of a line and a column in characters."""
        return sum(map(len, self._lines[:row])) + column

    def line(self, row: int) -> str:
        """One line, with its end."""
        return self._lines[row]

    def _apply_full_change(self, change: types.TextDocumentContentChangeEvent) -> None:
        self._lines = split_lines(change.text)
        self._text = change.text

    def _apply_incremental_change(self, change: types.TextDocumentContentChangePartial) -> None:
        start, end = sorted((self.locate(change.range.start), self.locate(change.range.end)))
        lines = self._lines
        first = start[0]
        text = lines[first][: start[1]] + change.text + lines[end[0]][end[1] :]
        if first and text.startswith("\n") and lines[first - 1].endswith("\r"):
            first -= 1  # the two become one line end
            text = lines[first] + text
        new = split_lines(text)
        if end[0] + 1 < len(lines):
            new.pop()  # the empty line after the last line end is the next line of the document
        lines[first : end[0] + 1] = new
        self._text = None


class Documents(Workspace):
    """A workspace whose documents are ``Document``."""

    def _create_text_document(
        self,
        doc_uri: str,
        source: str | None = None,
        version: int | None = None,
        language_id: str | None = None,
    ) -> TextDocument:
        return Document(
            doc_uri, source, version, language_id, sync_kind=self._sync_kind, position_codec=self.position_codec
        )
