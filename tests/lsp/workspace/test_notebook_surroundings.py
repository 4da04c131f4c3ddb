"""Cells of a notebook: shown to each other, and as private as any of them."""

from __future__ import annotations

import pytest
from lsprotocol import types

from codespec.lsp.workspace.documents import Document
from codespec.privacy.ignore_files import CHECK_S

from ..helpers import running, until
from .folder_session import TOKEN, text, wait


def test_cells_of_a_notebook_are_one_file(session):
    a = session.open("a.py")
    file = session.document("n.ipynb")
    (session.folder / "shapes.py").write_text("def area(shape):\n    return 1\n")
    start = file.uri.replace("file:", "vscode-notebook-cell:")
    first, second = (Document(f"{start}#W{name}", text(name, 5), 1, "python") for name in "xy")
    for cell in (first, second):
        session.surroundings.opened(cell, str(session.folder))
    assert session.shown(a) == ["n.ipynb y_0", "n.ipynb x_0"]
    assert session.shown(first) == ["a.py a_0"]
    session.change(second, 0, "from shapes import area\n")
    session.surroundings.saved(second, str(session.folder))
    wait(lambda: session.shown(second) == ["shapes.py def", "a.py a_0"])
    session.change(first, 0, f"KEY = '{TOKEN}'\n")
    assert session.private(first)
    assert session.private(second), "its prompts would hold the other cell's text"
    assert session.shown(a) == []
    (session.folder / ".codespecignore").write_text("*.ipynb\n")
    session.surroundings.closed(first.uri)
    session.now += CHECK_S
    assert session.private(second) == ".codespecignore excludes it"


def test_a_secret_in_one_cell_keeps_all_of_them_out_of_other_files(session):
    a = session.open("a.py")
    start = session.document("n.ipynb").uri.replace("file:", "vscode-notebook-cell:")
    sources = text("x", 50), f"KEY = '{TOKEN}'\n", text("z", 50)
    first, secret, last = (Document(f"{start}#W{n}", source, 1, "python") for n, source in enumerate(sources))
    for cell in (first, secret, last):
        session.surroundings.opened(cell, str(session.folder))
    assert session.shown(a) == []
    session.surroundings.saved(first, str(session.folder))
    session.visit(last, 40)
    session.visit(last, 0)
    assert session.shown(a) == []
    session.surroundings.closed(last.uri)
    assert session.shown(a) == []
    session.surroundings.closed(secret.uri)
    session.surroundings.saved(first, str(session.folder))
    assert session.shown(a) == ["n.ipynb x_0"], "it is gone"


@pytest.mark.asyncio
async def test_a_secret_in_a_cell_that_is_not_touched_keeps_its_notebook_out(tmp_path):
    start = (tmp_path / "n.ipynb").as_uri().replace("file:", "vscode-notebook-cell:")
    texts = {f"{start}#W0": "x = 1\ny = 2\nz = 3\n", f"{start}#W1": "y = 2\n", f"{start}#W2": f"key = '{TOKEN}'\n"}
    items = [types.TextDocumentItem(uri, "python", 1, source) for uri, source in texts.items()]
    code = types.NotebookCellKind.Code

    def cells(some):
        return [types.NotebookCell(code, each.uri) for each in some]

    async with running(tmp_path, folder=tmp_path) as server:
        uri = (tmp_path / "n.ipynb").as_uri()
        book = types.NotebookDocument(uri, "jupyter-notebook", 1, cells(items[:2]))
        server.client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(book, items[:2]))
        assert (await server.ask(0, 3, items[0].uri)).items
        structure = types.NotebookDocumentCellChangeStructure(
            types.NotebookCellArrayChange(2, 0, cells(items[2:])), did_open=items[2:]
        )
        change = types.NotebookDocumentChangeEvent(cells=types.NotebookDocumentCellChanges(structure=structure))
        identifier = types.VersionedNotebookDocumentIdentifier(2, uri)
        server.client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(identifier, change))
        assert not (await server.ask(0, 3, items[1].uri)).items
        identifiers = [types.TextDocumentIdentifier(each.uri) for each in reversed(items)]
        closing = types.DidCloseNotebookDocumentParams(types.NotebookDocumentIdentifier(uri), identifiers)
        server.client.notebook_document_did_close(closing)
        other = (tmp_path / "other.py").as_uri()
        server.open("z = 3\n", other)
        assert (await server.ask(0, 3, other)).items
        assert "sees n.ipynb" not in server.stderr


@pytest.mark.asyncio
@pytest.mark.parametrize("start", ["vscode-notebook-cell://ssh-remote%2Bbox", "some-cell:"])
async def test_a_cell_is_as_private_as_its_notebook_wherever_the_editor_says_it_is(tmp_path, start):
    names = ("open.ipynb", "hidden.ipynb")
    (tmp_path / ".codespecignore").write_text("hidden.*\n")
    async with running(tmp_path, folder=tmp_path, notebooks=True) as server:
        for name in names:
            file = tmp_path / name
            cell = types.TextDocumentItem(f"{start}{file.as_posix()}#W0", "python", 1, "x = 1\n")
            code = types.NotebookCell(types.NotebookCellKind.Code, cell.uri)
            book = types.NotebookDocument(file.as_uri(), "jupyter-notebook", 1, [code])
            server.client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(book, [cell]))
            answer = await server.ask(0, 3, cell.uri)
            assert bool(answer.items) == (name == "open.ipynb")
        await until(lambda: server.said(f"learns open.ipynb.py in {tmp_path}"))
        assert not server.said("learns hidden.ipynb.py")
