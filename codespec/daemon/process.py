"""The model process: it has the models and decodes for every language server that is connected.

It owns its lock file as long as it lives, so that there is one of it, and whoever has the lock may replace the socket
that an earlier one has left behind.
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
from itertools import count
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any

from codespec.completion.executor import DecodeThread
from codespec.config import load
from codespec.daemon.models import Models, Work
from codespec.daemon.place import Place, place, version
from codespec.daemon.priority import own_priority
from codespec.daemon.session import Session
from codespec.daemon.start import LARGEST_LOG
from codespec.daemon.wire import Channel
from codespec.errors import CodespecError
from codespec.exit_codes import ANSWER_IS_NO, DONE, INTERNAL
from codespec.llama.probe import be_expendable
from codespec.places import hold, write_whole

logger = logging.getLogger(__name__)

IDLE_S = 600.0
"""How long the process stays without a language server; ``CODESPEC_IDLE_EXIT_S`` in the environment takes its place."""

FIRST_S = 30.0
"""How long it waits for whoever has started it."""

MOST_THREADS = 200
"""Of which each window has two, and each greeting one or two; beyond that connections are refused."""

_LOCK_S = 0.5  # somebody may just be looking whether the lock is free
_CHECK_S = 1.0
_END_S = 30.0  # what was read is saved
_BYE_S = 1.0  # for a window to take what is said to it last
_STUCK_S = 60.0
"""After which a request that was to stop, within one pass, is taken to hang for ever."""


class _Relay(logging.Handler):
    """Lets language servers log what is logged about models here.

    Args:
        say: given a message for each of them.
    """

    def __init__(self, say: Callable[[dict[str, Any]], None]) -> None:
        super().__init__(logging.WARNING)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        """Send it; where it was raised it stays in the log here."""
        if not record.name.startswith(__package__):
            self._say({"log": [record.levelno, record.name, record.getMessage()]})


class ModelProcess:
    """Accepts language servers until it is stopped or nobody has been there for a while.

    Args:
        idle_s: how long that is.
        first_s: the same before the first one, at least.
    """

    def __init__(self, where: Place, idle_s: float, first_s: float = FIRST_S) -> None:
        self._where = where
        self._idle_s = idle_s
        self._models = Models()
        self._decode = DecodeThread(priority=own_priority())
        self._changed = threading.Condition()
        self._sessions: frozenset[Session] = frozenset()
        self._numbers = count(1)
        self._alone_since = time.monotonic() + first_s - idle_s  # who has started it may have changed its mind
        self._reason = ""
        self._overdue: Work | None = None
        self._overdue_since = 0.0

    def run(self) -> None:
        """Serve; returns once everything is saved and freed.

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
        self._decode.load(lambda: self._models, lambda error: None)
        ahead = Work(lambda cancel: self._models.load_ahead(load()[0]), stops=False)
        self._decode.submit("what is most likely asked for", ahead)
        threading.Thread(target=self._accept, args=(listener, key), name="accept", daemon=True).start()
        self._wait()
        with contextlib.suppress(OSError):
            listener.close()
        with contextlib.suppress(OSError):
            self._where.key.unlink()
        self._say({"bye": self._reason})  # now whoever hears it cannot come back to this process
        self._decode.close(_END_S)
        for session in self._sessions:
            session.finish(_BYE_S)

    def stop(self, reason: str) -> None:
        """End soon; from any thread."""
        self._reason = reason  # before the lock: a signal may interrupt whoever has it
        if self._changed.acquire(blocking=False):
            self._changed.notify()
            self._changed.release()

    def _say(self, message: dict[str, Any]) -> None:
        """Send a message to every language server. Takes no lock: who logs may have any."""
        for session in self._sessions:  # which is replaced, never changed
            session.say(message)

    def _wait(self) -> None:
        """Until it is time to end. From then on nobody is served who was not before."""
        with self._changed:
            while not self._reason:
                alone_s = time.monotonic() - self._alone_since if not self._sessions else 0.0
                if not self._sessions and alone_s >= self._idle_s:
                    self._reason = "nobody is there"
                    break
                self._changed.wait(min(_CHECK_S, self._idle_s - alone_s) or _CHECK_S)
                if self._models.has_unused():
                    self._decode.submit("unused models", Work(lambda cancel: self._models.free_unused()))
                self._look_for_hang()
                _cut_log()

    def _look_for_hang(self) -> None:
        """What hangs in native code cannot be stopped alone; windows start another process."""
        overdue = self._models.overdue
        if overdue is None or overdue is not self._overdue:
            self._overdue, self._overdue_since = overdue, time.monotonic()
        elif time.monotonic() - self._overdue_since > _STUCK_S:
            logger.error("a request that was to stop has run on for %.0f seconds; this process ends", _STUCK_S)
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
            session = Session(next(self._numbers), channel, self._decode, self._models, self._about, self.stop)
            self._sessions = self._sessions | {session}
        try:
            session.run()
        finally:
            with self._changed:
                self._sessions = self._sessions - {session}
                self._alone_since = time.monotonic()
                self._changed.notify()

    def _about(self) -> dict[str, object]:
        process = {
            "pid": os.getpid(),
            "version": version(),
            "windows": len(self._sessions),
            "targets": self._models.count,
        }
        stopping = {key: value for key, value in self._decode.status().items() if key.startswith("stop_")}
        return {**stopping, "process": process}


def run(name: str | None = None) -> int:
    """Be the model process, if there is none yet; returns the exit status: 1 if ``name`` is another process's.

    Raises:
        CodespecError: the socket cannot be made.
    """
    faulthandler.enable()
    line = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format=line)
    try:
        where = place()
        if name not in (None, where.name):
            return ANSWER_IS_NO
        lock = _lock(where.lock)
    except OSError as error:
        raise CodespecError(f"no folder for the socket: {error}") from error
    if lock is None:
        return DONE
    os.truncate(lock, 0)
    os.write(lock, str(os.getpid()).encode())  # for who has to end it, see ``end_hung``
    be_expendable()  # a window whose process ends starts another
    process = ModelProcess(where, _seconds(os.environ.get("CODESPEC_IDLE_EXIT_S", "")))
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
    """Native libraries write to it, too, so that no handler of Python's could keep it small."""
    with contextlib.suppress(OSError):
        if os.fstat(2).st_size > LARGEST_LOG:
            os.ftruncate(2, 0)
