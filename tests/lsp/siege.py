"""``python -m tests.lsp.siege``: how long does anybody wait while hostile files are open and hostile requests come?

    python -m tests.lsp.siege [--minutes 60] [--seed 1] [--settings JSON]

A language server and an HTTP server share a model process. One editor types in an ordinary document and asks as it
does. In the same window hostile documents are opened, completed in, changed and closed, one behind the other: those of
``tests.nesting`` at any depth, those that once took minutes, and texts that repeat what privacy checks look for. Over
HTTP come bodies of ``tests.http.flood``, some at a time. Meanwhile ``codespec.status``, ``/health`` and ``/tokenize``
are asked over and over. Fails where ``codespec.status`` or ``/health`` waited for more than ``LONGEST_S``, where what
needs the model waited as much more than for its own time and that of the one request that ran, or where a process ended
or logged an error.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx
import psutil
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcRequestCancelled

from codespec.config import Config
from codespec.languages import by_path
from codespec.patience import JUDGING_S
from tests.http.flood import KINDS, pour
from tests.http.flood import Report as FloodReport
from tests.nesting.documents import NESTS
from tests.patterns.test_hostile_documents import DOCUMENTS

from .helpers import ROOT, Server, environment, running
from .soak import ERRORS, SERVE, Soak, units

LONGEST_S = 1.0
LOOK_EVERY_S = 0.25
DEPTHS = (50, 1_200, 20_000, 100_000)
PUMPED = (
    "password = ",
    "token=",
    "-----BEGIN ",
    "<key",
    "Authorization: Bearer ",
    "\\",
    "~",
    "https://a:",
    "'",
    "$(",
    '"',
)
"""What texts that repeat are made of, beside what the documents are."""
FILES = ("a.py", "a.js", "a.ts", "a.go", "a.c", "a.rs", "a.json", "a.yaml", "pom.xml", ".env", "a.sh", "a.md", "a.toml")
BODIES, MIB = 4, 8
"""Of a flood, at most."""


@dataclass
class Report:
    """What happened.

    Attributes:
        waits: the longest seconds by what was asked, and of how many.
        slowest: of hostile documents' requests, seconds and what they are.
    """

    waits: dict[str, tuple[float, int]] = field(default_factory=dict)
    slowest: list[tuple[float, str]] = field(default_factory=list)
    hostile: collections.Counter[str] = field(default_factory=collections.Counter)
    answers: collections.Counter[str] = field(default_factory=collections.Counter)
    failures: list[str] = field(default_factory=list)
    typed: str = ""

    def waited(self, what: str, seconds: float, whose: str = "") -> None:
        """Note how long somebody waited."""
        longest, count = self.waits.get(what, (0.0, 0))
        self.waits[what] = max(longest, seconds), count + 1
        if whose:
            self.slowest = sorted([*self.slowest, (seconds, f"{what}: {whose}")], reverse=True)[:8]

    def check(self, budget_s: float) -> None:
        """Note who waited too long."""
        for what, (longest, _) in self.waits.items():
            turns = 2 if "completion" in what else 1 if what == "/tokenize" else 0
            limit = LONGEST_S + turns * (budget_s + JUDGING_S)
            if longest > limit:
                self.failures.append(f"{what} waited {longest:.2f} s, {limit:g} are allowed")

    def text(self) -> str:
        """The report to print."""
        lines = [f"{what:24} {longest:6.3f} s at most of {count}" for what, (longest, count) in self.waits.items()]
        lines += [
            f"hostile documents: {dict(self.hostile.most_common())}",
            f"over HTTP: {dict(self.answers.most_common(12))}",
        ]
        lines += [f"  {seconds:6.3f} s {what}" for seconds, what in self.slowest]
        return "\n".join([*lines, self.typed, *self.failures, *(["good"] * (not self.failures))])


class Besieger:
    """Opens hostile documents in an editor's window."""

    def __init__(self, server: Server, rng: Random, report: Report) -> None:
        self._server, self._rng, self._report, self._number = server, rng, report, 0

    def _next(self) -> tuple[str, str, str, int]:
        """What it is, the name of its file, its text, and where the cursor stands in it."""
        rng = self._rng
        if (draw := rng.random()) < 0.6:
            nest, depth = rng.choice(NESTS), rng.choice(DEPTHS)
            text, middle = nest.text(depth, rng.random() < 0.5)
            return f"{nest} × {depth}", f"a.{nest.language}", text, middle
        if draw < 0.8:
            kind = rng.choice(sorted(DOCUMENTS))
            name, text = DOCUMENTS[kind]
            return kind, name, text, len(text)
        unit, name = rng.choice(PUMPED) * rng.choice((1, 3)), rng.choice(FILES)
        text = rng.choice(("", "x = ", "\n")) + unit * (rng.choice((5_000, 50_000, 300_000)) // len(unit))
        return f"{unit!r} repeated", name, text, len(text)

    async def go_on(self, until: float) -> None:
        """One document behind the other."""
        while time.monotonic() < until:
            what, name, text, offset = self._next()
            self._number += 1
            uri = f"file:///siege/{self._number}/{name}"
            language = name.rpartition(".")[2] if what.partition("-")[0] in name else by_path(name).id
            self._server.open(text, uri, language)
            await self._ask(what, uri, text, offset)
            position = types.Position(*_place(text, offset))
            change = types.TextDocumentContentChangePartial(types.Range(position, position), self._rng.choice("x(\n{"))
            self._server.change(change, uri)
            await self._ask(what, uri, text, offset)
            closed = types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri))
            self._server.client.text_document_did_close(closed)
            self._report.hostile[what.partition("-")[0].partition(" ×")[0] if " × " in what else "others"] += 1

    async def _ask(self, what: str, uri: str, text: str, offset: int) -> None:
        began = time.monotonic()
        try:
            await self._server.ask(*_place(text, offset), uri)
        except JsonRpcRequestCancelled:
            pass
        except JsonRpcException as error:
            self._report.failures.append(f"{what}: {error}")
        self._report.waited("hostile completion", time.monotonic() - began, what)


