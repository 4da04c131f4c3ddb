"""Connects to the model process, and starts it where there is none."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

import codespec
from codespec.daemon.address import Endpoint, endpoint
from codespec.daemon.priority import raise_priority_of
from codespec.daemon.wire import Channel
from codespec.exit_codes import ANSWER_IS_NO
from codespec.paths import hold, make_private

START_S = 30.0
"""Seconds that a new process may take until it listens; it loads no model before that."""

logger = logging.getLogger(__name__)

LARGEST_LOG = 1 << 20

ANSWER_S = 2.0
"""Seconds that a listening process may take to answer: it has a thread for that alone."""

HUNG_S = 5.0
"""Seconds without an answer after which the process is killed."""

_STEP_S = 0.02


class TooSlow(OSError):
    """The model process takes no connection, or does not answer on it."""


class Unreachable(Exception):
    """There is no model process and none can be started: the models have to be loaded elsewhere."""


_begun: dict[str, subprocess.Popen[bytes]] = {}  # by ``begin``, and not waited for yet
_started: list[subprocess.Popen[bytes]] = []  # so that nobody complains of a child that still runs


def reach(start: bool = True) -> Channel:
    """A connection to the model process of this user, which is started if there is none.

    Several language servers may start one at the same time: all but one of these processes find the lock taken and end.

    Args:
        start: False only looks.

    Raises:
        Unreachable: it cannot be reached or started; says why.
    """
    try:
        where = endpoint()
    except OSError as error:
        raise Unreachable(f"no folder for the socket: {error}") from error
    until = time.monotonic() + START_S
    child = _begun.pop(where.name, None)
    silent_since: float | None = None
    while True:
        began = time.monotonic()
        try:
            return connect(where)
        except (OSError, EOFError) as error:
            reason = error
        silent_since = (silent_since or began) if isinstance(reason, TooSlow) else None
        if silent_since is not None and time.monotonic() - silent_since > HUNG_S:
            end_hung(where)
        if not start and silent_since is None:
            raise Unreachable(f"no model process at {where.address}")
        if time.monotonic() > until:
            raise Unreachable(f"the model process does not answer ({reason}); {where.log} may say why")
        status = child.poll() if child is not None else 0
        if status == ANSWER_IS_NO:
            raise Unreachable("codespec was changed since this server was started; restart it")
        if status not in (None, 0):
            raise Unreachable(f"the model process has ended with status {status}; {where.log} says why")
        try:
            if status == 0 and not is_running(where):
                child = _spawn(where)
        except OSError as error:
            raise Unreachable(f"the model process cannot be started: {error}") from error
        time.sleep(_STEP_S)


def begin() -> None:
    """Start the model process if there is none, without waiting for it: ``reach`` will find it. It ends soon if nobody
    connects."""
    with contextlib.suppress(OSError):  # which ``reach`` will meet again, and say
        where = endpoint()
        if not is_running(where):
            _begun[where.name] = _spawn(where)


def connect(where: Endpoint) -> Channel:
    """A connection to the process that listens there.

    Raises:
        TooSlow: there is one, and it does not answer within ``ANSWER_S``.
        OSError, EOFError: there is none.
    """
    key = where.key.read_bytes()
    try:
        channel = Channel(_connection(where.address))
    except (BlockingIOError, TimeoutError) as error:  # as many wait as the system lets
        raise TooSlow("it takes no connection") from error
    try:
        channel.greet(key, listening=False, seconds=ANSWER_S)
    except TimeoutError as error:
        channel.close()
        raise TooSlow(str(error)) from error
    except BaseException:
        channel.close()
        raise
    return channel


def _connection(address: str) -> Connection:
    if sys.platform == "win32":
        return Client(address, "AF_PIPE")
    with socket.socket(socket.AF_UNIX) as end:
        end.settimeout(ANSWER_S)
        end.connect(address)
        end.settimeout(None)
        return Connection(end.detach())


def is_running(where: Endpoint) -> bool:
    """Whether a process has the lock: then it is about to listen, or about to end."""
    handle = hold(where.lock)
    if handle is not None:
        os.close(handle)
    return handle is None


def runs() -> bool:
    """Whether there is a model process of this user."""
    try:
        where = endpoint()
    except OSError:
        return False
    return where.lock.exists() and is_running(where)


def raise_priority(where: Endpoint) -> None:
    """Give the process that holds the lock the usual priority."""
    with contextlib.suppress(OSError, ValueError):
        raise_priority_of(int(where.lock.read_text("ascii")))


def end_hung(where: Endpoint) -> None:
    """Kill the process that holds the lock and does not answer; language servers that are connected lose it."""
    with contextlib.suppress(OSError, ValueError):
        process = int(where.lock.read_text("ascii"))
        if process > 1 and is_running(where):
            logger.error("the model process %d does not answer; it is ended", process)
            os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))


def _spawn(where: Endpoint) -> subprocess.Popen[bytes]:
    """Start a process that outlives this one and shares none of its streams."""
    _started[:] = [each for each in _started if each.poll() is None]
    detached: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        detached = {"creationflags": subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP}
    with open_log(where.log) as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "codespec", "model-process", "--name", where.name],
            cwd=where.key.parent,  # not the workspace, which may go away or be full of modules
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            **detached,
        )
    _started.append(child)
    return child


def open_log(path: Path) -> Any:
    """The log, to append to; begun anew where it has become large."""
    make_private(path.parent)
    if path.exists() and path.stat().st_size > LARGEST_LOG:
        with contextlib.suppress(OSError):  # on Windows, where a process still writes to it
            path.replace(path.with_suffix(".old.log"))
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


def _environment() -> dict[str, str]:
    """This process's environment, with import paths made absolute."""
    root = str(Path(codespec.__file__).parents[1])
    paths = [str(Path(each).absolute()) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys([root, *paths]))}


def stop_model_process() -> bool:
    """End the model process of this user, if there is one; whether there was. Language servers start it again."""
    was_there = runs()
    try:
        channel = reach(start=False)
    except Unreachable:  # or it was, and was hung
        return was_there
    try:
        channel.send({"op": "stop"})
        while True:
            channel.receive()
    except (OSError, EOFError):
        return True
    finally:
        channel.close()
