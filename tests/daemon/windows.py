"""Windows of one model process: what tests of it have in common."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path

import pytest

from codespec.completion.request import Request
from codespec.config import Config
from codespec.daemon.address import endpoint
from codespec.daemon.client import SharedCompleter, stop_model_process
from codespec.paths import hold

WAIT_S = 60.0
TEXT = "import os\nname = os.path."
LONG = "".join(f"def function_{n}(value):\n    return value * {n} + {n % 7}\n\n\n" for n in range(1500))


@contextlib.contextmanager
def own_process(folder: Path, idle_s: int):
    """A model process that nobody else uses, once somebody wants it; the endpoint where it is found."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CODESPEC_RUNTIME", str(folder / "run"))
        patch.setenv("CODESPEC_DATA", str(folder / "data"))
        patch.setenv("CODESPEC_CACHE", str(folder / "cache"))
        patch.setenv("CODESPEC_IDLE_EXIT_S", str(idle_s))
        where = endpoint()
        yield where
        stop_model_process()
        assert eventually(lambda: has_ended(where.lock))


def has_ended(lock: Path) -> bool:
    """Whether no model process has its lock."""
    handle = hold(lock)
    if handle is not None:
        os.close(handle)
    return handle is not None


def eventually(condition) -> bool:
    end = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def request(text: str = TEXT, path: str = "/work/a.py", ahead: bool = False) -> Request:
    return Request(text, len(text), "python", path, ahead=ahead)


def process_of(completer: SharedCompleter) -> dict:
    assert eventually(lambda: completer.status().get("process"))
    return completer.status()["process"]


def never() -> threading.Event:
    return threading.Event()


@contextlib.contextmanager
def window(config: Config | None = None, report=None):
    """What one language server has."""
    completer = SharedCompleter(config or Config(max_tokens=16, time_budget_ms=0), None, report)
    try:
        yield completer
    finally:
        completer.close()


def begun(completer: SharedCompleter) -> bool:
    """Whether the model process works on its request."""
    now = completer._running
    reply = now and now[0]._replies.get(now[1])
    return bool(reply and reply.begun)


class InThread(threading.Thread):
    """A completion that somebody else waits for."""

    def __init__(self, completer: SharedCompleter, what: Request, cancel: threading.Event | None = None) -> None:
        super().__init__(daemon=True)
        self.cancel = cancel or threading.Event()
        self.result = self.error = None
        self._ask = lambda: completer.complete(what, self.cancel)
        self.start()

    def run(self) -> None:
        try:
            self.result = self._ask()
        except Exception as error:
            self.error = error

    def wait(self):
        self.join(WAIT_S)
        assert not self.is_alive()
        return self.result
