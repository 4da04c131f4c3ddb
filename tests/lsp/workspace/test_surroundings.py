"""What requests show of other files."""

from __future__ import annotations

import pytest
from lsprotocol import types

from codespec.config_sections import ContextConfig
from codespec.lsp.workspace import surroundings
from codespec.lsp.workspace.documents import Document
from codespec.privacy.ignore_files import CHECK_S

from ..helpers import running, until
from .folder_session import Session, text, wait


def test_open_documents_show_their_start(session):
    a, b = session.open("a.py"), session.open("sub/b.py")
    assert session.shown(a) == ["sub/b.py b_0"]
    assert session.shown(b) == ["a.py a_0"]


def test_places_that_were_left_are_shown_elsewhere(session):
    a, b = session.open("a.py"), session.open("b.py")
    session.visit(a, 100)
    session.visit(a, 110)
    assert session.shown(b) == ["a.py a_0"], "not left yet"
    session.visit(a, 10)
    session.visit(a, 190)
    session.visit(b, 0)
    assert sorted(session.shown(b)) == ["a.py a_0", "a.py a_137", "a.py a_62"]
    session.visit(a, 150)
    session.surroundings.closed(a.uri)
    assert "a.py a_102" in session.shown(b)
    assert session.shown(a) == ["b.py b_0"]


def test_what_is_saved_is_shown_as_it_was_saved(session):
    a, b = session.open("a.py"), session.open("b.py")
    session.visit(a, 100)
    session.change(a, 100, "changed = 1\n")
    session.surroundings.saved(a, str(session.folder))
    [chunk] = [each for each in session.surroundings.context(b, 0, str(session.folder)) if "changed" in each.text]
    assert chunk.text.startswith("a_52 = make_a(52)\n")


def test_settings_limit_what_is_shown(session):
    session.surroundings.use(ContextConfig(ring_chunks=1, chunk_lines=5))
    a, b, c = (session.open(f"{name}.py") for name in "abc")
    assert session.shown(a) == ["c.py c_0"]
    [chunk] = session.surroundings.context(b, 0, str(session.folder))
    assert chunk.text == text("c", 5)
    session.surroundings.use(ContextConfig(enabled=False))
    assert session.shown(a) == []
    session.surroundings.use(ContextConfig())
    session.visit(b, 0)
    session.visit(c, 0)
    assert session.shown(a) == ["b.py b_0"]
    session.surroundings.use(ContextConfig(ring_chunks=0))
    assert session.shown(a) == []


def test_nothing_is_shown_without_a_workspace_folder_nor_from_outside(session, tmp_path_factory):
    other = Session(tmp_path_factory.mktemp("other"))
    a, outside = session.open("a.py"), other.document("o.py", text("o"))
    untitled = Document("untitled:Untitled-1", text("u"), 1, "python")
    for document in (outside, untitled):
        session.surroundings.opened(document, "")
        session.surroundings.visited(document, 10, str(session.folder))
    session.visit(a, 0)
    assert session.shown(a) == []
    assert session.surroundings.context(untitled, 0, "") == ()


def test_what_is_imported_is_shown_first(session):
    session.document("shapes.py", "def area(shape):\n    return 1\n")
    session.document("hidden.py", "def f(): pass\n")
    (session.folder / ".gitignore").write_text("hidden.py\n")
    session.open("b.py")
    a = session.open("a.py", "from shapes import area\nfrom hidden import f\n" + text("a"))
    wait(lambda: len(session.shown(a)) == 2)
    assert session.shown(a) == ["shapes.py def", "b.py b_0"]
    (session.folder / ".codespecignore").write_text("shapes.py\n")
    session.now += CHECK_S
    assert session.shown(a) == ["b.py b_0"]
    session.surroundings.use(ContextConfig(imports=False))
    assert session.shown(a) == ["b.py b_0"]


def test_imports_that_are_written_count_after_a_while(session):
    session.document("shapes.py", "def area(shape):\n    return 1\n")
    a = session.open("a.py")
    session.visit(a, 0)
    session.change(a, 0, "from shapes import area\n")
    session.now += surroundings.IMPORTS_EVERY_S + 1
    session.visit(a, 0)
    session.now += surroundings.IMPORTS_EVERY_S + 1
    session.visit(a, 1)
    assert session.shown(a) == [], "it was read without the line that was written"
    session.change(a, 1, "x = 1\n")
    session.visit(a, 1)
    wait(lambda: session.shown(a) == ["shapes.py def"])


@pytest.mark.asyncio
async def test_a_session_shows_what_it_may_and_leaves_the_rest_alone(tmp_path):
    work = tmp_path / "w"
    work.mkdir()
    (work / ".codespecignore").write_text("private.py\n")
    (work / ".gitignore").write_text("ignored.py\n")
    names = ("a.py", "b.py", "private.py", "ignored.py", ".env")
    uris = {name: (work / name).as_uri() for name in names}
    async with running(tmp_path, folder=work) as server:
        for name, uri in uris.items():
            server.open(text(name.strip(".")[:1], 3), uri)
        for name in ("private.py", ".env"):
            answer = await server.ask(0, 3, uris[name])
            assert not answer.items
            change = types.TextDocumentContentChangePartial(
                types.Range(types.Position(0, 0), types.Position(0, 0)), "new = 1\n"
            )
            server.change(change, uris[name])
        assert (await server.ask(0, 3, uris["ignored.py"])).items
        assert (await server.ask(0, 3, uris["a.py"])).items
        assert server.said(f"a.py sees b.py: {text('b', 3)!r}")
        assert server.said("ignored.py sees b.py")
        server.client.text_document_did_save(
            types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uris["private.py"]))
        )
        await until(lambda: server.said("learns a.py"))
        for unwanted in ("begin private.py", "begin .env", "learns private.py", "learns .env", "reads private.py"):
            assert not server.said(unwanted)
        assert "sees private.py" not in server.stderr
        assert "sees ignored.py" not in server.stderr
        logged = [each.message for each in server.client.log_messages if "no completions" in each.message]
        assert len(logged) == 2
        server.client.text_document_did_close(
            types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uris["b.py"]))
        )


@pytest.mark.asyncio
async def test_saving_moves_nobody(tmp_path):
    a, b = ((tmp_path / f"{name}.py").as_uri() for name in "ab")
    async with running(tmp_path, folder=tmp_path) as server:
        server.open(text("a"), a)
        server.open(text("b", 3), b)
        assert (await server.ask(100, 3, a)).items
        server.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(a)))
        server.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(a)))
        assert (await server.ask(0, 3, b)).items
        seen = [line for line in server.stderr.splitlines() if "b.py sees a.py" in line]
        assert [line.partition("'")[2].partition(" ")[0] for line in seen] == ["a_52", "a_0"]


@pytest.mark.asyncio
async def test_context_can_be_switched_off_by_a_workspace(tmp_path):
    (tmp_path / "codespec.toml").write_text("[context]\nenabled = false\n")
    async with running(tmp_path, folder=tmp_path) as server:
        for name in "ab":
            server.open(text(name, 3), (tmp_path / f"{name}.py").as_uri())
        assert (await server.ask(0, 3, (tmp_path / "a.py").as_uri())).items
        assert "sees" not in server.stderr
        assert not server.shown
