"""Notebooks: the cells of one language are one text, in which every cell is completed."""

from __future__ import annotations

from collections.abc import Iterable

from lsprotocol import types
from pygls.workspace import Workspace

from codespec.languages import by_id
from codespec.lsp.workspace.documents import AFTER, BEFORE, Document, Excerpt, open_document

SELECTOR = types.NotebookDocumentSyncOptions(
    notebook_selector=[types.NotebookDocumentFilterWithNotebook(notebook="*")],
)
"""The notebooks and cells that clients are to send: all."""

BETWEEN = "\n\n"
"""The text between two cells."""


def notebook_of(workspace: Workspace, cell: str) -> types.NotebookDocument | None:
    """The open notebook that a document is a cell of."""
    return workspace.get_notebook_document(cell_uri=cell)


def within(workspace: Workspace, document: Document, excerpt: Excerpt) -> Excerpt:
    """A position in a cell as a position in the text of its notebook's cells; other documents' positions unchanged."""
    notebook = notebook_of(workspace, document.uri)
    if notebook is None:
        return excerpt
    cells = [cell for cell in _cells(workspace, notebook) if cell.language_id == document.language_id]
    if document not in cells:
        return excerpt
    index = cells.index(document)
    before, begins = _texts(reversed(cells[:index]), BEFORE) if excerpt.begins else ([], False)
    after, ends = _texts(cells[index + 1 :], AFTER) if excerpt.ends else ([], False)
    prefix = "".join(text + BETWEEN for text in reversed(before))
    suffix = "".join(BETWEEN + text for text in after)
    return Excerpt(prefix + excerpt.text + suffix, len(prefix) + excerpt.offset, begins, ends)


def name_of(workspace: Workspace, document: Document) -> str:
    """The path of a document; of a cell that of its notebook, as if it were a file of the cell's language."""
    notebook = notebook_of(workspace, document.uri)
    if notebook is None:
        return document.path
    suffixes = by_id(document.language_id or "").suffixes
    return Document(notebook.uri).path + (suffixes[0] if suffixes else "")


def _cells(workspace: Workspace, notebook: types.NotebookDocument) -> list[Document]:
    code = [cell for cell in notebook.cells if cell.kind == types.NotebookCellKind.Code]
    return [found for cell in code if (found := open_document(workspace, cell.document)) is not None]


def _texts(cells: Iterable[Document], most: int) -> tuple[list[str], bool]:
    """The texts of cells, whole ones and ``most`` characters at most; whether that is all."""
    texts: list[str] = []
    for cell in cells:
        most -= cell.length + len(BETWEEN)
        if most < 0:
            return texts, False
        texts.append(cell.text().rstrip("\n"))
    return texts, True
