"""Converts the protocol's positions to requests of the completer, and completions to the protocol's items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lsprotocol import types

from codespec.completion.request import Request
from codespec.languages import by_path
from codespec.line_ends import line_feeds
from codespec.lsp.feedback import ACCEPT
from codespec.lsp.workspace.documents import Document, Excerpt
from codespec.lsp.workspace.units import Units
from codespec.protocols import Snippet

if TYPE_CHECKING:
    from codespec.completion.request import Completion

_TYPED = 256
"""How many characters before the cursor an item repeats at most; see ``to_item``."""


def to_request(
    document: Document, excerpt: Excerpt, path: str, workspace: str = "", context: tuple[Snippet, ...] = ()
) -> Request:
    """The completer's request for a position in a document."""
    return Request(
        text=excerpt.text,
        offset=excerpt.offset,
        language=document.language_id or by_path(path).id,
        path=path,
        workspace=workspace,
        context=context,
        begins=excerpt.begins,
        ends=excerpt.ends,
    )


@dataclass(frozen=True)
class Cursor:
    """A position in a version of a document, which may have changed since.

    Attributes:
        row, column: in characters.
        line: the text of that row.
        units: of the protocol's columns.
    """

    row: int
    column: int
    line: str
    units: Units

    def position(self, column: int) -> types.Position:
        """The protocol's position of another column of the line."""
        return types.Position(self.row, self.units.length(self.line[:column]))

    def span(self, start: int) -> types.Range:
        """The protocol's range from a column up to the cursor."""
        return types.Range(self.position(start), self.position(self.column))


def to_item(completion: Completion, cursor: Cursor, identifier: str) -> types.InlineCompletionItem:
    """A completion as the protocol has it: plain text that replaces the line up to the cursor by itself and more.

    Its command tells us when it is accepted; clients drop other fields that they do not know.

    Repeating what is typed keeps the ghost text still while it is accepted word by word (VS Code filters items by
    it) and is what Neovim skips before it draws. Line ends are always ``\\n``: editors hold lines without
    their ends and write the document's own; Neovim would keep a ``\\r`` as a visible character.
    """
    start = max(0, cursor.column - _TYPED)
    return types.InlineCompletionItem(
        insert_text=cursor.line[start : cursor.column] + line_feeds(completion.text),
        range=cursor.span(start),
        command=accepting(identifier),
    )


def accepting(identifier: str) -> types.Command:
    """The command that the client runs when a completion is accepted."""
    return types.Command("codespec: learn from what was accepted", ACCEPT, arguments=[identifier])
