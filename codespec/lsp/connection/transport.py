"""Serving one client over standard input and output, TCP or a web socket, until it goes away."""

from __future__ import annotations

import asyncio
import hmac
import importlib
import logging
import os
import secrets
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, urlsplit

from pygls.io_ import run_async, run_websocket

from codespec.crash import log_to
from codespec.daemon.address import TOKEN_VARIABLE
from codespec.daemon.own_models import OwnModels
from codespec.hosts import is_loopback
from codespec.lsp.app import create_server
from codespec.lsp.connection.greetings import SECONDS, Greetings, limited_web_socket
from codespec.lsp.connection.nesting import bounded
from codespec.lsp.session import CodespecServer
from codespec.protocols import CodespecError

logger = logging.getLogger(__name__)

_discreet = logging.getLogger("pygls.io_")
"""The logger that pygls writes to: without the client's text, see ``logs``."""

_FREE_WITHIN_S = 1.0
"""Seconds that the exit waits for a decode or a load to end."""

_MOST_HEADERS = 8

_LARGEST_MESSAGE = 1 << 28
"""Bytes of a message at most: a document must fit. A greater length in a header ends the session, which would else wait
for that many bytes."""


def serve(
    stdio: bool = True,
    tcp: tuple[str, int] | None = None,
    ws: tuple[str, int] | None = None,
    token_file: Path | None = None,
    own: OwnModels | None = None,
    beside: Callable[[OwnModels], None] | None = None,
) -> int:
    """Serve one client and return the exit status: 0 if it sent ``shutdown``, 1 if it just went away.

    Call it last: where a thread is stuck (in a model that is being loaded, say) it ends the process itself.

    Args:
        stdio: the default; ``tcp`` or ``ws``, a host and a port, replace it. Port 0 is any free one.
        token_file: holds the token that a client of ``tcp`` or ``ws`` must send; None takes ``CODESPEC_TOKEN`` of the
            environment, or makes one and prints it.
        own: has the models; None: the model process has them, or this one where there can be none.
        beside: given the models of this process before the client is served, for another server that shares them.

    Raises:
        CodespecError: the address cannot be used, there is no token in the file, or the library for web sockets is
            missing.
    """
    _set_up_logging()
    shared = own is None
    own = own or OwnModels()
    server = create_server(own, shared)
    if beside is not None:
        beside(own)
    try:
        if tcp is not None:
            asyncio.run(_listen(_serve_tcp, server, tcp, _token(token_file)))
        elif ws is not None:
            asyncio.run(_listen(_serve_ws, server, ws, _token(token_file)))
        elif stdio:
            stdin, stdout = take_stdio()
            server.start_io(_Input(stdin), stdout)  # type: ignore[arg-type]  # what pygls needs of it
    except (SystemExit, KeyboardInterrupt):
        pass  # pygls answers `exit` with SystemExit, and swallows it or not depending on the transport
    status = 0 if server.protocol.was_shut_down else 1
    server.models.close()
    server.feedback.close()
    own.close(_FREE_WITHIN_S)
    if any(thread is not threading.main_thread() for thread in threading.enumerate()):
        # Python would wait for a thread that reads standard input, and the C++ runtime would take the library
        # apart under one that still decodes.
        sys.stderr.flush()
        os._exit(status)
    return status


def take_stdio() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output for the protocol alone.

    Other output to standard output, also of C libraries, goes to standard error from here on, and child processes
    cannot read the client's messages.
    """
    stdin, stdout = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # started without standard error
        os.dup2(null, 1)
    os.close(null)
    return stdin, stdout


def _token(file: Path | None) -> str:
    """The token that clients must send."""
    try:
        token = file.read_text("utf-8").strip() if file is not None else os.environ.get(TOKEN_VARIABLE, "")
    except (OSError, UnicodeDecodeError) as error:
        raise CodespecError(f"{file}: cannot be read ({error})") from error
    if file is not None and not token:
        raise CodespecError(f"{file}: holds no token; write one line of random text to it")
    if not token:
        token = secrets.token_urlsafe(24)
        print(f"token: {token}", file=sys.stderr, flush=True)
    return token


def _is_token(header: str, token: str) -> bool:
    """Whether ``Bearer TOKEN`` is the right one."""
    scheme, _, given = header.strip().partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


async def _listen(
    run: Callable[[CodespecServer, str, int, str], Any], server: CodespecServer, address: tuple[str, int], token: str
) -> None:
    if not is_loopback(address[0]):
        print(
            f"warning: {address[0]} can be reached from other machines; what is sent there is not encrypted",
            file=sys.stderr,
            flush=True,
        )
    try:
        await run(server, *address, token)
    except (OSError, OverflowError) as error:
        raise CodespecError(f"cannot listen on {address[0]}:{address[1]}: {error}") from error


class _Input:
    """Standard input for pygls, which ends before a message of an absurd length."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readline(self) -> bytes:
        return self._stream.readline()

    def read(self, n: int) -> bytes:
        return b"" if _too_large(n) else bounded(self._stream.read(n))


