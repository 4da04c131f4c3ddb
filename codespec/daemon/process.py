"""The model process: it owns the models and decodes for every connected language server.

It locks its lock file as long as it lives, so that there is only one, and the holder of the lock may replace the socket
that an earlier process has left.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any

from codespec.config import load
from codespec.crash import log_to
from codespec.daemon.address import Endpoint, endpoint, version
from codespec.daemon.beside import Beside
from codespec.daemon.models import Models
from codespec.daemon.priority import own_priority
from codespec.daemon.session import Session
from codespec.daemon.start import LARGEST_LOG
from codespec.daemon.window import Say, Window
from codespec.daemon.wire import Channel
from codespec.errors import CodespecError
from codespec.exit_codes import ANSWER_IS_NO, DONE, INTERNAL
from codespec.llama.probe import be_expendable
from codespec.llama.trial import decode_batches
from codespec.paths import hold, write_whole
from codespec.protocols import Cancel
from codespec.worker.decode_thread import DecodeThread

logger = logging.getLogger(__name__)

IDLE_S = 600.0
"""Seconds that the process stays without a language server; ``CODESPEC_IDLE_EXIT_S`` in the environment overrides."""

FIRST_S = 30.0
"""Seconds that it waits for the first language server."""

MOST_THREADS = 200
"""Threads for connections: each window has two, each greeting one or two; beyond that connections are refused."""

_LOCK_S = 0.5  # somebody may just be looking whether the lock is free
_CHECK_S = 1.0
_END_S = 30.0  # what was read is saved
_BYE_S = 1.0  # for a window to take what is said to it last

STUCK_S = 60.0
"""After which a request that was to stop, within one pass, is taken to hang for ever."""


class _Relay(logging.Handler):
    """Forwards log records about models to the language servers.

    Args:
        say: sends a message to each of them.
    """

    def __init__(self, say: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(logging.WARNING)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        """Send it; where it was raised it stays in the log here."""
        if not record.name.startswith(__package__):
            self._say({"log": [record.levelno, record.name, record.getMessage()]})


class ModelProcess:
    """Accepts language servers until it is stopped or none has been connected for a while.

    Args:
        idle_s: seconds without one before the process ends.
        first_s: the least of them before the first one.
        stuck_s: how long a request may run on that was to stop.
        models: what decodes.
        beside: starts a server for other clients in this process, where somebody asks for it.
    """

    def __init__(
        self,
        where: Endpoint,
        idle_s: float,
        first_s: float = FIRST_S,
        stuck_s: float = STUCK_S,
        models: Models | None = None,
        beside: Beside | None = None,
    ) -> None:
        self._where, self._beside = where, beside
        self._idle_s, self._stuck_s = idle_s, stuck_s
        self._models = models or Models()
        self._decode = DecodeThread(self._models, priority=own_priority())
        self._changed = threading.Condition()
        self._windows: frozenset[Window] = frozenset()
        self._numbers = count(1)
        self._alone_since = time.monotonic() + first_s - idle_s  # who has started it may have changed its mind
        self._reason = ""
        self._overdue: Cancel | None = None
        self._overdue_since = 0.0

    def run(self) -> None:
        """Serve until the end; returns once everything is saved and freed.

        Raises:
            CodespecError: the socket cannot be made.
        """
        key = secrets.token_bytes(32)
        try:
            write_whole(self._where.key, [key])
            if sys.platform != "win32":
                Path(self._where.address).unlink(missing_ok=True)
            family = "AF_PIPE" if sys.platform == "win32" else "AF_UNIX"
            listener = Listener(self._where.address, family, backlog=16)
        except OSError as error:
            raise CodespecError(f"{self._where.address}: cannot listen there: {error}") from error
        logging.getLogger("codespec").addHandler(_Relay(self._say))
        self._decode.submit("what is most likely asked for", lambda models, cancel: models.load_ahead(load()[0]))
        threading.Thread(target=self._accept, args=(listener, key), name="accept", daemon=True).start()
        self._wait()
        with contextlib.suppress(OSError):
            listener.close()
        with contextlib.suppress(OSError):
            self._where.key.unlink()
        self._say({"bye": self._reason})  # now whoever hears it cannot come back to this process
        self._decode.close(_END_S)
        for window in self._windows:
            window.finish(_BYE_S)

    def stop(self, reason: str) -> None:
        """End soon; from any thread."""
        self._reason = reason  # before the lock: a signal may interrupt whoever has it
        if self._changed.acquire(blocking=False):
            self._changed.notify()
            self._changed.release()

    def _say(self, message: dict[str, Any]) -> None:
        """Send a message to every language server. Takes no lock: the thread that logs may hold any."""
        for window in self._windows:  # which is replaced, never changed
            window.say(message)

    def _wait(self) -> None:
        """Wait until it is time to end; from then on no new language server is served."""
        with self._changed:
            while not self._reason:
                alone_s = time.monotonic() - self._alone_since if not self._windows else 0.0
                if not self._windows and alone_s >= self._idle_s:
                    self._reason = "nobody is there"
                    break
                self._changed.wait(min(_CHECK_S, self._idle_s - alone_s) or _CHECK_S)
                if self._models.has_unused():
                    self._decode.submit("unused models", lambda models, cancel: models.free_unused())
                self._look_for_hang()
                _cut_log()

    def _look_for_hang(self) -> None:
        """End the process if native code hangs, which cannot be stopped alone; language servers start another one."""
        overdue = self._models.overdue
        if overdue is None or overdue is not self._overdue:
            self._overdue, self._overdue_since = overdue, time.monotonic()
        elif time.monotonic() - self._overdue_since > self._stuck_s:
            logger.error("a request that was to stop has run on for %.0f seconds; this process ends", self._stuck_s)
            faulthandler.dump_traceback()
            os._exit(INTERNAL)

    def _accept(self, listener: Listener, key: bytes) -> None:
        while not self._reason:
            try:
                channel = Channel(listener.accept())
                if threading.active_count() > MOST_THREADS:
                    channel.close()
                    continue
                # The greeting is a conversation: who says nothing keeps only its own thread waiting.
                threading.Thread(target=self._serve, args=(channel, key), name="session", daemon=True).start()
            except (OSError, EOFError):  # it went away, or the listener was closed
                time.sleep(0.01)
            except Exception:  # no thread is to be had, or no memory; others may have better luck
                logger.exception("a connection could not be served")
                time.sleep(0.1)

    def _serve(self, channel: Channel, key: bytes) -> None:
        try:
            channel.greet(key, listening=True)
        except (OSError, EOFError) as error:
            logger.warning("a connection was refused: %s", error)
            channel.close()
            return
        with self._changed:
            if self._reason:
                with contextlib.suppress(OSError):
                    channel.send({"bye": self._reason})
                channel.close()
                return
            name = f"window {next(self._numbers)}"
            window = Window(name, channel, partial(self._session, name))
            self._windows = self._windows | {window}
        try:
            window.run()
        finally:
            with self._changed:
                self._windows = self._windows - {window}
                self._alone_since = time.monotonic()
                self._changed.notify()

    def _session(self, name: str, say: Say) -> Session:
        return Session(name, say, self._decode, self._models, self._about, self.stop, self._beside)

    def _about(self) -> dict[str, object]:
        process = {
            "pid": os.getpid(),
            "version": version(),
            "windows": len(self._windows),
            "targets": self._models.count,
        }
        return {**self._decode.status(), "process": process}


def run(name: str | None = None, beside: Beside | None = None) -> int:
    """Run as the model process, if there is none yet; returns the exit status: 1 if ``name`` is another process's.

    Raises:
        CodespecError: the socket cannot be made.
    """
    faulthandler.enable()
    log_to(sys.stderr, "%(asctime)s %(levelname)s %(name)s: %(message)s", logging.WARNING)
    try:
        where = endpoint()
        if name not in (None, where.name):
            return ANSWER_IS_NO
        lock = _lock(where.lock)
    except OSError as error:
        raise CodespecError(f"no folder for the socket: {error}") from error
    if lock is None:
        return DONE
    os.truncate(lock, 0)
    os.write(lock, str(os.getpid()).encode())  # for who has to end it, see ``end_hung``
    be_expendable(decode_batches)  # a window whose process ends starts another
    process = ModelProcess(where, _seconds(os.environ.get("CODESPEC_IDLE_EXIT_S", "")), beside=beside)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: process.stop("it was asked to"))
    process.run()
    sys.stderr.flush()
    os._exit(0)  # threads may still be in native code, which must not be taken apart under them


def _seconds(text: str) -> float:
    try:
        return max(0.0, float(text))
    except ValueError:
        return IDLE_S


def _lock(path: Path) -> int | None:
    until = time.monotonic() + _LOCK_S
    while (handle := hold(path)) is None and time.monotonic() < until:
        time.sleep(0.02)
    return handle


def _cut_log() -> None:
    """Keep the log small. Native libraries write to it, too, so that a Python log handler could not."""
    with contextlib.suppress(OSError):
        if os.fstat(2).st_size > LARGEST_LOG:
            os.ftruncate(2, 0)
