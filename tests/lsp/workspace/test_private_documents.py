"""What is neither shown, nor completed, nor learnt of a workspace: files of secrets, and those that lists exclude."""

from __future__ import annotations

import random

import pytest
from lsprotocol import types

from codespec.lsp.workspace import surroundings
from codespec.lsp.workspace.documents import Document
from codespec.privacy.ignore_files import CHECK_S

from ..helpers import running, until
from .folder_session import TOKEN, text


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
