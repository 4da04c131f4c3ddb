"""``python -m tests.soak``: a long session with a server; does it lose requests, log errors, or grow?

Edits come at a steady rate, in bursts of keys in one of many documents after the other. Most are followed by a request;
some requests are cancelled at the next edit, others left for the server to supersede. Now and then a document is
closed and opened again. What a burst has typed is taken out again later, so that documents keep their size.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcRequestCancelled

from codespec.languages import by_path
from tests.present import present

from .helpers import ROOT, Server, running

SERVE = [sys.executable, "-m", "codespec", "serve"]
SOURCES = ("codespec/**/*.py", "docs/*.md", "editors/**/*.ts", "editors/**/*.lua", "editors/**/*.json", "*.toml")
DOCUMENTS = 20
EDITS_PER_S = 5.0
BURST = (8, 30)  # keys in one document
LINES = 150  # of a document
ASK, CANCEL, REOPEN = 0.7, 0.5, 0.05  # chances: per edit, per unanswered request, per burst
KEEP = 3  # typed lines that stay in a document
SAMPLE_S = 1.0
WARM_UP_S, WARM_UP_SHARE = 30.0, 0.1
ANSWER_WITHIN_S = 60.0
GROWTH = 0.02
ERRORS = re.compile(r"^(ERROR|CRITICAL)\b|Traceback|^Exception ignored|never (awaited|retrieved)", re.MULTILINE)


@dataclass
class Text:
    """An open document as the client has it."""

    uri: str
    language: str
    lines: list[str]
    version: int = 1
    typed: list[int] = field(default_factory=list)  # rows that bursts have added, the oldest first


@dataclass
class Report:
    """What happened.

    Attributes:
        answers: by kind: ``text``, ``nothing`` (an empty list), ``null``, ``cancelled``, ``error``, ``lost``.
        memory: MB of all processes of the server, every ``SAMPLE_S``; empty where that cannot be told.
        kept: MB of it, at the same times, that hold KV caches of documents: they have a limit of their own
            (``cache.memory_mib``), and come and go with the lengths of the documents.
        complaints: errors in the log, or shown.
    """

    seconds: float = 0.0
    edits: int = 0
    requests: int = 0
    answers: collections.Counter[str] = field(default_factory=collections.Counter)
    errors: list[str] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)
    kept: list[float] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    status: Any = None

    @property
    def growth(self) -> float | None:
        """By what share memory grew after the warm-up, what is kept of documents aside."""
        rest = [(at, size - kept) for (at, size), kept in zip(self.memory, self.kept, strict=True)]
        return growth(rest, max(WARM_UP_S, WARM_UP_SHARE * self.seconds))

    def problems(self, most_growth: float = GROWTH) -> list[str]:
        """What must not be."""
        found = [f"{self.answers[kind]} requests: {kind}" for kind in ("lost", "error") if self.answers[kind]]
        found += self.errors[:5] + self.complaints[:20]
        if sum(self.answers.values()) != self.requests:
            found.append(f"{self.requests} requests, {sum(self.answers.values())} answers")
        if self.growth is not None and self.growth > most_growth:
            found.append(f"memory grew by {self.growth:.1%}, {most_growth:.0%} are allowed")
        return found

    def text(self) -> str:
        """The report to print."""
        sizes = [size for _, size in self.memory]
        lines = [
            f"{self.seconds:.0f} s, {self.edits} edits ({self.edits / max(self.seconds, 1e-9):.1f} per second), "
            f"{self.requests} requests: {dict(self.answers.most_common())}"
        ]
        if sizes:
            lines.append(
                f"memory, MB: {sizes[0]:.0f} at first, {sizes[-1]:.0f} at last, {max(sizes):.0f} at most; "
                + (f"{self.growth:+.2%} after the warm-up" if self.growth is not None else "too short to tell a growth")
            )
            tenths = np.linspace(0, len(sizes) - 1, 11).astype(int)
            lines.append("at each tenth of the time: " + " ".join(f"{sizes[index]:.1f}" for index in tenths))
            lines.append("of it kept of documents: " + " ".join(f"{self.kept[index]:.1f}" for index in tenths))
        return "\n".join([*lines, f"status: {self.status}", *self.problems(), *(["good"] * (not self.problems()))])


def growth(samples: Sequence[tuple[float, float]], warm_up_s: float) -> float | None:
    """The growth after ``warm_up_s``, as a share: the median slope over all pairs of samples (Theil, Sen), which single
    peaks do not move, times the time. None of fewer than ten samples.

    Args:
        samples: seconds and sizes.
    """
    kept = np.array([each for each in samples if each[0] >= warm_up_s])
    if len(kept) < 10:
        return None
    parts = np.array_split(kept, min(len(kept), 400))
    points = np.array([np.median(part, axis=0) for part in parts])
    first, second = np.triu_indices(len(points), 1)
    slope = np.median((points[second, 1] - points[first, 1]) / (points[second, 0] - points[first, 0]))
    return float(slope * (kept[-1, 0] - kept[0, 0]) / np.median(points[:10, 1]))


def memory_of(root: int, mark: str) -> float | None:
    """MB that a process, its descendants, and all whose environment holds ``mark`` have in memory; None: unknown."""
    if Path("/proc/self/statm").exists():
        table = list(_linux_processes(mark.encode()))
    else:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            listing = subprocess.run(["ps", "-axo", "pid=,ppid=,rss="], capture_output=True, text=True, check=True)
            rows = (line.split() for line in listing.stdout.splitlines())
            table = [(int(pid), int(parent), int(size) / 1024, False) for pid, parent, size in rows]
            return _sum(table, root)
        return None
    return _sum(table, root)


def _linux_processes(mark: bytes) -> Iterator[tuple[int, int, float, bool]]:
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            for kilobytes in re.findall(r"VmRSS:\s+(\d+)", (folder / "status").read_text()):  # none of a zombie
                yield int(folder.name), parent, int(kilobytes) / 1024, mark in (folder / "environ").read_bytes()


def _sum(table: Sequence[tuple[int, int, float, bool]], root: int) -> float:
    chosen = {root} | {pid for pid, _, _, marked in table if marked}
    while more := {pid for pid, parent, *_ in table if parent in chosen} - chosen:
        chosen |= more
    return sum(size for pid, _, size, _ in table if pid in chosen)


class Soak:
    """The editor of one long session."""

    def __init__(self, server: Server, seed: int, edits_per_s: float, documents: int) -> None:
        self.report = Report()
        self._server, self._rng = server, Random(seed)
        self._pause = 1 / edits_per_s
        self._documents = documents
        self._sources = sorted({path for pattern in SOURCES for path in ROOT.glob(pattern)})
        self._pending: dict[str, asyncio.Task[None]] = {}  # the latest request of each document
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, seconds: float, sample: Callable[[], float | None], say: Callable[[str], None]) -> Report:
        """Edit for ``seconds``, then wait for what is unanswered."""
        began = self._began = time.monotonic()
        texts = [self._open(number) for number in range(self._documents)]
        sampling = asyncio.create_task(self._sample(sample, say))
        due, number = began, 0
        while (now := time.monotonic()) - began < seconds:
            text = texts[number % len(texts)]
            number += 1
            self._begin_line(text)
            for key in self._words():
                due = max(due + self._pause, now - 1.0)  # late by more than a second: not all at once
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                self._type(text, key)
                if (now := time.monotonic()) - began >= seconds:
                    break
            if self._rng.random() < REOPEN:
                self._reopen(text)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=ANSWER_WITHIN_S)
        for task in self._tasks:
            task.cancel()
        if sampling.done():  # it has failed
            sampling.result()
        sampling.cancel()
        report = self.report
        report.answers["lost"] += report.requests - sum(report.answers.values())
        report.seconds = time.monotonic() - began
        return report

    async def _sample(self, sample: Callable[[], float | None], say: Callable[[str], None]) -> None:
        while True:
            size = await asyncio.to_thread(sample)
            if size is not None:
                at = time.monotonic() - self._began
                params = types.ExecuteCommandParams("codespec.status", [])
                asked = self._server.client.workspace_execute_command_async(params)
                status = await asyncio.shield(asked)  # pygls takes the answer to a cancelled request for an error
                self.report.memory.append((at, size))
                self.report.kept.append(present(status).get("kept_mib", 0.0))
                say(f"{at:.0f} s, {size:.0f} MB, {self.report.requests} requests")
            await asyncio.sleep(SAMPLE_S)

    def _open(self, number: int) -> Text:
        path = self._rng.choice(self._sources)
        lines = path.read_text("utf-8").splitlines()
        start = self._rng.randrange(max(1, len(lines) - LINES))
        text = Text(f"file:///soak/{number}/{path.name}", by_path(path.name).id, lines[start : start + LINES] or [""])
        self._server.open("\n".join(text.lines), text.uri, text.language)
        return text

    def _reopen(self, text: Text) -> None:
        self._server.client.text_document_did_close(
            types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(text.uri))
        )
        self._server.open("\n".join(text.lines), text.uri, text.language)
        text.version = 1

    def _words(self) -> Iterator[str]:
        """Key presses of a line from some source."""
        lines = self._rng.choice(self._sources).read_text("utf-8").splitlines() or ["x"]
        keys = list(self._rng.choice(lines))[: self._rng.randint(*BURST)] or ["x"]
        return iter(keys)

    def _begin_line(self, text: Text) -> None:
        """Open an empty line somewhere; the oldest of those that were added goes."""
        if len(text.typed) >= KEEP:
            row = text.typed.pop(0)
            self._replace(
                text, (row, 0), (row, units(text.lines[row])) if row + 1 == len(text.lines) else (row + 1, 0), ""
            )
            del text.lines[row]
            text.typed = [each - (each > row) for each in text.typed]
            text.lines = text.lines or [""]
        row = self._rng.randrange(len(text.lines))
        self._replace(text, (row, 0), (row, 0), "\n")
        text.lines.insert(row, "")
        text.typed = [each + (each >= row) for each in text.typed]
        text.typed.append(row)

    def _type(self, text: Text, key: str) -> None:
        row = text.typed[-1]
        column = units(text.lines[row])
        older = self._pending.get(text.uri)
        if older is not None and not older.done() and self._rng.random() < CANCEL:
            self._server.cancel(older.get_name())
        self._replace(text, (row, column), (row, column), key)
        text.lines[row] += key
        self.report.edits += 1
        if self._rng.random() < ASK:
            self.report.requests += 1
            name = f"soak {self.report.requests}"
            task = asyncio.create_task(self._ask(text.uri, row, column + units(key), name), name=name)
            self._pending[text.uri] = task
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _ask(self, uri: str, row: int, column: int, name: str) -> None:
        answers = self.report.answers
        try:
            answer = await self._server.ask(row, column, uri, id=name)
        except JsonRpcRequestCancelled:
            answers["cancelled"] += 1
        except JsonRpcException as error:
            answers["error"] += 1
            self.report.errors.append(f"{name}: {error}")
        else:
            answers["null" if answer is None else "text" if answer.items else "nothing"] += 1

    def _replace(self, text: Text, start: tuple[int, int], end: tuple[int, int], new: str) -> None:
        text.version += 1
        change = types.TextDocumentContentChangePartial(types.Range(types.Position(*start), types.Position(*end)), new)
        self._server.change(change, text.uri, text.version)


def units(text: str) -> int:
    """UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


