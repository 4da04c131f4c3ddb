"""Requests to an engine elsewhere, and all that goes wrong with them."""

from __future__ import annotations

import logging
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("httpx")

from codespec.protocols import Aborted
from codespec.remote.address import Address, is_loopback
from codespec.remote.connection import Connection
from codespec.remote.errors import Away, Refused, Unreachable
from tests.remote.faulty_engine import FaultyEngine, Request, running, until

KEY = "k3y-of-the-engine"


@pytest.fixture
def engine() -> Iterator[FaultyEngine]:
    with running() as found:
        yield found


@pytest.fixture
def connection(engine: FaultyEngine, request: pytest.FixtureRequest) -> Iterator[Connection]:
    """It waits for an engine that is silent for 60 seconds, or for as many as a test says."""
    found = Connection(Address(engine.url, KEY), silence_s=getattr(request, "param", 60.0))
    yield found
    found.close()


def fails(status: int, value: object, **headers: str):
    return lambda request: request.answer(value, status, **headers)


def works(request: Request) -> None:
    request.answer({"good": True})


def test_the_answer_comes_over_one_connection(engine: FaultyEngine, connection: Connection) -> None:
    engine.answers = [works]
    assert [connection.ask("/v1/completions", {"prompt": "a"}) for _ in range(5)] == [{"good": True}] * 5
    assert len(engine.ports) == 1
    assert all(headers["Authorization"] == f"Bearer {KEY}" for _, headers, _ in engine.seen)


@pytest.mark.parametrize(
    ("status", "value", "kind", "says"),
    [
        (401, {"error": {"message": "bad key"}}, Refused, "refuses the key (401): bad key; see `remote.key_env`"),
        (403, {}, Refused, "refuses the key (403)"),
        (404, {"message": "no model x"}, Refused, "(404): no model x; check `remote.kind` and `remote.model`"),
        (413, {}, Refused, "set a smaller `remote.context`"),
        (422, {"detail": [{"loc": ["body", "top_k"], "msg": "too large", "input": "SECRET"}]}, Refused, "top_k: too l"),
        (400, {"error": "unknown field"}, Refused, "refused the request (400): unknown field"),
        (500, {"error": {"message": "out of memory\x1b[2J"}}, Away, "failed (500): out of memory"),
        (503, "loading", Away, "failed (503)"),
        (429, {}, Away, "too busy (429)"),
    ],
)
def test_a_refusal_names_cause_and_remedy(engine, connection, status, value, kind, says) -> None:
    engine.answers = [fails(status, value, Retry_After="0.1")]
    with pytest.raises(kind) as caught:
        connection.ask("/v1/completions", {"prompt": "a"})
    assert says in str(caught.value)
    assert "SECRET" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert KEY not in str(caught.value)


def breaks(request: Request) -> None:
    request.connection.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("fault", [fails(503, {}), fails(429, {}, Retry_After="0.1"), breaks])
def test_what_was_not_begun_is_asked_once_more(engine, connection, fault) -> None:
    engine.answers = [fault, works]
    assert connection.ask("/x", {}) == {"good": True}
    with connection.stream("/x", {}) as lines:
        assert list(lines) == [b'{"good": true}']
    engine.answers = [fault, works]
    with connection.stream("/x", {}) as lines:
        assert list(lines) == [b'{"good": true}']


def test_a_refusal_is_not_asked_again(engine: FaultyEngine, connection: Connection) -> None:
    engine.answers = [fails(400, {})]
    with pytest.raises(Refused):
        connection.ask("/x", {})
    assert engine.asked == 1


def test_an_engine_that_wants_to_be_left_alone_is(engine: FaultyEngine, connection: Connection) -> None:
    engine.answers = [fails(429, {}, Retry_After="60")]
    for _ in range(3):
        with pytest.raises(Away, match="too busy"):
            connection.ask("/x", {})
    assert engine.asked == 1


@pytest.mark.parametrize(
    "answer",
    [
        lambda request: request.raw(b"<html>"),
        lambda request: request.pieces(b'{"a":', end=False),
        lambda request: request.raw(b"", 200),
    ],
    ids=["html", "broken off", "nothing"],
)
def test_garbage_is_no_answer(engine, connection, answer) -> None:
    engine.answers = [answer]
    with pytest.raises(Away):
        connection.ask("/x", {})


def test_nothing_listens() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    connection = Connection(Address(f"http://127.0.0.1:{port}"))
    try:
        with pytest.raises(Unreachable, match="is the engine running"):
            connection.ask("/x", {})
        assert connection.trips == 1
        with pytest.raises(Unreachable), connection.stream("/x", {}) as lines:
            list(lines)
    finally:
        connection.close()


def test_the_name_is_gone() -> None:
    connection = Connection(Address("http://engine.invalid:8080"))
    try:
        with pytest.raises(Away):
            connection.ask("/x", {})
    finally:
        connection.close()


@pytest.mark.parametrize("connection", [0.5], indirect=True)
def test_a_silent_engine_is_not_waited_for_twice(engine: FaultyEngine, connection: Connection) -> None:
    engine.answers, engine.healthy = [Request.hang], False
    with pytest.raises(Away, match="did not answer in time"):
        connection.ask("/x", {})
    asked = engine.asked
    with pytest.raises(Away, match="asked again as soon as it answers"):
        connection.ask("/x", {})
    with pytest.raises(Away), connection.stream("/x", {}) as lines:
        list(lines)
    assert engine.asked == asked
    engine.answers, engine.healthy = [works], True
    until(lambda: not connection.away)
    assert connection.ask("/x", {}) == {"good": True}