def _too_large(n: int) -> bool:
    if n > _LARGEST_MESSAGE:
        logger.error("a message of %d bytes is announced, %d are allowed; the session ends", n, _LARGEST_MESSAGE)
    return n > _LARGEST_MESSAGE


class _Reader:
    """A stream for pygls whose first lines have been read already."""

    def __init__(self, stream: asyncio.StreamReader, first: list[bytes]) -> None:
        self._stream = stream
        self._first = first

    async def readline(self) -> bytes:
        # Where several messages have arrived this read would not yield, and a request would see changes of its
        # document that came after it.
        await asyncio.sleep(0)
        return self._first.pop(0) if self._first else await self._stream.readline()

    async def readexactly(self, n: int) -> bytes:
        if _too_large(n):
            return b""
        try:
            return bounded(await self._stream.readexactly(n))
        except asyncio.IncompleteReadError:
            return b""


class _Socket:
    """A web socket for pygls."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket

    async def recv(self, decode: bool | None = None) -> Any:
        await asyncio.sleep(0)  # as in ``_Reader``
        message = await self._socket.recv(decode=decode)
        return bounded(message.encode() if isinstance(message, str) else message)

    async def send(self, data: bytes) -> None:
        await self._socket.send(data)

    async def close(self) -> None:
        await self._socket.close()


async def _first_headers(stream: asyncio.StreamReader, token: str) -> list[bytes] | None:
    """The headers of the first message; None where the token is not among them.

    A web page can make a browser send its own text to a local port, with any lines in it, but the first line is the
    browser's: it has to be a header.
    """
    headers: list[bytes] = []
    known = False
    while len(headers) < _MOST_HEADERS:
        line = await stream.readline()
        name, _, value = line.decode("latin-1").partition(":")
        if name.lower() == "authorization":
            known = _is_token(value, token)
        elif name.lower().startswith("content-"):
            headers.append(line)
        else:
            break
    return [*headers, line] if known and headers and line == b"\r\n" else None


async def _serve_tcp(server: CodespecServer, host: str, port: int, token: str) -> None:
    over = asyncio.Event()
    taken = False
    greetings = Greetings()

    async def connection(stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal taken
        greetings.begin(writer.transport)
        try:
            first = await asyncio.wait_for(_first_headers(stream, token), SECONDS)
        except (asyncio.TimeoutError, OSError, ValueError):
            first = None
        except asyncio.CancelledError:  # the session is over; asyncio would log this
            first = None
        finally:
            greetings.end(writer.transport)
        if taken or first is None:
            logger.warning("a connection was refused: %s", "there is one already" if taken else "it knows no token")
            writer.close()
            return
        taken = True
        server.protocol.set_writer(writer)
        try:
            await run_async(
                threading.Event(), _Reader(stream, first), server.protocol, _discreet, server.report_server_error
            )
        except Exception as error:
            logger.info("connection lost: %s", error)
        finally:
            over.set()

    listener = await asyncio.start_server(connection, host, port)
    _announce(listener.sockets[0].getsockname())
    await over.wait()


async def _serve_ws(server: CodespecServer, host: str, port: int, token: str) -> None:
    try:
        # By name, because the library is optional and the type checker may not have it.
        library = importlib.import_module("websockets.asyncio.server")
    except ImportError as error:
        raise CodespecError("web sockets need another library: pip install 'pygls[ws]'") from error
    over = asyncio.Event()
    taken = False

    async def connection(socket: Any) -> None:
        nonlocal taken
        if taken:
            return
        taken = True
        try:
            one: Any = _Socket(socket)  # what pygls needs of it
            await run_websocket(one, threading.Event(), server.protocol, _discreet, server.report_server_error)
        except Exception as error:
            logger.info("connection lost: %s", error)
        finally:
            over.set()

    def check(socket: Any, request: Any) -> Any:
        """Refuse a client without the token, which some clients can only put into the address."""
        in_address = parse_qs(urlsplit(request.path).query).get("token", [""])[0]
        given = request.headers.get("Authorization") or f"Bearer {in_address}"
        return None if _is_token(given, token) else socket.respond(HTTPStatus.UNAUTHORIZED, "wrong or no token\n")

    # A browser always names an origin: only other programs may connect, not web pages.
    async with library.serve(
        connection,
        host,
        port,
        origins=[None],
        max_size=_LARGEST_MESSAGE,
        process_request=check,
        open_timeout=SECONDS,
        create_connection=limited_web_socket(),
    ) as listener:
        _announce(next(iter(listener.sockets)).getsockname())
        await over.wait()


def _announce(name: Any) -> None:
    print(f"listening on {name[0]}:{name[1]}", file=sys.stderr, flush=True)


def _set_up_logging() -> None:
    # The command line has a format of its own, without levels.
    level = logging.root.level if logging.root.handlers else logging.WARNING
    log_to(sys.stderr, "%(levelname)s %(name)s: %(message)s", level)
    # pygls warns of every cancellation that comes too late, and at lower levels logs whole documents.
    logging.getLogger("pygls").setLevel(logging.ERROR)
