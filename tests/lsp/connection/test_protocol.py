"""What a client should not do, and the ends of a session."""

from __future__ import annotations

import json
import subprocess

import pytest

from ..helpers import raw, wait_for_stderr


def ended(process: subprocess.Popen[bytes], within: float = 120.0) -> int:
    """The exit status."""
    return process.wait(timeout=within)


@pytest.fixture(scope="module")
def patient(tmp_path_factory):
    """A server that has seen everything."""
    with raw(tmp_path_factory.mktemp("patient")) as server:
        server.handshake({"workspace": {"didChangeConfiguration": {"dynamicRegistration": True}}})
        request = server.asked("client/registerCapability")
        assert request["params"]["registrations"][0]["method"] == "workspace/didChangeConfiguration"
        server.send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no"}})
        server.open("x = \n")
        yield server


def test_malformed_messages(patient):
    for body in (
        b"{",
        b"nonsense",
        b"\xff\xfe",
        b"[]",
        b"42",
        b"null",
        b"{}",
        b'{"jsonrpc": "1.0", "id": 1, "method": "shutdown"}',
        b'{"jsonrpc": "2.0"}',
        b'{"jsonrpc": "2.0", "id": 7}',
        b'{"jsonrpc": "2.0", "id": 7, "result": 1}',
        b'{"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 99}}',
        b'{"jsonrpc": "2.0", "method": "no/such/notification", "params": {}}',
        b"[" * 100_000,
    ):
        patient.send_body(body)
    patient.send_bytes(b"Content-Length: 0\r\n\r\n")
    patient.send_bytes(b"X-Unknown: 1\r\n")
    missing = {"textDocument": {"uri": "file:///not/open", "version": 1}, "contentChanges": [{"text": "x"}]}
    patient.notify("textDocument/didChange", missing)
    patient.complete(8, 0, 4)
    assert patient.answer(8)["result"]["items"]


def test_requests_that_cannot_be_served_get_an_error(patient):
    patient.request(1, "no/such/method", {})
    assert patient.answer(1)["error"]["code"] == -32601
    patient.request(2, "textDocument/inlineCompletion", {"position": "here"})
    assert patient.answer(2)["error"]["code"] == -32602
    patient.send({"jsonrpc": "2.0", "id": 3, "method": "no/such/method"})
    assert "error" in patient.answer(3)
    patient.open("x = \n")
    patient.complete(4, -5, -1)
    assert "error" in patient.answer(4)
    patient.complete(5, 0, 4)
    assert patient.answer(5)["result"]["items"]


@pytest.mark.parametrize("depth", [150, 250, 900, 100_000])
@pytest.mark.parametrize(
    ("method", "first", "opening", "closing"),
    [("workspace/executeCommand", True, "[", "]"), ("no/such/method", False, '{"id":', "}")],
    ids=["lists", "objects"],
)
def test_a_message_that_is_nested_too_deeply_is_answered(patient, depth, method, first, opening, closing):
    nested = f"{opening * depth}1{closing * depth}"
    params = f'"params": {{"command": "no", "arguments": [{nested}]}}'
    identifier = f'"id": "deep {depth} {method} {first} {len(opening)}"'
    parts = [identifier, params] if first else [params, identifier]
    patient.send_body(f'{{"jsonrpc": "2.0", "method": "{method}", {", ".join(parts)}}}'.encode())
    error = patient.answer(json.loads(f"{{{identifier}}}")["id"])["error"]
    assert ("nested more than 200 levels" in error["message"]) == (depth > 198), error
    patient.notify("workspace/didChangeConfiguration", {"settings": {"codespec": 1}})
    patient.send_body(f'{{"jsonrpc": "2.0", "method": "x", "params": {nested}}}'.encode())
    patient.open("x = \n")
    patient.complete(77, 0, 4)
    assert patient.answer(77)["result"]["items"]


@pytest.mark.parametrize("document", [{"version": None}, {}])
def test_a_change_without_a_version_is_applied(patient, document):
    """The protocol up to 3.15 allows null."""
    uri = "file:///work/unversioned.py"
    patient.notify(
        "textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "python", "text": "a", **document}}
    )
    change = {"textDocument": {"uri": uri, **document}, "contentChanges": [{"text": "later"}]}
    patient.notify("textDocument/didChange", change)
    where = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 9}, "context": {"triggerKind": 2}}
    patient.request(60, "textDocument/inlineCompletion", where)
    assert patient.answer(60)["result"]["items"][0]["insertText"].startswith("later<")
    patient.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


def test_numbers_out_of_range_are_named(patient):
    """The integers of the protocol are those of 32 bits; what was sent is not repeated."""
    patient.complete(61, 2**31, 0)
    said = patient.answer(61)["error"]["message"]
    assert said == "Position.line should be in range [0:2147483647]"
    patient.complete(62, 2**31 - 1, 2**31 - 1)
    assert patient.answer(62)["result"]["items"]


