"""Serving one client over standard input and output, until it goes away."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO

from codespec.crash import log_to
from codespec.daemon.own_models import OwnModels
from codespec.lsp.app import create_server
from codespec.lsp.connection.nesting import bounded

logger = logging.getLogger(__name__)

_FREE_WITHIN_S = 1.0
"""Seconds that the exit waits for a decode or a load to end."""

_LARGEST_MESSAGE = 1 << 28
"""Bytes of a message at most: a document must fit. A greater length in a header ends the session, which would else wait
for that many bytes."""


def serve(own: OwnModels | None = None, beside: Callable[[OwnModels], None] | None = None) -> int:
    """Serve one client and return the exit status: 0 if it sent ``shutdown``, 1 if it just went away.

    Call it last: where a thread is stuck (in a model that is being loaded, say) it ends the process itself.

    Args:
        own: has the models; None: the model process has them, or this one where there can be none.
        beside: given the models of this process before the client is served, for another server that shares them.
    """
    _set_up_logging()
    shared = own is None
    own = own or OwnModels()
    server = create_server(own, shared)
    if beside is not None:
        beside(own)
    try:
        stdin, stdout = take_stdio()
        server.start_io(_Input(stdin), stdout)  # type: ignore[arg-type]  # what pygls needs of it
    except (SystemExit, KeyboardInterrupt):
        pass  # pygls answers `exit` with SystemExit, and swallows it or not
    status = 0 if server.protocol.was_shut_down else 1
    server.models.close()
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


def _set_up_logging() -> None:
    # The command line has a format of its own, without levels.
    level = logging.root.level if logging.root.handlers else logging.WARNING
    log_to(sys.stderr, "%(levelname)s %(name)s: %(message)s", level)
    # pygls warns of every cancellation that comes too late, and at lower levels logs whole documents.
    logging.getLogger("pygls").setLevel(logging.ERROR)