async def soak(
    seconds: float,
    seed: int = 1,
    edits_per_s: float = EDITS_PER_S,
    documents: int = DOCUMENTS,
    command: Sequence[str] = SERVE,
    options: dict[str, Any] | None = None,
    say: Callable[[str], None] = lambda message: None,
) -> Report:
    """Run a session with a server of its own; what it says is in the report."""
    with tempfile.TemporaryDirectory(prefix="codespec-soak-", ignore_cleanup_errors=True) as folder:
        async with running(
            Path(folder), list(command), options={"prefetch": True, "generate_ahead": True, **(options or {})}
        ) as server:
            pid = present(server.client._server).pid
            editor = Soak(server, seed, edits_per_s, documents)
            report = await editor.run(seconds, lambda: memory_of(pid, folder), say)
            params = types.ExecuteCommandParams("codespec.status", [])
            report.status = await server.client.workspace_execute_command_async(params)
        said = server.stderr.splitlines()
        report.complaints = [f"logged: {line}" for line in said if ERRORS.search(line)]
        report.complaints += [f"shown: {text}" for text in server.shown]
    return report


def main() -> int:
    """Run; 1 if something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--edits", type=float, default=EDITS_PER_S, help="per second")
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--settings", type=json.loads, default={}, metavar="JSON", help="of the server")
    chosen = parser.parse_args()

    def say(message: str) -> None:
        if sys.stderr.isatty():
            print(f"\r{message}", end="", file=sys.stderr, flush=True)

    length = 60 * chosen.minutes
    report = asyncio.run(soak(length, chosen.seed, chosen.edits, chosen.documents, options=chosen.settings, say=say))
    print(report.text())
    return 1 if report.problems() else 0
