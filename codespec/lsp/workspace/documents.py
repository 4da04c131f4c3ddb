"""Open documents: lines as the protocol defines them, and positions that can never be out of range.

pygls' own document splits lines at form feeds and other characters that editors do not count as line ends, puts a
position beyond the end of the last line before its last character, and rejoins the whole text at each change.
"""

from __future__ import annotations

import io
import logging
import re
from dataclasses import dataclass
from urllib.parse import unquote

from lsprotocol import types
from pygls.workspace import PositionCodec, TextDocument, Workspace

from codespec.line_ends import without_lone_returns
from codespec.lsp.workspace.units import Units

logger = logging.getLogger(__name__)

LARGE = 200_000
"""Characters of a document from which on a request holds only a part around the cursor."""
BEFORE, AFTER = 64_000, 32_000
"""Characters of that part before and after the cursor at least, where there are so many; at most twice as many."""

_ROWS = (256, 64, 16, 4, 1)
_SURROGATE = re.compile("[\ud800-\udfff]")


def split_lines(text: str) -> list[str]:
    r"""The lines of ``text``, line ends (``\n``, ``\r\n`` or ``\r``) kept; the last one has none and may be empty."""
    if "\n" not in text and "\r" not in text:  # a file in one line is not copied
        return [text]
    lines = list(io.StringIO(text, newline=""))
    if not lines or lines[-1].endswith(("\n", "\r")):
        lines.append("")
    return lines


