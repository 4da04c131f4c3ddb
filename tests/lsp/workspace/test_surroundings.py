"""What requests show of other files, and what is neither shown, nor completed, nor learnt."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
from lsprotocol import types

from codespec.config import ContextConfig
from codespec.lsp.workspace import surroundings
from codespec.lsp.workspace.documents import Document
from codespec.lsp.workspace.surroundings import Surroundings
from codespec.privacy.ignore_files import CHECK_S

from ..helpers import running, until

TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"


def text(topic: str, count: int = 200) -> str:
    return "".join(f"{topic}_{number} = make_{topic}({number})\n" for number in range(count))


class Session:
    """Documents of one workspace folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.now = 100.0
        self.surroundings = Surroundings(lambda: self.now)

    def document(self, name: str, source: str = "") -> Document:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        return Document(path.as_uri(), source, 1, "python")

    def open(self, name: str, source: str = "") -> Document:
        document = self.document(name, source or text(Path(name).stem))
        self.surroundings.opened(document, str(self.folder))
        return document

    def visit(self, document: Document, row: int) -> None:
        self.surroundings.visited(document, row, str(self.folder))

    def shown(self, document: Document, row: int = 0) -> list[str]:
        found = self.surroundings.context(document, row, str(self.folder))
        return [f"{each.path} {each.text.split()[0]}" for each in found]

    def private(self, document: Document) -> str:
        return self.surroundings.private(document, str(self.folder))

    def change(self, document: Document, row: int, new: str, old: int = 0) -> None:
        at = types.Range(types.Position(row, 0), types.Position(row, old))
        change = types.TextDocumentContentChangePartial(at, new)
        document.apply_change(change)
        self.surroundings.changed(document, str(self.folder), [change])


@pytest.fixture
def session(tmp_path):
    return Session(tmp_path)


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


