"""An HTTP server on loopback that answers each request as a test says, however badly."""

from __future__ import annotations

import contextlib
import http.server
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


class Request(http.server.BaseHTTPRequestHandler):
    """One request, for the function that answers it."""

    protocol_version = "HTTP/1.1"
    engine: FaultyEngine

    def do_GET(self) -> None:
        self._handle(b"")

    def do_POST(self) -> None:
        self._handle(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def _handle(self, body: bytes) -> None:
        engine = self.engine
        engine.seen.append((self.path, dict(self.headers), body))
        engine.ports.add(self.client_address[1])
        if self.path == "/health":
            return self.answer({}) if engine.healthy else self.hang()
        answer = engine.answers.pop(0) if len(engine.answers) > 1 else engine.answers[0]
        try:
            answer(self)
        except OSError:
            engine.closed.set()

    def answer(self, value: Any, status: int = 200, **headers: str) -> None:
        self.raw(json.dumps(value).encode(), status, **headers)

    def raw(self, data: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, each in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), each)
        self.end_headers()
        self.wfile.write(data)

    def pieces(self, *pieces: bytes, end: bool = True) -> None:
        """A chunked stream; without its end it breaks off."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            self.piece(piece)
        if end:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True

    def piece(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def hang(self) -> None:
        """Say nothing until the client has closed the connection, or the engine ends."""
        self.connection.settimeout(0.05)
        while not self.engine.over.is_set():
            try:
                if not self.connection.recv(1):
                    self.engine.closed.set()
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        pass


Answer = Callable[[Request], None]


class FaultyEngine:
    """How it behaves, and what it saw.

    Attributes:
        answers: to the requests in their order; the last one to all further ones.
        healthy: whether it answers looks at ``/health``.
        seen: path, headers and body of each request.
        ports: of the clients: one for each connection.
        closed: set once a client has closed a connection over which it waited.
    """

    def __init__(self) -> None:
        self.answers: list[Answer] = [lambda request: request.answer({})]
        self.healthy = True
        self.seen: list[tuple[str, dict[str, str], bytes]] = []
        self.ports: set[int] = set()
        self.closed, self.over = threading.Event(), threading.Event()
        self.url = ""

    @property
    def asked(self) -> int:
        """How many requests came, looks left out."""
        return sum(path != "/health" for path, _, _ in self.seen)


@contextlib.contextmanager
def running(certificate: Path | None = None) -> Iterator[FaultyEngine]:
    """An engine that runs; with TLS where a file with a certificate and its key is given."""
    engine = FaultyEngine()
    handler = type("Handler", (Request,), {"engine": engine})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    engine.url = f"http{'s' if certificate else ''}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield engine
    finally:
        engine.over.set()
        server.shutdown()
        server.server_close()


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for something that must happen."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end or condition(), "it did not happen"
        time.sleep(0.01)
