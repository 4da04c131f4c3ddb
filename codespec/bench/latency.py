"""``codespec bench latency``: how long somebody who types waits for completions, in a session with the real server.

What is typed are insertions from the history of a git repository, key by key, into the file as it was around them. The
pause before a key is drawn from a log-normal distribution (median ``KEY_MS``, sigma ``KEY_SIGMA``); behind a line or a
bracket a typist stops to think in one of ``1 / THINKS`` cases, for ``THINKS_MS``. A line's indentation comes with the
line end, as editors write it. The client asks ``debounce`` milliseconds after a key if no other has come, and cancels
what is still unanswered at the next key. Nothing is accepted: what is shown is typed through where it is right.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from codespec.bench import plot
from codespec.languages import Language, by_path
from codespec.lsp.client import EditorClient
from codespec.protocols import CodespecError

KEY_MS, KEY_SIGMA = 130.0, 0.45
THINKS, THINKS_MS = 0.25, (300.0, 1_500.0)
SHORTEST, LONGEST = 40, 400  # characters of an insertion
COMMITS = 400
LAST_WAIT_S = 2.0
SETTLE_S = 5.0  # for what the server measures while nobody waits
_LARGEST_FILE = 100_000

Arm = str
"""``full``, or what is switched off: ``no prefill``, ``no prefetch``, ``neither``."""

ARMS: dict[Arm, dict[str, bool]] = {
    "full": {"prefill": True, "prefetch": True},
    "no prefill": {"prefill": False, "prefetch": True},
    "no prefetch": {"prefill": True, "prefetch": False},
    "neither": {"prefill": False, "prefetch": False},
}


@dataclass(frozen=True)
class Session:
    """One insertion: the text around it, and what was written."""

    path: str
    language: Language
    before: str
    typed: str
    after: str

    def key_presses(self) -> Iterator[str]:
        """What each key press adds: a character, or a line end with the indentation of the next line."""
        for match in re.finditer(r"\n[ \t]*|\A[ \t]+|.", self.typed):
            yield match[0]


@dataclass
class Answered:
    """One request, milliseconds.

    Attributes:
        kind: ``along`` where what was shown goes on with what was typed, ``thought`` after a pause, else ``typing``.
        waited: from the request to the answer; None where the next key came first.
    """

    kind: str
    waited: float | None = None
    text: str = ""


@dataclass
class Log:
    """What happened in one arm."""

    answers: list[Answered] = field(default_factory=list)
    status: dict[str, Any] = field(default_factory=dict)


def sessions(repository: Path, count: int, seed: int) -> list[Session]:
    """Insertions from the latest commits of a repository, drawn at random.

    Raises:
        CodespecError: there is no such repository, or it has too few.
    """
    found: list[Session] = []
    for commit in _git(repository, "log", "--no-merges", f"-n{COMMITS}", "--format=%H").split():
        names = _git(repository, "diff-tree", "--no-commit-id", "-r", "--name-only", "--diff-filter=M", commit)
        for name in names.splitlines():
            language = by_path(name)
            if language.id == "plaintext":
                continue
            old, new = (_git(repository, "show", f"{each}:{name}") for each in (f"{commit}^", commit))
            found += _insertions(name, language, old, new)
        if len(found) >= 5 * count:
            break
    if len(found) < count:
        raise CodespecError(
            f"{repository}: {len(found)} insertions of {SHORTEST} to {LONGEST} characters, {count} wanted"
        )
    return random.Random(seed).sample(found, count)


def _git(repository: Path, *arguments: str) -> str:
    try:
        result = subprocess.run(
            ["git", "-C", str(repository), *arguments],
            capture_output=True,
            check=True,
            encoding="utf-8",
            errors="replace",
        )
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or str(error)
        raise CodespecError(f"{repository}: no history to take sessions from ({said.strip()[:200]})") from None
    return result.stdout


def _insertions(name: str, language: Language, old: str, new: str) -> Iterator[Session]:
    if max(len(old), len(new)) > _LARGEST_FILE:
        return
    lines, others = new.splitlines(keepends=True), old.splitlines(keepends=True)
    for tag, _, _, start, end in SequenceMatcher(None, others, lines, autojunk=False).get_opcodes():
        typed = "".join(lines[start:end])
        if tag == "insert" and SHORTEST <= len(typed) <= LONGEST:
            yield Session(name, language, "".join(lines[:start]), typed, "".join(lines[end:]))


class Typist:
    """Types sessions into a server."""

    def __init__(self, client: EditorClient, debounce_ms: float, seed: int) -> None:
        self._client, self._debounce_ms = client, debounce_ms
        self._random = random.Random(seed)
        self._shown = ""
        self._number = 0

    async def type(self, session: Session, log: Log) -> None:
        """Type one session, and note what was answered."""
        client = self._client
        self._number += 1
        uri = f"file:///session{self._number}/{session.path}"
        client.open(uri, session.language.id, session.before + session.after)
        row, column = session.before.count("\n"), 0
        pending: asyncio.Task[None] | None = None
        self._shown = ""
        last = "\n"
        for key in session.key_presses():
            pause = self._pause_ms(last)
            await asyncio.sleep(pause / 1e3)
            await _drop(pending)
            client.insert(uri, row, column, key)
            row, column = (row + 1, _units(key[1:])) if key.startswith("\n") else (row, column + _units(key))
            along = self._shown.startswith(key) and self._shown != key
            self._shown = self._shown[len(key) :] if along else ""
            kind = "along" if along else "thought" if pause >= THINKS_MS[0] else "typing"
            pending = asyncio.create_task(self._ask(uri, row, column, Answered(kind), log))
            last = key[-1] if key.strip() else "\n"
        await asyncio.sleep(LAST_WAIT_S)
        await _drop(pending)
        client.close(uri)

    def _pause_ms(self, last: str) -> float:
        if last in "\n([{:" and self._random.random() < THINKS:
            return self._random.uniform(*THINKS_MS)
        return self._random.lognormvariate(0, KEY_SIGMA) * KEY_MS

    async def _ask(self, uri: str, row: int, column: int, answered: Answered, log: Log) -> None:
        await asyncio.sleep(self._debounce_ms / 1e3)
        log.answers.append(answered)
        began = perf_counter()
        text = await self._client.complete(uri, row, column)
        answered.waited = (perf_counter() - began) * 1e3
        self._shown = answered.text = text


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


async def _drop(task: asyncio.Task[None] | None) -> None:
    if task is not None and not task.done():
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    elif task is not None and task.exception() is not None:
        raise CodespecError(f"the server failed: {task.exception()}")


async def measure(
    options: dict[str, Any], chosen: Sequence[Session], debounce_ms: float, seed: int, say: Callable[[str], None]
) -> Log:
    """Type all sessions into a server of its own."""
    log = Log()
    client = EditorClient()
    with tempfile.TemporaryDirectory(prefix="codespec-latency-") as data:  # nothing of the user's own
        try:
            await client.start(options, data)
            await asyncio.sleep(SETTLE_S)
            typist = Typist(client, debounce_ms, seed)
            before = await client.status()
            for number, session in enumerate(chosen, 1):
                say(f"session {number}/{len(chosen)}: {session.path}")
                await typist.type(session, log)
            after = await client.status()
        finally:
            await client.stop()
    counts = {key: value for key, value in after.items() if isinstance(value, int)}
    log.status = after | {key: value - before.get(key, 0) for key, value in counts.items()}
    return log


def figures(log: Log) -> dict[str, Any]:
    """Percentiles in milliseconds, by kind of request, and what the server counted."""
    kinds: dict[str, Any] = {}
    for kind in ("along", "typing", "thought"):
        asked = [each for each in log.answers if each.kind == kind]
        waited = [each.waited for each in asked if each.waited is not None]
        times = {
            f"p{share}": round(float(np.quantile(waited, share / 100, method="higher")), 2)
            for share in (50, 95, 99)
            if waited
        }
        with_text = sum(bool(each.text) for each in asked)
        kinds[kind] = {"asked": len(asked), "answered": len(waited), "with_text": with_text, **times}
    return {"requests": kinds, "server": log.status}


def run(
    repository: Path,
    arms: Sequence[Arm],
    count: int,
    debounce_ms: float,
    seed: int,
    out: Path | None,
    options: dict[str, Any],
    say: Callable[[str], None],
) -> int:
    """Measure, print a table, write ``latency.json`` and ``latency.svg`` under ``out``.

    Raises:
        CodespecError: no such arm, no sessions, or the server failed.
    """
    unknown = [arm for arm in arms if arm not in ARMS]
    if unknown:
        raise CodespecError(f"no arm {unknown[0]}; there are: {', '.join(ARMS)}")
    chosen = sessions(repository, count, seed)
    keys = [sum(1 for _ in session.key_presses()) for session in chosen]
    print(f"{count} insertions of {statistics.median(keys):g} keys, asked {debounce_ms:g} ms after a key; milliseconds")
    print(f"{'arm':12}{'request':10}{'asked':>7}{'answered':>10}{'text':>6}{'p50':>9}{'p95':>9}{'p99':>9}")
    report: dict[str, Any] = {}
    bars = []
    for arm in arms:
        say(arm)
        log = asyncio.run(measure({**options, **ARMS[arm]}, chosen, debounce_ms, seed, say))
        report[arm] = figures(log)
        for kind, each in report[arm]["requests"].items():
            times = "".join(f"{each.get(f'p{share}', float('nan')):9.1f}" for share in (50, 95, 99))
            print(f"{arm:12}{kind:10}{each['asked']:7}{each['answered']:10}{each['with_text']:6}{times}", flush=True)
            bars += [(f"{kind}, p{share}", arm, each[f"p{share}"]) for share in (50, 95) if f"p{share}" in each]
        server = report[arm]["server"]
        print(
            f"{arm:12}{server.get('from_memory', 0)} of {server.get('requests', 0)} from memory; "
            f"{server.get('completions', 0)} texts generated, prefetched ones among them, for which "
            f"{server.get('prefill_tokens', 0)} tokens were read, and {server.get('read_ahead', 0)} while typing"
        )
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        settings = {"count": count, "debounce_ms": debounce_ms, "seed": seed, "key_ms": KEY_MS, "key_sigma": KEY_SIGMA}
        (out / "latency.json").write_text(json.dumps({**settings, "arms": report}, indent=1) + "\n", "utf-8")
        (out / "latency.svg").write_text(plot.bars("milliseconds from request to answer", sorted(bars)), "utf-8")
        print(f"wrote latency.json, latency.svg to {out}")
    return 0
