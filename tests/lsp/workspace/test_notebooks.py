"""Untitled buffers, and cells of notebooks, which are completed within the cells around them."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_asyncio
from lsprotocol import types

from codespec.lsp.workspace.documents import BEFORE, Document
from codespec.lsp.workspace.notebooks import BETWEEN, within

from ..helpers import running, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOTEBOOK = "file:///work/a.ipynb"


def cell(number: int) -> str:
    return f"vscode-notebook-cell:/work/a.ipynb#W{number}"


def notebook(texts: list[tuple[str, str]], uri: str = NOTEBOOK) -> types.DidOpenNotebookDocumentParams:
    """With cells of (language, text)."""
    kinds = types.NotebookCellKind
    cells = [
        types.NotebookCell(kinds.Markup if language == "markdown" else kinds.Code, cell(index))
        for index, (language, _) in enumerate(texts)
    ]
    items = [types.TextDocumentItem(cell(index), language, 1, text) for index, (language, text) in enumerate(texts)]
    return types.DidOpenNotebookDocumentParams(types.NotebookDocument(uri, "jupyter-notebook", 1, cells), items)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cells(tmp_path_factory):
    async with running(tmp_path_factory.mktemp("cells"), notebooks=True) as server:
        yield server


async def test_clients_are_asked_for_notebooks(cells):
    selector = cells.result.capabilities.notebook_document_sync.notebook_selector
    assert [each.notebook for each in selector] == ["*"]


async def test_a_cell_is_completed_behind_the_earlier_ones_of_its_language(cells):
    texts = [("python", "import os\n"), ("markdown", "# Title"), ("sql", "select 1"), ("python", "ab"), ("python", "z")]
    cells.client.notebook_document_did_open(notebook(texts))
    await until(lambda: cells.said("learns a.ipynb.py in no workspace, 16 characters, None"))
    [item] = (await cells.ask(0, 2, cell(3))).items
    assert item.insert_text == "ab<\nab|128>"
    assert item.range == types.Range(types.Position(0, 0), types.Position(0, 2))
    await until(lambda: cells.said("learns a.ipynb.py in no workspace, 16 characters, 13"))
    assert (await cells.ask(0, 0, cell(2))).items[0].insert_text == "<|128>"  # the only one of its language


async def test_a_change_of_a_cell_changes_what_the_next_is_completed_behind(cells):
    cells.client.notebook_document_did_open(notebook([("python", "a = 1"), ("python", "b")]))
    at = types.Position(0, 5)
    content = types.NotebookDocumentCellContentChanges(
        types.VersionedTextDocumentIdentifier(2, cell(0)),
        [types.TextDocumentContentChangePartial(types.Range(at, at), "23")],
    )
    identifier = types.VersionedNotebookDocumentIdentifier(2, NOTEBOOK)
    change = types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(text_content=[content]))
    cells.client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(identifier, change))
    await until(lambda: cells.said("reads a.ipynb.py up to 'a = 123'"))
    assert (await cells.ask(0, 0, cell(1))).items[0].insert_text == "<3\n\n|128>"
    new = types.TextDocumentItem(cell(7), "python", 1, "new")
    structure = types.NotebookDocumentCellChangeStructure(
        types.NotebookCellArrayChange(0, 1, [types.NotebookCell(types.NotebookCellKind.Code, cell(7))]),
        did_open=[new],
        did_close=[types.TextDocumentIdentifier(cell(0))],
    )
    change = types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(structure=structure))
    cells.client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(identifier, change))
    assert (await cells.ask(0, 0, cell(1))).items[0].insert_text == "<w\n\n|128>"
    assert await cells.ask(0, 0, cell(0)) is None


async def test_a_notebook_that_was_closed_or_never_opened(cells):
    params = notebook([("python", "a")])
    cells.client.notebook_document_did_open(params)
    identifiers = [types.TextDocumentIdentifier(cell(0))]
    closing = types.DidCloseNotebookDocumentParams(types.NotebookDocumentIdentifier(NOTEBOOK), identifiers)
    cells.client.notebook_document_did_close(closing)
    assert await cells.ask(0, 1, cell(0)) is None
    cells.client.notebook_document_did_close(closing)
    change = types.NotebookDocumentChangeEvent()
    identifier = types.VersionedNotebookDocumentIdentifier(2, "file:///never/opened.ipynb")
    cells.client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(identifier, change))
    cells.open("x = 1", "file:///work/after.py")
    assert (await cells.ask(0, 5, "file:///work/after.py")).items
    assert "Traceback" not in cells.stderr


async def test_an_untitled_buffer_is_completed_in_the_language_it_says_it_is(cells):
    cells.open("select 1", "untitled:Untitled-1", language="sql")
    assert (await cells.ask(0, 8, "untitled:Untitled-1")).items[0].insert_text == "select 1<t 1|128>"
    assert "begin Untitled-1" in cells.stderr


class Session:
    """As much of a workspace as ``within`` asks for."""

    def __init__(self, documents: list[Document]) -> None:
        self.workspace = self
        self.documents = {each.uri: each for each in documents}
        code = types.NotebookCellKind.Code
        self.notebook = types.NotebookDocument(
            NOTEBOOK, "", 1, [types.NotebookCell(code, uri) for uri in self.documents]
        )

    @property
    def text_documents(self):
        return self.documents

    def get_notebook_document(self, cell_uri):
        return self.notebook


async def test_of_large_notebooks_the_nearest_cells_count():
    sizes = [BEFORE, BEFORE // 3, BEFORE // 3, 5, 40, BEFORE]
    documents = [Document(cell(n), str(n) * size, 1, "python") for n, size in enumerate(sizes)]
    here = documents[3]
    session: Any = Session(documents)
    found = within(session, here, here.excerpt(0, 2))
    assert (found.begins, found.ends) == (False, False)
    assert found.text == BETWEEN.join(["1" * sizes[1], "2" * sizes[2], "33333", "4" * 40])
    assert found.text[: found.offset].endswith("2\n\n33")


async def test_what_is_no_python_is_not_completed_as_python(cells):
    texts = [
        ("python", "%matplotlib inline\n"),
        ("python", "%%bash\nls 'a"),
        ("python", "!ls\nab"),
        ("python", "%%x\ny"),
    ]
    uri = "file:///work/magic.ipynb"
    cells.client.notebook_document_did_open(notebook(texts, uri))
    [item] = (await cells.ask(1, 2, cell(2))).items
    assert item.insert_text == "ab<\nab|128>"
    await until(lambda: cells.said("learns magic.ipynb.py in no workspace, 26 characters, 26"))  # those of Python
    assert [each.insert_text for each in (await cells.ask(1, 5, cell(1))).items] == ["ls 'a< 'a|128>"]
    assert cells.said("begin magic.ipynb.sh")
    for line, column, number in ((0, 3, 2), (0, 18, 0), (1, 1, 3)):
        assert not (await cells.ask(line, column, cell(number))).items
