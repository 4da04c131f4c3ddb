"""The real server over a stand-in completer, which counts its steps on standard error.

What it does is chosen by the environment: ``STUB_LOAD_S`` seconds to load, ``STUB_LOAD_ERROR`` a message to fail with,
``STUB_STEP_S`` seconds per step; with ``STUB_VERBOSE`` pygls logs all it can.

After a line ``steps=N`` a completion takes N steps, behind what it said itself five,
elsewhere one.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from codespec.completion.request import Completion, Request
from codespec.config import Config
from codespec.lsp import serve
from codespec.protocols import Cancel, CodespecError


def say(text: str) -> None:
    print(f"stub: {text}", file=sys.stderr, flush=True)


class StubCompleter:
    reading = False

    def __init__(self, config: Config) -> None:
        self._config = config
        self._aborted = False

    def complete(self, request: Request, cancel: threading.Event) -> list[Completion]:
        self._aborted = False
        before = request.text[: request.offset]
        if before.endswith("raise"):
            raise RuntimeError(before)  # as some libraries say what they could not handle
        line = before.rpartition("\n")[2]
        count = int(line.rpartition("=")[2]) if line.startswith("steps=") else 5 if line.endswith(">") else 1
        name = request.path.rpartition("/")[2]
        say(f"begin {name}")
        for snippet in request.context:
            say(f"{name} sees {snippet.path}: {snippet.text!r}")
        say(f"uses {request.draft} and {request.grammar}")
        for _ in range(count):
            if cancel.is_set() or self._aborted:
                say(f"stopped {name}")
                return []
            time.sleep(float(os.environ.get("STUB_STEP_S", "0.01")))
        say(f"done {name}")
        if line.endswith("nothing"):
            return []
        text = "one\r\ntwo\n" if line.endswith("two lines") else f"<{before[-3:]}|{self._config.max_tokens}>"
        return [completion(text + "!" * index) for index in range(request.count)]

    def prefill(self, request: Request, cancel: threading.Event) -> int:
        say(f"reads {request.path.rpartition('/')[2]} up to {request.text[: request.offset][-8:]!r}")
        return 0

    def learn(self, text: str, path: str, language: str, workspace: str = "", offset: int | None = None) -> None:
        say(f"learns {path.rpartition('/')[2]} in {workspace or 'no workspace'}, {len(text)} characters, {offset}")

    def accepted(self, request: Request, text: str) -> None:
        say(f"accepted {text!r} in {request.workspace or 'no workspace'}")

    def forget(self, workspace: str) -> None:
        if workspace.endswith("locked"):
            raise CodespecError(f"{workspace}: cannot be deleted")
        say(f"forgot {workspace}")

    def status(self, languages: Iterable[str] = ()) -> dict[str, Any]:
        return {"target": "stub"}

    def idle(self, go_on: Callable[[], bool]) -> bool:
        return True

    def hasten(self, cancel: Cancel) -> None:
        say("hastens")

    def abort(self) -> None:
        self._aborted = True

    def close(self) -> None:
        say("closed")


def completion(text: str) -> Completion:
    return Completion(text=text, finish_reason="stop", rounds=(), report={})


def load(config: Config, progress: Callable[[str, int], None]) -> StubCompleter:
    print("a line on standard output, as a native library might write it", flush=True)
    seconds = float(os.environ.get("STUB_LOAD_S", "0"))
    for percent in (0, 50, 100):
        progress("loading the stub", percent)
        time.sleep(seconds / 3)
    if error := os.environ.get("STUB_LOAD_ERROR"):
        raise CodespecError(error)
    if os.environ.get("STUB_VERBOSE"):
        logging.getLogger("pygls").setLevel(logging.DEBUG)
    say(f"loaded {config.target.path or 'embedded'}")
    return StubCompleter(config)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tcp", action="store_true")
    parser.add_argument("--ws", action="store_true")
    chosen = parser.parse_args()
    sys.exit(
        serve(
            tcp=("127.0.0.1", 0) if chosen.tcp else None,
            ws=("127.0.0.1", 0) if chosen.ws else None,
            load=load,  # type: ignore[arg-type]
        )
    )
