"""Serving one client over standard input and output, TCP or a web socket, until it goes away."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO

from pygls.io_ import run_async, run_websocket

from codespec.lsp.server import CodespecServer, create_server
from codespec.protocols import CodespecError

if TYPE_CHECKING:
    from codespec.completion.completer import Completer
    from codespec.config import Config
    from codespec.lsp.server import Loader

logger = logging.getLogger(__name__)

_FREE_WITHIN_S = 1.0
"""How long the exit waits for a decode or a load to end."""

_LARGEST_MESSAGE = 1 << 28
"""A document must fit. Whoever names a greater length ends the session: that many bytes would be waited for."""


def serve(
    stdio: bool = True,
    tcp: tuple[str, int] | None = None,
    ws: tuple[str, int] | None = None,
    load: Loader | None = None,
) -> int:
    """Serve one client and return the exit status: 0 if it sent ``shutdown``, 1 if it just went away.

    Call it last: where a thread is stuck (in a model that is being loaded, say) it ends the process itself.

    Args:
        stdio: the default; ``tcp`` or ``ws``, a host and a port, take its place. Port 0 is any free one.
        load: makes the completer; None makes the local one.

    Raises:
        CodespecError: the address cannot be used, or the library for web sockets is missing.
    """
    _set_up_logging()
    server = create_server(load or _load_local)
    try:
        if tcp is not None:
            asyncio.run(_listen(_serve_tcp, server, tcp))
        elif ws is not None:
            asyncio.run(_listen(_serve_ws, server, ws))
        elif stdio:
            stdin, stdout = take_stdio()
            server.start_io(_Input(stdin), stdout)  # type: ignore[arg-type]  # what pygls needs of it
    except (SystemExit, KeyboardInterrupt):
        pass  # pygls answers `exit` with SystemExit, and swallows it or not depending on the transport
    status = 0 if server.protocol.was_shut_down else 1
    server.decode.close(_FREE_WITHIN_S)
    if any(thread is not threading.main_thread() for thread in threading.enumerate()):
        # Python would wait for a thread that reads standard input, and the C++ runtime would take the library
        # apart under one that still decodes.
        sys.stderr.flush()
        os._exit(status)
    return status


def take_stdio() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output for the protocol alone.

    Whatever else writes to standard output, C libraries included, writes to standard error from here on, and child
    processes cannot read the client's messages.
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


async def _listen(
    run: Callable[[CodespecServer, str, int], Any], server: CodespecServer, address: tuple[str, int]
) -> None:
    try:
        await run(server, *address)
    except (OSError, OverflowError) as error:
        raise CodespecError(f"cannot listen on {address[0]}:{address[1]}: {error}") from error


class _Input:
    """Standard input for pygls, which ends before a message of a length that cannot be meant."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readline(self) -> bytes:
        return self._stream.readline()

    def read(self, n: int) -> bytes:
        return b"" if _too_large(n) else self._stream.read(n)


def _too_large(n: int) -> bool:
    if n > _LARGEST_MESSAGE:
        logger.error("a message of %d bytes is announced, %d are allowed; the session ends", n, _LARGEST_MESSAGE)
    return n > _LARGEST_MESSAGE


class _Reader:
    """A stream for pygls to read from, whose first line has been read already."""

    def __init__(self, stream: asyncio.StreamReader, first: bytes) -> None:
        self._stream = stream
        self._first = first

    async def readline(self) -> bytes:
        # Where several messages have arrived this read would not yield, and a request would see changes of its
        # document that came after it.
        await asyncio.sleep(0)
        line, self._first = self._first, b""
        return line or await self._stream.readline()

    async def readexactly(self, n: int) -> bytes:
        if _too_large(n):
            return b""
        try:
            return await self._stream.readexactly(n)
        except asyncio.IncompleteReadError:
            return b""


async def _serve_tcp(server: CodespecServer, host: str, port: int) -> None:
    over = asyncio.Event()
    taken = False

    async def connection(stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal taken
        first = await stream.readline()
        # A web page can make a browser send its own text to a local port, with a Content-Length among the headers.
        if taken or not first.lower().startswith(b"content-"):
            writer.close()
            return
        taken = True
        server.protocol.set_writer(writer)
        try:
            await run_async(
                threading.Event(), _Reader(stream, first), server.protocol, logger, server.report_server_error
            )
        except Exception as error:
            logger.info("connection lost: %s", error)
        finally:
            over.set()

    listener = await asyncio.start_server(connection, host, port)
    _announce(listener.sockets[0].getsockname())
    await over.wait()


async def _serve_ws(server: CodespecServer, host: str, port: int) -> None:
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
            await run_websocket(socket, threading.Event(), server.protocol, logger, server.report_server_error)
        except Exception as error:
            logger.info("connection lost: %s", error)
        finally:
            over.set()

    # A browser always names an origin: only other programs may connect, not web pages.
    async with library.serve(connection, host, port, origins=[None], max_size=_LARGEST_MESSAGE) as listener:
        _announce(next(iter(listener.sockets)).getsockname())
        await over.wait()


def _announce(name: Any) -> None:
    print(f"listening on {name[0]}:{name[1]}", file=sys.stderr, flush=True)


def _set_up_logging() -> None:
    # The command line has a format of its own, without levels.
    level = logging.root.level if logging.root.handlers else logging.WARNING
    logging.basicConfig(stream=sys.stderr, level=level, format="%(levelname)s %(name)s: %(message)s", force=True)
    # pygls warns of every cancellation that comes too late, and at lower levels logs whole documents.
    logging.getLogger("pygls").setLevel(logging.ERROR)


def _load_local(config: Config, progress: Callable[[str, int], None]) -> Completer:
    from codespec.completion.completer import load_completer  # loads native libraries: not before they are needed

    return load_completer(config, progress)
