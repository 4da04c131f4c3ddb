"""What a llama-server is asked, and what becomes of its answers: with a server that records, and with our own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from benchmarks.infill.server import llama_server, post, serving
from benchmarks.infill.task import MULTI, Task
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import CodespecError

TASK = Task("a", "", "\n" * 300 + "def f(a):\n    b", "\n    return b\n" + "x\n" * 100, " = a + 1", "")


class Recorder(BaseHTTPRequestHandler):
    asked: list[tuple[str, dict[str, Any]]]
    infill: tuple[int, str]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.path, body))
        status, text = self.infill if self.path == "/infill" else (200, " = a + 1\n    c\n")
        data = json.dumps({"content": text} if status == 200 else {"error": {"message": text}}).encode()
        self.send_response(status)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, type[Recorder]]]:
    handler = type("Handler", (Recorder,), {"asked": [], "infill": (200, " = a + 1")})
    found = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=found.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{found.server_port}", handler
    found.shutdown()
    thread.join()
    found.server_close()


def test_infill_gets_the_lines_around_the_cursor(server: tuple[str, type[Recorder]]) -> None:
    url, handler = server
    with serving(url, EMBEDDED_TARGET, 1, 512) as ask:
        answer = llama_server(ask)(TASK)
    assert answer.text == " = a + 1"
    [(path, body)] = handler.asked
    assert path == "/infill"
    assert body["prompt"] == "    b"
    assert body["input_prefix"].endswith("\ndef f(a):\n")
    assert body["input_prefix"].count("\n") == 256
    assert body["input_suffix"].startswith("\n    return b\nx\n")
    assert body["input_suffix"].count("\n") == 64
    assert body["temperature"] == 0


def test_a_model_that_cannot_fill_in_is_asked_to_go_on(server: tuple[str, type[Recorder]]) -> None:
    url, handler = server
    handler.infill = (501, "Infill is not supported by this model: prefix token is missing.")
    said: list[str] = []
    with serving(url, EMBEDDED_TARGET, 1, 512) as ask:
        arm = llama_server(ask, said.append)
        assert arm(TASK).text == " = a + 1"
        assert arm(Task(**{**vars(TASK), "kind": MULTI})).text == " = a + 1\n    c\n"
    assert [path for path, _ in handler.asked] == ["/infill", "/completion", "/completion"]
    assert handler.asked[1][1]["prompt"].endswith("def f(a):\n    b")
    assert handler.asked[1][1]["stop"] == ["\n"]
    assert handler.asked[2][1]["stop"] == []
    assert len(said) == 1


def test_another_refusal_is_an_error(server: tuple[str, type[Recorder]]) -> None:
    url, handler = server
    handler.infill = (500, "out of memory")
    with serving(url, EMBEDDED_TARGET, 1, 512) as ask, pytest.raises(CodespecError, match="out of memory"):
        llama_server(ask)(TASK)


def test_nobody_there() -> None:
    with pytest.raises(CodespecError, match="is a llama-server running there"):
        post("http://127.0.0.1:9", "/infill", {})
    with pytest.raises(CodespecError, match="nothing-here"), serving("nothing-here", EMBEDDED_TARGET, 1, 512):
        pass
