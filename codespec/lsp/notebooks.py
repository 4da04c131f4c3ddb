"""Notebooks: the cells of one language are one text, in which every cell is completed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lsprotocol import types

from codespec.languages import by_id
from codespec.lsp.documents import AFTER, BEFORE, Document, Excerpt
from codespec.lsp.handlers.prefetch import changed
from codespec.lsp.handlers.text_documents import close, learn

if TYPE_CHECKING:
    from codespec.lsp.session import CodespecServer

SELECTOR = types.NotebookDocumentSyncOptions(
    notebook_selector=[types.NotebookDocumentFilterWithNotebook(notebook="*")],
)
"""What clients are to send of notebooks: everything."""

BETWEEN = "\n\n"
"""What stands between cells."""


def notebook_of(ls: CodespecServer, cell: str) -> types.NotebookDocument | None:
    """The open notebook that a document is a cell of."""
    return ls.workspace.get_notebook_document(cell_uri=cell)


def within(ls: CodespecServer, document: Document, excerpt: Excerpt) -> Excerpt:
    """A place in a cell as a place in the text of the cells around it; other documents' stay what they are."""
    notebook = notebook_of(ls, document.uri)
    if notebook is None:
        return excerpt
    cells = [cell for cell in _cells(ls, notebook) if cell.language_id == document.language_id]
    if document not in cells:
        return excerpt
    index = cells.index(document)
    before, begins = _texts(reversed(cells[:index]), BEFORE) if excerpt.begins else ([], False)
    after, ends = _texts(cells[index + 1 :], AFTER) if excerpt.ends else ([], False)
    prefix = "".join(text + BETWEEN for text in reversed(before))
    suffix = "".join(BETWEEN + text for text in after)
    return Excerpt(prefix + excerpt.text + suffix, len(prefix) + excerpt.offset, begins, ends)


def name_of(ls: CodespecServer, document: Document) -> str:
    """The path of a document; of a cell that of its notebook, as if it were a file of the cell's language."""
    notebook = notebook_of(ls, document.uri)
    if notebook is None:
        return document.path
    suffixes = by_id(document.language_id or "").suffixes
    return Document(notebook.uri).path + (suffixes[0] if suffixes else "")


def did_open(ls: CodespecServer, params: types.DidOpenNotebookDocumentParams) -> None:
    """Learn the cells, which pygls keeps: those of one language are learnt together."""
    _tell_of(ls, params.cell_text_documents)
    for cell in {cell.language_id: cell for cell in params.cell_text_documents}.values():
        learn(ls, cell.uri)


def did_change(ls: CodespecServer, params: types.DidChangeNotebookDocumentParams) -> None:
    """Read on behind what was typed; forget the cells that are gone."""
    cells = params.change.cells
    if cells is None:
        return
    for closed in (cells.structure.did_close if cells.structure else None) or []:
        close(ls, closed.uri)
    _tell_of(ls, (cells.structure.did_open if cells.structure else None) or [])
    for change in cells.text_content or []:
        changed(ls, change.document.uri, change.changes)


def did_close(ls: CodespecServer, params: types.DidCloseNotebookDocumentParams) -> None:
    """Nobody waits for completions in a closed notebook."""
    # While a cell that holds a secret is there, nothing of the others is kept to be shown elsewhere.
    for cell in sorted(params.cell_text_documents, key=lambda cell: ls.surroundings.holds_secret(cell.uri)):
        close(ls, cell.uri)


def _tell_of(ls: CodespecServer, cells: Iterable[types.TextDocumentItem]) -> None:
    """A secret in one cell is one in all of them."""
    for cell in cells:
        document = ls.document(cell.uri)
        if document is not None:
            ls.surroundings.opened(document, ls.folder_of(cell.uri))


def _cells(ls: CodespecServer, notebook: types.NotebookDocument) -> list[Document]:
    code = [cell for cell in notebook.cells if cell.kind == types.NotebookCellKind.Code]
    return [found for cell in code if (found := ls.document(cell.document)) is not None]


def _texts(cells: Iterable[Document], most: int) -> tuple[list[str], bool]:
    """The texts of cells, whole ones and ``most`` characters at most; whether that is all."""
    texts: list[str] = []
    for cell in cells:
        most -= cell.length + len(BETWEEN)
        if most < 0:
            return texts, False
        texts.append(cell.text().rstrip("\n"))
    return texts, True