def _place(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    start = before.rfind("\n") + 1
    return before.count("\n"), units(before[start:])


async def _every(seconds: float, until: float, what: str, ask: Callable[[], Awaitable[Any]], report: Report) -> None:
    while time.monotonic() < until:
        began = time.monotonic()
        try:
            await ask()
        except (httpx.HTTPError, JsonRpcException) as error:
            report.failures.append(f"{what}: {type(error).__name__} {error}")
        report.waited(what, time.monotonic() - began)
        await asyncio.sleep(seconds)


class TimedSoak(Soak):
    """The editor of an ordinary document, whose waits are noted."""

    def __init__(self, server: Server, rng: Random, waits: Report) -> None:
        super().__init__(server, rng.randrange(1 << 30), 5.0, 2)
        self._waits = waits

    async def _ask(self, uri: str, row: int, column: int, name: str) -> None:
        began = time.monotonic()
        await super()._ask(uri, row, column, name)
        self._waits.waited("completion of the typist", time.monotonic() - began)


class _Port:
    """As ``pour`` wants it."""

    def __init__(self, port: int) -> None:
        self.port = port


async def _besiege_http(port: int, rng: Random, until: float, report: Report) -> None:
    while time.monotonic() < until:
        kind = rng.choice(sorted(set(KINDS) - {"connections"}))  # these take all, and a probe would be refused
        size = min(rng.choice((1 << 16, 1 << 20, MIB << 20)), 250_000 if kind == "pieces" else MIB << 20)
        flood = FloodReport(kind)
        await pour(_Port(port), KINDS[kind](rng.randint(1, BODIES), size), flood)  # type: ignore[arg-type]
        report.answers.update({f"{kind} {answer[:3]}": count for answer, count in flood.answers.items()})
        report.failures += [f"{kind}: {each}" for each in flood.failures]
        await asyncio.sleep(rng.random())


@asynccontextmanager
async def _http(folder: Path, said: list[str]) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    """A server over HTTP that shares the editor's model process, and its port."""
    process = await asyncio.create_subprocess_exec(
        *SERVE, "--http", "127.0.0.1:0", cwd=ROOT, env=environment(folder), stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def listen() -> None:
        assert process.stderr is not None
        while line := (await process.stderr.readline()).decode("utf-8", "replace"):
            said.append(line.rstrip())
            if not port.done() and (found := re.search(r"http://127\.0\.0\.1:(\d+)", line)):
                port.set_result(int(found[1]))

    listening = asyncio.create_task(listen())
    try:
        yield process, await asyncio.wait_for(port, 120)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        await listening


def _processes(folder: str) -> set[int]:
    """All whose environment names the folder."""
    found = set()
    for each in psutil.process_iter():
        try:
            if each.environ().get("HOME") == folder and each.pid != os.getpid():
                found.add(each.pid)
        except psutil.Error:
            continue
    return found


async def siege(seconds: float, seed: int, options: dict[str, Any], say: Callable[[str], None]) -> Report:
    """Run it; what happened is in the report."""
    report, rng = Report(), Random(seed)
    said: list[str] = []
    budget_s = options.get("time_budget_ms", Config().time_budget_ms) / 1000
    with tempfile.TemporaryDirectory(prefix="codespec-siege-", ignore_cleanup_errors=True) as folder:
        async with (
            running(Path(folder), SERVE, options={"prefetch": True, "generate_ahead": True, **options}) as server,
            _http(Path(folder), said) as (process, port),
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=120) as client,
        ):
            await client.post("/v1/completions", json={"prompt": "x", "max_tokens": 1})  # the model is loaded
            began = _processes(folder)
            until = time.monotonic() + seconds
            ask = types.ExecuteCommandParams("codespec.status", [])
            typist = TimedSoak(server, rng, report)
            probes: dict[str, Callable[[], Awaitable[Any]]] = {
                "codespec.status": lambda: server.client.workspace_execute_command_async(ask),
                "/health": lambda: client.get("/health"),
                "/tokenize": lambda: client.post("/tokenize", json={"content": "x"}),
            }
            ways = [_every(LOOK_EVERY_S, until, what, probe, report) for what, probe in probes.items()]
            ways += [Besieger(server, Random(seed + each), report).go_on(until) for each in range(2)]
            ways.append(_besiege_http(port, Random(seed), until, report))
            await asyncio.gather(typist.run(seconds, lambda: None, say), *ways)
            report.typed = f"the typist: {typist.report.edits} edits, {dict(typist.report.answers.most_common())}"
            report.failures += typist.report.errors
            if process.returncode is not None:
                report.failures.append(f"the HTTP server ended with {process.returncode}")
            if gone := began - _processes(folder):
                report.failures.append(f"{len(gone)} of {len(began)} processes ended")
        complaints = [line for line in [*server.stderr.splitlines(), *said] if ERRORS.search(line)]
        report.failures += [f"logged: {line[:300]}" for line in complaints[:20]]
    report.check(budget_s)
    return report


def main() -> int:
    """Run; 1 where something failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.lsp.siege", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--settings", type=json.loads, default={}, metavar="JSON", help="of the language server")
    chosen = parser.parse_args()
    report = asyncio.run(siege(60 * chosen.minutes, chosen.seed, chosen.settings, lambda message: None))
    print(report.text())
    return int(bool(report.failures))


if __name__ == "__main__":
    sys.exit(main())