def test_a_request_can_be_stopped(engine: FaultyEngine, connection: Connection) -> None:
    engine.answers = [Request.hang]
    cancel = threading.Event()
    threading.Timer(0.1, cancel.set).start()
    with pytest.raises(Aborted):
        connection.ask("/x", {}, cancel)
    assert engine.closed.wait(60)
    engine.answers = [works]
    assert connection.ask("/x", {}) == {"good": True}


def test_what_was_stopped_before_is_not_sent(engine: FaultyEngine, connection: Connection) -> None:
    engine.answers, stopped = [works], threading.Event()
    stopped.set()
    with pytest.raises(Aborted):
        connection.ask("/x", {}, stopped)
    with pytest.raises(Aborted), connection.stream("/x", {}, stopped):
        pass
    connection.ask("/x", {})
    assert len(engine.seen) == 1


def test_lines_come_as_they_are_sent(engine: FaultyEngine, connection: Connection) -> None:
    engine.answers = [lambda request: request.pieces(b"data: a", b"b\r\n\n", b"\xe4\xbd", b"\xa0\nlast")]
    with connection.stream("/x", {}) as lines:
        assert list(lines) == [b"data: ab", b"", "你".encode(), b"last"]


def test_a_stream_that_breaks_off_is_not_begun_anew(engine: FaultyEngine, connection: Connection) -> None:
    engine.answers = [lambda request: request.pieces(b"one\n", end=False)]
    with connection.stream("/x", {}) as lines:
        assert next(lines) == b"one"
        with pytest.raises(Away):
            next(lines)
    assert engine.asked == 1


def endless(request: Request) -> None:
    request.pieces(end=False)
    while True:
        request.piece(b"more\n")


def test_an_endless_stream_can_be_left(engine: FaultyEngine, connection: Connection) -> None:
    engine.answers = [endless]
    with connection.stream("/x", {}) as lines:
        assert next(lines) == b"more"
    assert engine.closed.wait(60)


def test_a_silent_stream_can_be_stopped(engine: FaultyEngine, connection: Connection) -> None:
    def one_then_nothing(request: Request) -> None:
        request.pieces(end=False)
        request.piece(b"one\n")
        request.hang()

    engine.answers = [one_then_nothing]
    cancel = threading.Event()
    with connection.stream("/x", {}, cancel) as lines:
        assert next(lines) == b"one"
        cancel.set()
        with pytest.raises(Aborted):
            next(lines)
    assert engine.closed.wait(60)


def test_a_line_without_end_is_refused(engine: FaultyEngine, connection: Connection) -> None:
    def one_line(request: Request) -> None:
        request.pieces(end=False)
        for _ in range(64):
            request.piece(b"x" * (1 << 18))

    engine.answers = [one_line]
    with pytest.raises(Away, match="a line of more than"), connection.stream("/x", {}) as lines:
        list(lines)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is missing")
    folder = tmp_path_factory.mktemp("certificate")
    line = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out own.pem -days 2 -subj /CN=localhost"
    more = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    subprocess.run([*line.split(), *more], cwd=folder, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_bytes((folder / "key.pem").read_bytes() + (folder / "own.pem").read_bytes())
    return both


def test_a_certificate_is_verified(certificate: Path) -> None:
    with running(certificate) as engine:
        engine.answers = [works]
        for known, signed_by in ((False, ""), (True, str(certificate.with_name("own.pem")))):
            connection = Connection(Address(engine.url, KEY, signed_by))
            try:
                if known:
                    assert connection.ask("/x", {}) == {"good": True}
                else:
                    with pytest.raises(Refused, match=r"remote\.certificate"):
                        connection.ask("/x", {})
                    assert engine.seen == []
            finally:
                connection.close()


def test_a_file_without_certificates(tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("nothing")
    with pytest.raises(Refused, match="no certificates"):
        Connection(Address("https://127.0.0.1:1", "", str(tmp_path / "none.pem")))


def test_a_proxy_is_used(engine: FaultyEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", engine.url)
    engine.answers = [works]
    connection = Connection(Address("http://engine.invalid:8080"))
    try:
        assert connection.ask("/x", {}) == {"good": True}
        assert engine.seen[0][0] == "http://engine.invalid:8080/x"
    finally:
        connection.close()


def test_the_key_stays_out_of_logs_and_texts(engine, connection, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    engine.answers = [works, fails(500, {}), fails(401, {})]
    connection.ask("/x", {})
    for _ in range(2):
        with pytest.raises((Away, Refused)) as caught:
            connection.ask("/x", {})
        assert KEY not in str(caught.value) + repr(caught.value.__cause__)
    assert KEY not in caplog.text
    assert KEY not in repr(connection.address)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "no address"), ("ftp://a", "no address"), ("http://", "no address"), ("http://a:99999", "no address"),
        ("http://me:" + "word@a", "holds a password"), ("a:8080", "no address"), ("http://[::1", "no address"),
    ],
)  # fmt: skip
def test_bad_addresses(url: str, says: str) -> None:
    with pytest.raises(Refused, match=says) as caught:
        Address.checked(url, "NOT_SET")
    assert "word" not in str(caught.value).replace("password", "")


def test_the_key_is_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    assert Address.checked("https://a.example/", "MY_KEY").key == KEY
    assert Address.checked("https://a.example/", "MY_KEY").url == "https://a.example"


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://127.0.0.1:1", False), ("http://[::1]:1", False), ("http://localhost:1", False),
        ("https://a.example", False), ("http://192.0.2.7:1", True), ("http://engine.invalid", True),
    ],
)  # fmt: skip
def test_plain_text_over_a_network_is_warned_of(url: str, warned: bool) -> None:
    assert bool(Address(url).warning) is warned
    assert is_loopback("127.0.0.3")