def test_documents_that_are_changed_out_of_order(patient):
    """Changes before they are opened, after they were closed, with versions that go back, and opened twice."""
    uri = "file:///work/order.py"

    def change(text, version):
        document = {"uri": uri, "version": version}
        patient.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def ask(id):
        where = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 9}, "context": {"triggerKind": 2}}
        patient.request(id, "textDocument/inlineCompletion", where)
        return patient.answer(id)["result"]

    def notify(method, **more):
        patient.notify(f"textDocument/{method}", {"textDocument": {"uri": uri, **more}})

    change("early", 5)
    notify("didClose")
    notify("didSave")
    assert ask(20) is None
    for text in ("first", "again"):
        notify("didOpen", languageId="python", version=7, text=text)
    assert ask(21)["items"][0]["insertText"].startswith("again<")
    change("later", 3)
    change("last", -1)
    assert ask(22)["items"][0]["insertText"].startswith("last<")
    for range_ in ({"start": {"line": 5, "character": 9}, "end": {"line": 0, "character": 0}}, {"start": 1}, 7):
        content = [{"range": range_, "text": "x"}]
        patient.notify(
            "textDocument/didChange", {"textDocument": {"uri": uri, "version": 4}, "contentChanges": content}
        )
    assert ask(23) is None  # two of these changes could not be read: the editor has another text
    change("whole", 10)
    assert ask(25)["items"][0]["insertText"].startswith("whole<")
    notify("didClose")
    change("late", 9)
    assert ask(24) is None


def test_settings_hold_where_a_client_does_not_say_how_they_changed(tmp_path):
    with raw(tmp_path) as server:
        server.handshake({"workspace": {"configuration": True}})
        for answer in ({"result": [{"max_tokens": 7}]}, {"error": {"code": -32603, "message": "as asked"}}):
            request = server.asked("workspace/configuration")
            server.send({"jsonrpc": "2.0", "id": request["id"], **answer})
            server.notify("workspace/didChangeConfiguration", {"settings": None})
        server.asked("workspace/configuration")
        server.open("abc\n")
        server.complete(1, 0, 3)
        assert server.answer(1)["result"]["items"][0]["insertText"] == "abc<abc|7>"


def test_shutdown_and_exit(tmp_path):
    with raw(tmp_path) as server:
        server.handshake()
        server.open("x = \n")
        server.complete(1, 0, 4)
        assert server.answer(1)["result"]["items"]
        server.request(2, "shutdown")
        assert server.answer(2)["result"] is None
        server.notify("exit")
        assert ended(server.process) == 0
        text = (tmp_path / "stderr").read_text()
        assert "stub: closed" in text
        assert "Traceback" not in text
        # What the models print must not get between the messages: Raw would have choked on it.
        assert "a line on standard output" in text


def test_messages_before_the_start_and_after_the_end(tmp_path):
    with raw(tmp_path) as server:
        server.open("x = \n")
        server.complete(1, 0, 4)
        assert server.answer(1)["error"]["code"] == -32002
        server.request(2, "shutdown")
        assert server.answer(2)["error"]["code"] == -32002
        server.notify("textDocument/didClose", {"textDocument": {"uri": "x:y"}})
        server.handshake()
        server.request(3, "initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        assert server.answer(3)["error"]["code"] == -32600
        server.complete(4, 0, 4)
        assert server.answer(4)["result"] is None, "it was opened too early"
        server.request(5, "shutdown")
        assert server.answer(5)["result"] is None
        server.complete(6, 0, 4)
        assert server.answer(6)["error"]["code"] == -32600
        server.notify("textDocument/didClose", {"textDocument": {"uri": "x:y"}})
        server.notify("exit")
        assert ended(server.process) == 0
        assert "Traceback" not in (tmp_path / "stderr").read_text()


def test_exit_before_the_start(tmp_path):
    with raw(tmp_path) as server:
        server.notify("exit")
        assert ended(server.process) == 1


def test_exit_without_shutdown(tmp_path):
    with raw(tmp_path) as server:
        server.handshake()
        server.notify("exit")
        assert ended(server.process) == 1


@pytest.mark.parametrize("at", ["decoding", "loading"])
def test_a_killed_client_ends_the_server(tmp_path, at):
    with raw(tmp_path, env={"STUB_STEP_S": "0.01", "STUB_LOAD_S": "60" if at == "loading" else "0"}) as server:
        server.handshake()
        server.open("steps=5000\n")
        server.complete(1, 0, 10)
        if at == "decoding":
            wait_for_stderr(tmp_path / "stderr")
        server.hang_up()
        assert ended(server.process, within=20.0) in (0, 1)