def test_links_are_followed_before_anything_is_decided(session, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "id_rsa"
    outside.write_text("x = 1\ny = 2\nz = 3\n")
    link = session.folder / "notes.py"
    try:
        link.symlink_to(outside)
    except OSError:
        pytest.skip("no links here")
    document = Document(link.as_uri(), outside.read_text(), 1, "python")
    session.surroundings.opened(document, str(session.folder))
    assert session.private(document) == "files of that name hold secrets"
    assert session.shown(session.open("a.py")) == []


def test_ignored_files_are_not_shown_from_the_moment_they_are(session):
    (session.folder / ".gitignore").write_text("build/\n")
    (session.folder / ".codespecignore").write_text("/private.py\n")
    a, built, private, good = (session.open(name) for name in ("a.py", "build/x.py", "private.py", "good.py"))
    assert session.shown(a) == ["good.py good_0"]
    assert session.private(private) == ".codespecignore excludes it"
    assert not session.private(built), "it is no secret"
    assert session.shown(built) == ["good.py good_0", "a.py a_0"]
    (session.folder / ".gitignore").write_text("good.py\n")
    session.now += CHECK_S
    assert session.shown(a) == []
    assert not session.private(good)


def test_changed_lists_count_soon_however_old_what_is_shown_is(session):
    chance, changed, hidden = random.Random(4), 0.0, False
    documents = [session.open(name) for name in ("a.py", "b.py", "c.py")]
    for _ in range(1000):
        session.now += chance.random() * CHECK_S / 3
        if session.now - changed > 3 * CHECK_S:
            changed, hidden = session.now, not hidden
            (session.folder / ".codespecignore").write_text("c.py" if hidden else "# nothing is")
        here = chance.choice(documents)
        names = {each.split()[0] for each in session.shown(here)} - {"a.py", "b.py"}
        if here is not documents[2] and session.now - changed >= CHECK_S:
            assert names == (set() if hidden else {"c.py"})


@pytest.mark.parametrize("name", [".env", "keys/server.pem", "secrets.yaml", "credentials.json"])
def test_files_of_secrets_are_private(session, name):
    document = session.open(name, "a = 1\nb = 2\nc = 3\n")
    assert session.private(document) == "files of that name hold secrets"
    assert session.shown(session.open("a.py")) == []


@pytest.mark.parametrize(
    "uri", ["git:/w/.env?%7B%22ref%22%3A%22HEAD%22%7D", "vscode-remote://ssh/w/%2Eenv", "untitled:.env"]
)
def test_names_count_wherever_an_editor_has_the_text_from(session, uri):
    assert session.private(Document(uri, "x = 1\n", 1, "python")) == "files of that name hold secrets"


def test_a_token_makes_a_document_private_while_it_is_there(session):
    a, b = session.open("a.py"), session.open("b.py")
    assert session.shown(a) == ["b.py b_0"]
    line = f"KEY = '{TOKEN}'\n"
    session.change(b, 150, line)
    assert session.private(b) == "it holds a private key, an access token or a password"
    session.visit(b, 20)
    session.visit(a, 0)
    assert session.shown(a) == []
    session.now += surroundings.RECHECK_S + 1
    session.change(b, 150, "", old=len(line) - 1)
    assert not session.private(b)
    session.surroundings.saved(b, str(session.folder))
    assert session.shown(a) == ["b.py b_0"]


def test_a_token_that_is_typed_key_by_key_is_found(session):
    document = session.open("a.py", "KEY = ''\n")
    for count in range(len(TOKEN)):
        assert not session.private(document)
        at = types.Position(0, 7 + count)
        change = types.TextDocumentContentChangePartial(types.Range(at, at), TOKEN[count])
        document.apply_change(change)
        session.surroundings.changed(document, str(session.folder), [change])
    assert session.private(document)


def test_a_token_in_one_of_many_changes_is_found(session):
    document = session.open("a.py")
    start = types.Range(types.Position(0, 0), types.Position(0, 0))
    changes = [types.TextDocumentContentChangePartial(start, each) for each in ("x = 1\n", f"k = '{TOKEN}'\n")]
    for change in changes:
        document.apply_change(change)
    session.surroundings.changed(document, str(session.folder), changes)
    assert session.private(document)
    whole = types.TextDocumentContentChangeWholeDocument("x = 1\n")
    document.apply_change(whole)
    session.now += surroundings.RECHECK_S + 1
    session.surroundings.changed(document, str(session.folder), [whole])
    assert not session.private(document)


def test_pieces_that_look_drawn_at_random_are_not_shown(session):
    session.open("b.py", "x = 1\ny = 2\npassword = 'Hq7-rT2_wPz9'\n")
    assert session.shown(session.open("a.py")) == []


def test_a_value_that_is_being_typed_is_not_shown(session):
    a, b = session.open("a.py"), session.open("b.py")
    for row, new, old in ((5, "password = 'Hq7-rT2_wPz9\n", 0), (5, "password = 'Hq7-rT2_wPz9'", 24)):
        session.visit(b, row)
        session.change(b, row, new, old)
        session.now += 100
        session.visit(a, 0)
        assert not [each for each in session.surroundings.context(a, 0, str(session.folder)) if "Hq7" in each.text]


def test_what_was_shown_of_a_secret_is_not_shown_when_it_is_recognised(session):
    a, b = session.open("a.py"), session.open("b.yaml", text("b"))
    session.visit(b, 5)
    session.change(b, 5, "url: amqp://app:Hq7-rT2_wPz9\n")  # what follows may be a port
    session.visit(a, 0)
    assert [each for each in session.surroundings.context(a, 0, str(session.folder)) if "Hq7" in each.text]
    session.visit(b, 5)
    session.change(b, 4, "password: Hq7-rT2_wPz9\n")
    session.now += 100
    session.visit(a, 0)
    assert not [each for each in session.surroundings.context(a, 0, str(session.folder)) if "Hq7" in each.text]


def test_an_encrypted_key_that_is_typed_key_by_key_is_found(session):
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    body = "".join(random.Random(9).choices(letters, k=64))
    head = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0123456789ABCDEF\n\n"
    document = session.open("k.py", "x = 1\n")
    for character in head + body:
        row = len(document.lines) - 1
        at = types.Position(row, len(document.line(row)))
        change = types.TextDocumentContentChangePartial(types.Range(at, at), character)
        document.apply_change(change)
        session.surroundings.changed(document, str(session.folder), [change])
    assert session.private(document)


KEYS = "data:\n" + "".join(f"  entry{number}: {'Zm9vYmFy' * 4}{number:04}\n" for number in range(150))


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.yaml", "apiVersion: v1\nkind: Secret\n" + KEYS),
        ("a.yaml", KEYS + "kind: Secret\n" + text("b")),
        *(("b.py", text("b", lead) + "password = (\n    'Hq7-rT2_wPz9'\n)\n" + text("c")) for lead in (61, 62, 63)),
    ],
)
def test_what_tells_a_secret_may_stand_before_the_part_that_holds_it(session, name, source):
    a, b = session.open("a.py"), session.open(name, source)
    for row in (0, 63, 64, 100, 190):
        session.visit(b, row)
        session.visit(a, 0)
        found = session.surroundings.context(a, 0, str(session.folder))
        assert not [each for each in found if "Zm9v" in each.text or "Hq7" in each.text]
    assert bool(session.shown(a)) == (name == "b.py"), "the rest of it is shown"


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


def wait(condition) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


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


@pytest.mark.asyncio
async def test_what_was_kept_before_a_token_was_complete_is_forgotten(tmp_path):
    async with running(tmp_path, folder=tmp_path) as server:
        uri = (tmp_path / "a.py").as_uri()
        server.open(f"x = '{TOKEN[:-1]}\n", uri)
        await server.ask(0, 3, uri)
        assert server.stderr.count("stub: forgot") == 0
        server.change(types.TextDocumentContentChangeWholeDocument(f"x = '{TOKEN}'\n"), uri)
        await server.ask(0, 3, uri)
        await until(lambda: server.stderr.count("stub: forgot") == 1)