def valid(text: str) -> str:
    r"""``text`` as valid Unicode, and ``\n`` in place of each lone ``\r``; as long, and the same lines.

    An edit in the middle of a surrogate pair leaves halves behind.
    """
    text = without_lone_returns(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


@dataclass(frozen=True)
class Excerpt:
    """A document, or the part of a large one around a position.

    Attributes:
        offset: of the position in ``text``, in characters.
        begins, ends: whether it begins where the document does, and ends there.
    """

    text: str
    offset: int
    begins: bool = True
    ends: bool = True


@dataclass(eq=False)
class Mark:
    """A line that is followed through the changes of its document."""

    row: int


class Document(TextDocument):
    """A document that the editor has open; its text is always the editor's, never the file's.

    Attributes:
        marks: lines to follow; added and removed by their users.
        lost: whether a change could not be read: the editor has another text, until it sends all of it.
    """

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
        # A client may send anything, and what is no text would stop what lists or compares languages.
        language_id = language_id if isinstance(language_id, str) else None
        super().__init__(uri, "", version, language_id, local, sync_kind, position_codec)
        self.units = Units(self.position_codec.encoding)
        self.marks: list[Mark] = []
        self.lost = False
        self._lines = split_lines(source or "")
        self._length = len(source or "")
        self._text: str | None = source or ""

    @property
    def length(self) -> int:
        """Characters of the text."""
        return self._length

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
        """The whole text as valid Unicode."""
        return valid(self.source)

    def excerpt(self, row: int, column: int) -> Excerpt:
        """The text of a request at a position, in characters: all of the document, or of a large one a part.

        The part begins at the same line for many requests in a row, and its text after the cursor depends on nothing
        before the cursor: KV caches and cached completions of the last key serve the next one.
        """
        if self._length <= LARGE:
            return Excerpt(self.text(), sum(map(len, self._lines[:row])) + column)
        before, begins = self._before(row, column)
        after, ends = self._after(row, column)
        return Excerpt(valid(before + after), len(before), begins, ends)

    def beginning(self, most: int) -> str:
        """At most ``most`` characters from the start of the text, as valid Unicode."""
        if self._length <= most:
            return self.text()
        parts = []
        for line in self._lines:
            parts.append(line[:most])
            most -= len(line)
            if most <= 0:
                break
        return valid("".join(parts))

    def around(self, row: int, before: int, after: int) -> str:
        """The lines from ``before`` lines before ``row`` to ``after`` lines after it, as far as they exist."""
        return valid("".join(self._lines[max(0, row - before) : row + after + 1]))

    def _before(self, row: int, column: int) -> tuple[str, bool]:
        """The text before a position, from the start of a line that many positions share; whether that is all."""
        line = self._lines[row][:column]
        if column > 2 * BEFORE:
            start = (column - BEFORE) // BEFORE * BEFORE
            return line[start:], False
        first, size = row, 0
        while first and size < BEFORE and size + len(self._lines[first - 1]) <= 2 * BEFORE - column:
            first -= 1
            size += len(self._lines[first])
        for rows in _ROWS:  # a multiple of as many rows as there is room for
            start = first // rows * rows
            more = sum(map(len, self._lines[start:first]))
            if size + more <= 2 * BEFORE - column:
                break
        return "".join(self._lines[start:row]) + line, start == 0

    def _after(self, row: int, column: int) -> tuple[str, bool]:
        """The text after a position, whole lines where they are not too long; whether that is all."""
        rest = self._lines[row][column : column + 2 * AFTER + 1]
        if len(rest) > 2 * AFTER:
            return rest[: 2 * AFTER], False
        parts, size, last = [rest], len(rest), row + 1
        while last < len(self._lines) and size < AFTER and size + len(self._lines[last]) <= 2 * AFTER:
            parts.append(self._lines[last])
            size += len(self._lines[last])
            last += 1
        return "".join(parts), last == len(self._lines)

    def locate(self, position: types.Position) -> tuple[int, int]:
        """Line and column, in characters, of a position, or of the nearest one that exists."""
        row = position.line
        if row >= len(self._lines):  # clients that replace everything name a line beyond the last
            return len(self._lines) - 1, len(self._lines[-1])
        line = self._lines[max(0, row)].rstrip("\r\n")
        return max(0, row), self.units.columns(line, max(0, position.character))

    def end_of_change(self, change: types.TextDocumentContentChangePartial) -> tuple[int, int]:
        """Line and column at the end of the latest change's text: where the cursor most likely is."""
        row, column = self.locate(change.range.start)
        added = split_lines(change.text)
        column = len(added[-1]) + (column if len(added) == 1 else 0)
        row = min(row + len(added) - 1, len(self._lines) - 1)
        return row, min(column, len(self._lines[row].rstrip("\r\n")))

    def line(self, row: int) -> str:
        """One line, with its end."""
        return self._lines[row]

    def _apply_full_change(self, change: types.TextDocumentContentChangeEvent) -> None:
        self.lost = False
        self._lines = split_lines(change.text)
        self._length = len(change.text)
        self._text = change.text

    def _apply_incremental_change(self, change: types.TextDocumentContentChangePartial) -> None:
        start, end = sorted((self.locate(change.range.start), self.locate(change.range.end)))
        lines = self._lines
        first, last = start[0], end[0] + 1
        text = lines[first][: start[1]] + change.text + lines[end[0]][end[1] :]
        # Two halves of a character that an earlier edit has parted may have come together: only where this one was.
        joined = lines[first][: start[1]][-1:] + change.text + lines[end[0]][end[1] : end[1] + 1]
        if first and text.startswith("\n") and lines[first - 1].endswith("\r"):
            first -= 1  # the two become one line end
            text = lines[first] + text
        if _SURROGATE.search(joined):
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        new = split_lines(text)
        if last < len(lines):
            new.pop()  # the empty line after the last line end is the next line of the document
        self._length += len(text) - sum(map(len, lines[first:last]))
        lines[first:last] = new
        self._text = None
        self._move_marks(start, end, len(new) - (last - first))

    def _move_marks(self, start: tuple[int, int], end: tuple[int, int], added: int) -> None:
        """Move the marks after a replacement of the text from ``start`` to ``end`` that has added lines."""
        for mark in self.marks:
            if mark.row > end[0] or (mark.row == end[0] and end[1] == 0 and start[0] < end[0]):
                mark.row += added
            elif mark.row > start[0]:
                mark.row = start[0]


class Documents(Workspace):
    """A workspace whose documents are ``Document``; a change of one that is not open does nothing."""

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

    def update_text_document(
        self,
        text_doc: types.VersionedTextDocumentIdentifier,
        change: types.TextDocumentContentChangeEvent,
    ) -> None:
        """Apply a change of a document that is open."""
        if unquote(text_doc.uri) in self.text_documents:
            super().update_text_document(text_doc, change)
        else:
            logger.info("a document was changed that is not open: %s", text_doc.uri)

    def lose(self, uri: str) -> bool:
        """Note that a change of a document, or of a notebook's cells, could not be read; whether any is open."""
        notebook = self.notebook_documents.get(unquote(uri))
        uris = [uri] if notebook is None else [cell.document for cell in notebook.cells]
        found = [self.text_documents.get(unquote(each)) for each in uris]
        for document in found:
            if isinstance(document, Document):
                document.lost = True
        return any(found)

    def update_notebook_document(self, params: types.DidChangeNotebookDocumentParams) -> None:
        """Apply a change of a notebook that is open."""
        if unquote(params.notebook_document.uri) in self.notebook_documents:
            super().update_notebook_document(params)
        else:
            logger.info("a notebook was changed that is not open: %s", params.notebook_document.uri)


def open_document(workspace: Workspace, uri: str) -> Document | None:
    """An open document whose text is known; one that is not open is never read from the disk."""
    document = workspace.text_documents.get(unquote(uri))
    return document if isinstance(document, Document) and not document.lost else None
