"""Notebooks: the cells of one language are one text, in which every cell is completed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from lsprotocol import types
from pygls.workspace import Workspace

from codespec.languages import by_id, load
from codespec.lsp.workspace.documents import AFTER, BEFORE, Document, Excerpt, open_document

SELECTOR = types.NotebookDocumentSyncOptions(
    notebook_selector=[types.NotebookDocumentFilterWithNotebook(notebook="*")],
)
"""The notebooks and cells that clients are to send: all."""

FIRST = 1_000
"""Characters of a cell in which its first line is looked for."""
BETWEEN = "\n\n"
"""The text between two cells."""


class Magics(Protocol):
    """What reads cells that may hold lines of another language than they are said to be of."""

    def language_of(self, text: str) -> str | None:
        """The language of a cell; None where it is not known."""

    def without_magics(self, text: str) -> str:
        """The text of a cell with comments or numbers in place of such lines; as many characters."""

    def is_magic(self, text: str, offset: int) -> bool:
        """Whether what stands around an offset of a cell is not of its language."""


def magics_of(cell: Document) -> Magics | None:
    """What reads cells of this one's language; None where they hold nothing else."""
    cells = by_id(cell.language_id or "").cells
    found: Magics | None = load(cells) if cells else None
    return found


def notebook_of(workspace: Workspace, cell: str) -> types.NotebookDocument | None:
    """The open notebook that a document is a cell of."""
    return workspace.get_notebook_document(cell_uri=cell)


def within(workspace: Workspace, document: Document, excerpt: Excerpt) -> Excerpt:
    """A position in a cell as a position in the text of its notebook's cells; other documents' positions unchanged.

    What IPython alone understands is a comment there, of the same length.
    """
    notebook = notebook_of(workspace, document.uri)
    if notebook is None:
        return excerpt
    language = _language(document)
    magics = magics_of(document)
    if magics is not None:
        excerpt = replace(excerpt, text=magics.without_magics(excerpt.text))
    cells = [cell for cell in _cells(workspace, notebook) if _language(cell) == language]
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
    suffixes = by_id(_language(document) or "").suffixes
    return Document(notebook.uri).path + (suffixes[0] if suffixes else "")


def language_of(workspace: Workspace, document: Document) -> str | None:
    """The language of a document; of a cell, what its first line says. None where it is not known."""
    return _language(document) if notebook_of(workspace, document.uri) is not None else document.language_id


def is_foreign(workspace: Workspace, document: Document, row: int) -> bool:
    """Whether a line of a cell is of no language that is known, such as a command of IPython: nothing completes it."""
    magics = magics_of(document)
    if magics is None or notebook_of(workspace, document.uri) is None:
        return False
    text = document.text()
    return magics.language_of(text) is None or magics.is_magic(text, sum(map(len, document.lines[:row])))


def _language(cell: Document) -> str | None:
    magics = magics_of(cell)
    return magics.language_of(cell.beginning(FIRST)) if magics is not None else cell.language_id


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
        magics = magics_of(cell)
        text = magics.without_magics(cell.text()) if magics is not None else cell.text()
        texts.append(text.rstrip("\n"))
    return texts, True
