"""Runs the server: a socket, an event loop, and a decode thread, which a language server may share."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from codespec.errors import CodespecError
from codespec.http.apis.common_fields import Defaults
from codespec.http.app import Service, create_app
from codespec.http.backend import Backend
from codespec.http.errors import HttpError, crowded, large_head
from codespec.http.limits import HttpLimits
from codespec.http.security import Access
from codespec.http.sse import compact

if sys.platform == "win32":
    from asyncio import run as _run
else:
    from uvloop import run as _run

if TYPE_CHECKING:
    from codespec.config import Config
    from codespec.daemon.own_models import OwnModels

KEY_VARIABLE = "CODESPEC_HTTP_KEY"
_FREE_WITHIN_S = 5.0
_GRACE_S = 2
_MORE_CONNECTIONS = 100
"""Beyond the limit that are listened to, so that a request on them is refused as any other; more are closed at once."""
_MOST_CHUNKS, _LEAST_CHUNK = 1000, 64
"""Chunks that a body may come in, and one more for so many bytes."""
_CRUMBS = f"the body comes in more than {_MOST_CHUNKS:,} chunks of less than {_LEAST_CHUNK} bytes: send larger ones"
_OTHER_FILES = 200
"""Open at a time beside connections."""


def keys_of(file: Path | None) -> tuple[str, ...]:
    """The keys that clients may send: the lines of a file, or what the environment has.

    Raises:
        CodespecError: the file cannot be read, or holds none.
    """
    try:
        text = file.read_text("utf-8-sig") if file is not None else os.environ.get(KEY_VARIABLE, "")
    except (OSError, UnicodeDecodeError) as error:
        raise CodespecError(f"{file}: cannot be read ({error})") from error
    keys = tuple(line.strip() for line in text.splitlines() if line.strip())
    if file is not None and not keys:
        raise CodespecError(f"{file}: holds no key; write one line of random text to it")
    return keys


class HttpServer:
    """A server on one address.

    Args:
        address: host and port; port 0 is any free one.
        backend: where the model is, or will be.

    Raises:
        CodespecError: it would be open to others, or the address cannot be used.

    Attributes:
        port: that it listens on.
    """

    def __init__(self, address: tuple[str, int], access: Access, defaults: Defaults, backend: Backend) -> None:
        access.check()
        host = address[0]
        self._socket = _listening(address)
        self.port = int(self._socket.getsockname()[1])
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}"
        limits = defaults.limits
        _allow_files(limits.connections + _MORE_CONNECTIONS + _OTHER_FILES)
        service = Service(backend, defaults, time.time())
        config = uvicorn.Config(
            create_app(service, access, limits, lambda: len(self._server.server_state.connections)),
            http=_protocol(limits),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE_S,
        )
        self._server = uvicorn.Server(config)

    @property
    def started(self) -> bool:
        """Whether requests are answered."""
        return self._server.started

    def run(self) -> None:
        """Serve until a signal comes, or ``stop``."""
        _run(self._server.serve([self._socket]))

    def start(self) -> None:
        """Serve in a thread of its own; returns at once, ``started`` tells when."""
        threading.Thread(target=self.run, name="http", daemon=True).start()

    def stop(self) -> None:
        """End soon; from any thread."""
        self._server.should_exit = True


def serve_http(
    address: tuple[str, int],
    access: Access,
    defaults: Defaults,
    config: Config,
    own: OwnModels,
    announce: Callable[[str], None],
) -> int:
    """Serve over HTTP alone until a signal comes; returns the exit status.

    Args:
        own: has the models.
        announce: told where the server listens, and what went wrong.

    Raises:
        CodespecError: as ``HttpServer``.
    """
    decode, models = own.get()
    backend = Backend(decode, models, config, announce, partial(announce, "the model is loaded"))
    server = HttpServer(address, access, defaults, backend)
    announce(f"listening on {server.url}")
    backend.open()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # uvicorn ends the server, and raises it again
    with suppress(KeyboardInterrupt):
        server.run()
    if not decode.close(_FREE_WITHIN_S):
        sys.stderr.flush()
        os._exit(0)  # native code must not be taken apart under the thread that runs it
    return 0


def _listening(address: tuple[str, int]) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        return socket.create_server(address, family=family, backlog=256)
    except (OSError, OverflowError) as error:
        raise CodespecError(
            f"cannot listen on {address[0]}:{address[1]}: {error}; `--http` takes another port, 0 any free one"
        ) from error


def _allow_files(count: int) -> None:
    """Have the system allow so many open files, where it may: a desktop's 1,024 are fewer than a server needs."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _whole(refusal: HttpError) -> bytes:
    """A refusal as it is sent, after which the connection is closed."""
    body, status = compact(refusal.as_json()), refusal.status
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **refusal.headers}
    headers["Connection"] = "close"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{lines}\r\n".encode() + body


class _Connection(h11.Connection):
    """h11's, which refuses a body in crumbs: a chunk of one byte takes as much of the event loop's time as any."""

    _chunks = _bytes = 0

    def next_event(self) -> Any:
        """As h11's.

        Raises:
            RemoteProtocolError: the client's mistake.
        """
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = self._bytes = 0
        elif isinstance(event, h11.Data):
            self._chunks, self._bytes = self._chunks + 1, self._bytes + len(event.data)
            if self._chunks > _MOST_CHUNKS + self._bytes // _LEAST_CHUNK:
                raise h11.RemoteProtocolError(_CRUMBS)
        return event


def _protocol(limits: HttpLimits) -> type[asyncio.Protocol]:
    """uvicorn's, with a time for the head of a request to arrive, and for the client to take what is sent."""

    class Protocol(H11Protocol):
        _head: asyncio.TimerHandle | None = None
        _full: asyncio.TimerHandle | None = None

        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            self.conn = _Connection(h11.SERVER, limits.head)

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > limits.connections + _MORE_CONNECTIONS:
                transport.write(_whole(crowded(limits.connections)))
                transport.close()
            else:
                self._wait_for_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            answered = self.conn.our_state is h11.DONE  # what comes of the body is dropped
            if self.conn.their_state is h11.IDLE or (answered and self.conn.their_state is h11.SEND_BODY):
                self._wait_for_head()
            elif self._head is not None:
                self._head.cancel()
                self._head = None

        def send_400_response(self, msg: str) -> None:
            """Refuse what is no HTTP, or too long a head."""
            error = sys.exc_info()[1]
            status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
            if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                reason = _CRUMBS if str(error) == _CRUMBS else "this is no HTTP request"
                refusal = large_head(limits) if status == 431 else HttpError(status, reason)
                self.transport.write(_whole(refusal))
            self.transport.close()

        def _wait_for_head(self) -> None:
            if self._head is None:
                self._head = self.loop.call_later(limits.header_s, self.transport.abort)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._full = self.loop.call_later(limits.send_s, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._full is not None:
                self._full.cancel()

        def connection_lost(self, exc: Exception | None) -> None:
            for timer in (self._head, self._full):
                if timer is not None:
                    timer.cancel()
            super().connection_lost(exc)

    return Protocol
