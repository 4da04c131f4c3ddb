"""The real server over a stand-in completer, which counts its steps on standard error.

What it does is chosen by the environment: ``STUB_LOAD_S`` seconds to load, ``STUB_LOAD_FILE`` a file that it waits for
before that, ``STUB_LOAD_ERROR`` a message to fail with, ``STUB_STEP_S`` seconds per step; with ``STUB_VERBOSE`` pygls
logs all it can.

After a line ``steps=N`` a completion takes N steps, behind what it said itself five, or ``STUB_AGAIN``, elsewhere one;
a next edit takes as many as the document's first line says in the same way.

A next edit goes on with the latest change of a name: where a word has become another one, the next use of the old word
after the cursor, then before it, then in other documents, becomes the new one, too. See also ``additions``.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from codespec.completion.report import report_of
from codespec.completion.request import Completion, Request
from codespec.config import Config
from codespec.daemon.models import Models
from codespec.daemon.own_models import OwnModels
from codespec.edits.request import Edit, EditOffer, EditRequest
from codespec.lsp import serve
from codespec.protocols import CodespecError, Statistics

AGAIN = int(os.environ.get("STUB_AGAIN", "5"))
"""Steps of a completion behind what it said itself."""


def say(text: str) -> None:
    print(f"stub: {text}", file=sys.stderr, flush=True)


class StubCompleter:
    problems: tuple[str, ...] = ()

    def __init__(self, config: Config) -> None:
        self._config = config
        self._aborted = False

    def complete(self, request: Request, cancel: threading.Event) -> list[Completion]:
        self._aborted = False
        before = request.text[: request.offset]
        if before.endswith("raise"):
            raise RuntimeError(before)  # as some libraries say what they could not handle
        line = before.rpartition("\n")[2]
        count = int(line.rpartition("=")[2]) if line.startswith("steps=") else AGAIN if line.endswith(">") else 1
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
        if line.endswith("unfitting"):
            report = report_of(Statistics(), "none", "dropped", None, "stub")
            return [replace(completion(""), report=report, broken_line=2 if "breaking" in line else None)]
        if line.endswith("late"):
            return [replace(completion(""), finish_reason="time")]
        text = "one\r\ntwo\n" if line.endswith("two lines") else f"<{before[-3:]}|{self._config.max_tokens}>"
        if line.endswith("drifts"):
            text = f"{request.count} {text}"
        return [completion(text + "!" * index) for index in range(request.count)]

    def next_edit(self, request: EditRequest, cancel: threading.Event) -> list[EditOffer] | None:
        self._aborted = False
        others = ", ".join(each.path for each in request.others)
        say(
            f"edits {request.path} at {request.offset} after {len(request.recent)} changes beside {others or 'nothing'}"
        )
        first = request.text.partition("\n")[0]
        for _ in range(int(first.rpartition("=")[2]) if "steps=" in first else 1):
            if cancel.is_set() or self._aborted:
                say("stopped the edit")
                return None
            time.sleep(float(os.environ.get("STUB_STEP_S", "0.01")))
        found = (each for each in (*additions(request), *renames(request)) if not request.rejected & {*each.parts})
        return list(found)[:1]

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
        return {"target": "stub", "reading": 40}

    def idle(self, go_on: Callable[[], bool]) -> bool:
        return True

    def abort(self) -> None:
        self._aborted = True


def additions(request: EditRequest) -> Iterator[EditOffer]:
    """Behind the line ``two lines`` two lines are missing; ``replaced`` and the line after it become three."""
    line, start = request.text.count("\n", 0, request.offset), request.text.find("two lines\n")
    if start >= 0 and "one\n" not in request.text:
        end = start + len("two lines\n")
        edit = Edit(request.path, end, end, "one\ntwo\n")
        yield EditOffer("added", (edit,), request.text.count("\n", 0, end), False, ("part of added",))
    start = request.text.find("replaced\n")
    if start >= 0:
        end = request.text.index("\n", start + len("replaced\n")) + 1
        edit = Edit(request.path, start, end, "1\n\t2\n3\n")
        yield EditOffer("replaced", (edit,), request.text.count("\n", 0, start), line != 0, ("part of replaced",))


def renames(request: EditRequest) -> Iterator[EditOffer]:
    before, after = ("", "")
    for each in request.recent[-1:]:
        old, new = re.findall(r"\w+", each.before), re.findall(r"\w+", each.after)
        [(before, after)] = [pair for pair in zip(old, new, strict=False) if pair[0] != pair[1]][:1] or [("", "")]
    if not before or not after:
        return
    word = re.compile(rf"\b{before}\b")
    places = [(request.path, request.text, match.start()) for match in word.finditer(request.text)]
    places.sort(key=lambda place: place[2] < request.offset)
    places += [(each.path, each.text, match.start()) for each in request.others for match in word.finditer(each.text)]
    for path, text, start in places:
        line = text.count("\n", 0, start)
        near = path == request.path and abs(line - request.text.count("\n", 0, request.offset)) <= 2
        edit = Edit(path, start, start + len(before), after)
        name = f"{path}:{line}:{before}:{after}"
        yield EditOffer(name, (edit,), line, not near, (f"part of {name}",))


def completion(text: str) -> Completion:
    return Completion(text=text, finish_reason="stop", rounds=(), report={})


class StubModels(Models):
    """A stand-in completer at a time, which predicts next edits, too."""

    stub: StubCompleter | None = None

    def completer(self, user: object, config: Config, progress: Callable[[str, int], None]) -> Any:
        if self.stub is not None:
            say("closed")
        self.stub = load(config, progress)
        return self.stub

    def edit_model(self, user: object, config: Config) -> Any:
        return self.stub

    def abort(self) -> None:
        if self.stub is not None:
            self.stub.abort()

    def close(self) -> None:
        say("closed")


def load(config: Config, progress: Callable[[str, int], None]) -> StubCompleter:
    print("a line on standard output, as a native library might write it", flush=True)
    seconds = float(os.environ.get("STUB_LOAD_S", "0"))
    while (wanted := os.environ.get("STUB_LOAD_FILE")) and not Path(wanted).exists():
        time.sleep(0.01)
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
    sys.exit(serve(own=OwnModels(models=StubModels)))
