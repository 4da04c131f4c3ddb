"""Notifications that a notebook was opened, edited or closed."""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol import types

from codespec.lsp.handlers import next_edit
from codespec.lsp.handlers.prefetch import changed
from codespec.lsp.handlers.text_documents import close, learn
from codespec.lsp.session import CodespecServer


def did_open(ls: CodespecServer, params: types.DidOpenNotebookDocumentParams) -> None:
    """Learn the cells, which pygls stores: those of one language together."""
    _tell_of(ls, params.cell_text_documents)
    for cell in {cell.language_id: cell for cell in params.cell_text_documents}.values():
        learn(ls, cell.uri)


def did_change(ls: CodespecServer, params: types.DidChangeNotebookDocumentParams) -> None:
    """Prefill after the typed text; forget the cells that are gone."""
    cells = params.change.cells
    if cells is None:
        return
    for closed in (cells.structure.did_close if cells.structure else None) or []:
        next_edit.closed(ls, closed.uri)
        close(ls, closed.uri)
    _tell_of(ls, (cells.structure.did_open if cells.structure else None) or [])
    for change in cells.text_content or []:
        changed(ls, change.document.uri, change.changes)
        next_edit.changed(ls, change.document.uri)


def did_close(ls: CodespecServer, params: types.DidCloseNotebookDocumentParams) -> None:
    """Stop the completions of a closed notebook and forget its cells."""
    # While a cell that holds a secret is there, nothing of the others is kept to be shown elsewhere.
    for cell in sorted(params.cell_text_documents, key=lambda cell: ls.surroundings.holds_secret(cell.uri)):
        next_edit.closed(ls, cell.uri)
        close(ls, cell.uri)


def _tell_of(ls: CodespecServer, cells: Iterable[types.TextDocumentItem]) -> None:
    """Tell the session of a cell: a secret in one cell counts for all of them."""
    for cell in cells:
        document = ls.document(cell.uri)
        if document is not None:
            ls.surroundings.opened(document, ls.folder_of(cell.uri))
            next_edit.opened(ls, cell.uri)
