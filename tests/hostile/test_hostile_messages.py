"""Nothing a client sends may end the server, unless the protocol says so; ``python -m tests.fuzz jsonrpc`` is the long
run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.fuzz.jsonrpc import STUB, Session, fuzz, unexpected
from tests.fuzz.messages import Generator, framed, initialize_params, must_answer


@pytest.mark.slow
def test_messages_of_every_kind() -> None:
    outcome = fuzz(400, seed=7, huge=1_000_000)
    assert outcome.failures == []
    assert outcome.messages == 400
    assert {"valid", "mutated", "malformed", "odd JSON", "odd headers", "out of order"} <= outcome.kinds.keys()


def test_the_same_seed_sends_the_same_messages() -> None:
    first, second, other = (
        [generator.message().data for _ in range(300)] for generator in (Generator(Random(n)) for n in (5, 5, 6))
    )
    assert first == second
    assert first != other


def test_a_request_is_known_by_its_form() -> None:
    request = {"jsonrpc": "2.0", "id": 3, "method": "a"}
    assert must_answer(request) == 3
    for other in ({"id": True}, {"id": None}, {"jsonrpc": "1.0"}, {"method": 1}, {"method": "exit"}, {"result": 1}):
        assert must_answer({**request, **other}) is None
    assert must_answer([request]) is None


def test_tracebacks_of_what_cannot_be_read_are_expected_others_are_not() -> None:
    of_pygls = "ERROR pygls.server: Unable to handle message\nTraceback (most recent call last):\n  x\nValueError\n"
    own = "ERROR codespec.lsp.session: failed\nTraceback (most recent call last):\n  x\nValueError\n"
    assert unexpected(of_pygls + "stub: closed\n") == ""
    assert unexpected(of_pygls + own) == own
    assert unexpected("ERROR asyncio: Task exception was never retrieved\n")
    assert unexpected("stub: closed\nTraceback (most recent call last):\n")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    session = Session(STUB, tmp_path)
    yield session
    session.kill()


def send(session: Session, **message: Any) -> None:
    assert session.send(framed("test", json.dumps({"jsonrpc": "2.0", **message}).encode()).data)


def answers(session: Session, *names: int | str) -> list[Any]:
    """The results or errors of these requests."""
    assert session.wait(set(names), 20)
    return [session.answers[name] for name in names]


def test_what_comes_before_initialize_is_refused_and_the_session_goes_on(session: Session) -> None:
    send(session, method="initialized", params={})
    send(session, method="textDocument/didOpen", params={"textDocument": {}})
    send(session, id=1, method="textDocument/hover", params={})
    session.handshake()
    send(session, id=2, method="initialize", params=initialize_params())
    early, first, second = answers(session, 1, "first", 2)
    assert early["error"]["code"] == -32002
    assert "capabilities" in first["result"]
    assert second["error"]["code"] == -32600
    assert session.probe()
    assert session.end() == 1  # nobody has shut it down
    assert not unexpected(session.stderr())


def test_what_comes_after_shutdown_is_refused_and_exit_is_clean(session: Session) -> None:
    session.handshake()
    send(session, id=1, method="shutdown")
    send(session, id=2, method="workspace/executeCommand", params={"command": "codespec.status"})
    send(session, id=3, method="shutdown")
    shut, late, again = answers(session, 1, 2, 3)
    assert shut["result"] is None
    assert late["error"]["code"] == again["error"]["code"] == -32600
    send(session, method="exit")
    assert session.process.wait(20) == 0


def test_a_length_that_cannot_be_meant_ends_the_session(session: Session) -> None:
    session.handshake()
    assert session.probe()
    session.send(b"Content-Length: 1000000000000\r\n\r\n{}")
    assert session.process.wait(20) == 1
    assert "1000000000000 bytes is announced" in session.stderr()
    assert not unexpected(session.stderr())


def test_a_language_that_is_no_text_breaks_nothing(session: Session) -> None:
    session.handshake()
    for number, language in enumerate((7, None, ["python"], {"a": 1}, True, "python")):
        document = {"uri": f"file:///work/{number}.py", "languageId": language, "version": 1, "text": "abc"}
        send(session, method="textDocument/didOpen", params={"textDocument": document})
    send(session, id=1, method="workspace/executeCommand", params={"command": "codespec.status"})
    (status,) = answers(session, 1)
    assert list(status["result"]["languages"]) == ["python"]
    assert session.probe()
    assert not unexpected(session.stderr())
