"""Windows of one model process: what tests of it have in common."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from codespec.completion.request import Request
from codespec.config import Config
from codespec.daemon.address import endpoint
from codespec.daemon.client import ModelClient
from codespec.daemon.own_models import OwnModels
from codespec.daemon.start import stop_model_process
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
            return bool(condition())
        time.sleep(0.01)
    return True


def request(text: str = TEXT, path: str = "/work/a.py", ahead: bool = False) -> Request:
    return Request(text, len(text), "python", path, ahead=ahead)


def process_of(window: Window) -> dict:
    assert eventually(lambda: window.status().get("process"))
    return window.status()["process"]


class Window:
    """What one language server has, with an event loop of its own: every method waits.

    Raises:
        CodespecError, RuntimeError: the model cannot be loaded.
    """

    def __init__(self, config: Config | None = None, progress=None, report=None, wait=True, own=None) -> None:
        self.submitted = 0  # requests that the client has
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.client = self._do(self._made, report or (lambda message: None), own)
        self.load(config or Config(max_tokens=16, time_budget_ms=0), progress)
        if wait:
            self.wait()

    async def _made(self, report, own):
        return ModelClient(lambda message, show: report(message), own or OwnModels(), shared=own is None)

    def load(self, config, progress=None):
        self._loaded, self.failures = threading.Event(), []
        self._do(self._load, config, progress or (lambda text, percent: None))

    async def _load(self, config, progress):
        self.client.load(config, progress, lambda error: (self.failures.append(error), self._loaded.set()))

    def wait(self):
        """Until the model is loaded."""
        assert self._loaded.wait(WAIT_S)
        if self.failures[0] is not None:
            raise self.failures[0]
        return self

    def _do(self, work, *arguments):
        return asyncio.run_coroutine_threadsafe(work(*arguments), self.loop).result(WAIT_S)

    def ask(self, op, document, cancel=None, **fields):
        """What is answered to something; None where ``cancel`` was set."""

        async def work():
            asked = self.client.submit(op, document, **fields)
            self.submitted += 1
            while cancel is not None and not asked.future.done():
                await asyncio.wait([asked.future], timeout=0.01)
                if cancel.is_set():
                    self.client.cancel(asked)
            return await asked.future

        return self._do(work)

    def complete(self, what: Request, cancel=None):
        """The completions of a request, which all of this window stop each other."""
        return self.ask("complete", "the same", cancel, ahead=what.ahead, request=what)

    def prefill(self, what: Request) -> None:
        async def work():
            self.client.prefill("the same", what)

        self._do(work)

    def status(self):
        return self.client.status()

    def close(self) -> None:
        async def work():
            self.client.close()

        self._do(work)


@contextlib.contextmanager
def window(config: Config | None = None, report=None):
    found = Window(config, None, report)
    try:
        yield found
    finally:
        found.close()


def begun(window: Window) -> bool:
    """Whether its request is being worked on."""
    return any(each.reply is not None and each.reply.begun for each in list(window.client._asked.values()))


class InThread(threading.Thread):
    """Something that somebody else waits for: a completion, or what a call returns."""

    def __init__(self, window: Window, what: Any) -> None:
        super().__init__(daemon=True)
        self.cancel = threading.Event()
        self.result: Any = None
        self.error: Exception | None = None
        self._ask = what if callable(what) else lambda: window.complete(what, self.cancel)
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
