"""From what an editor asks to what the completer needs, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from codespec.completion.request import Request
from codespec.languages import by_path
from codespec.lsp.documents import Document
from codespec.lsp.lessons import ACCEPTED

if TYPE_CHECKING:
    from codespec.completion.request import Completion

_TYPED = 256
"""How many characters before the cursor an item repeats at most; see ``to_item``."""


def to_request(document: Document, row: int, column: int, workspace: str = "") -> Request:
    """What the completer needs to know about a place in a document."""
    return Request(
        text=document.text(),
        offset=document.offset(row, column),
        language=document.language_id or by_path(document.path).id,
        path=document.path,
        workspace=workspace,
    )


def to_item(
    completion: Completion, document: Document, row: int, column: int, identifier: str
) -> types.InlineCompletionItem:
    """A completion as the protocol has it: plain text that replaces the line up to the cursor by itself and more.

    Its command tells us when it is accepted; clients drop other fields that they do not know.

    Repeating what is typed keeps the ghost text still while it is accepted word by word (VS Code filters items by
    it) and is what Neovim skips before it draws. Line ends are always ``\\n``: editors hold lines without
    their ends and write the document's own; Neovim would keep a ``\\r`` as a visible character.
    """
    start = max(0, column - _TYPED)
    typed = document.line(row)[start:column]
    return types.InlineCompletionItem(
        insert_text=typed + completion.text.replace("\r\n", "\n").replace("\r", "\n"),
        range=types.Range(document.position(row, start), document.position(row, column)),
        command=types.Command("codespec: learn from what was accepted", ACCEPTED, arguments=[identifier]),
    )
