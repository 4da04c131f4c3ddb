"""``python -m benchmarks latency``: how long somebody who types waits for completions, with the real server.

What is typed and when: see ``typing``. The client asks ``debounce`` milliseconds after a key if no other has come, and
cancels what is still unanswered at the next key. Nothing is accepted: what is shown is typed through where it is right.
The same keys at the same times go to ``llama-server`` through what llama.vim does (``infill``), if its binary is given.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
import statistics
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import plot
from benchmarks.capacity.sessions import BETWEEN_S, KEY_MS, KEY_SIGMA, LAST_WAIT_S
from benchmarks.decode.llama_cpp import environment
from benchmarks.latency.client import EditorClient
from benchmarks.latency.figures import KINDS, SHARES, Log, figures, on_the_same_keys
from benchmarks.latency.fim_order import order_of, with_order
from benchmarks.latency.llama_vim import N_PREDICT, LlamaVim
from benchmarks.latency.typing import Press, Session, sessions, type_sessions, units
from benchmarks.llama_server import Server
from codespec.models.registry import find_target
from codespec.protocols import CodespecError

SETTLE_S = 5.0  # for what the server measures while nobody waits
SERVER_TIMEOUT_S = 120.0
LLAMA_VIM_BATCH = 1024

Arm = str
"""``full``, or what is switched off of it: ``not ahead``, ``no prefill`` (nor ahead), ``no prefetch``, ``neither``; or
``llama.vim``."""

_ALL = {"prefill": True, "generate_ahead": True, "prefetch": True}
ARMS: dict[Arm, dict[str, bool]] = {
    "full": _ALL,
    "not ahead": {**_ALL, "generate_ahead": False},
    "no prefill": {**_ALL, "prefill": False, "generate_ahead": False},
    "no prefetch": {**_ALL, "prefetch": False},
    "neither": dict.fromkeys(_ALL, False),
}
LLAMA_VIM: Arm = "llama.vim"
_NO_COUNTS = frozenset({"context", "threads"})


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes:
        debounce_ms: from a key to the request; llama.vim has its own way.
        order: of fill-in-the-middle prompts, ``spm`` or ``psm``; empty is the target's own.
        llama_server: its binary; None leaves it out.
        llama_server_arguments: further ones, behind those that llama.vim recommends.
    """

    repository: Path
    arms: Sequence[Arm]
    count: int
    debounce_ms: float
    seed: int
    out: Path | None = None
    order: str = ""
    llama_server: Path | None = None
    llama_server_arguments: Sequence[str] = ()


class Codespec:
    """An editor with codespec's server: asks ``debounce_ms`` after a key, cancels at the next one."""

    def __init__(self, client: EditorClient, debounce_ms: float, log: Log) -> None:
        self.shown = ""
        self._client, self._debounce_ms, self._log = client, debounce_ms, log
        self._pending: asyncio.Task[None] | None = None
        self._uri = ""
        self._first = 0  # press of the current session
        self._column = 0  # of the cursor

    async def open(self, number: int, session: Session) -> None:
        """Open a document."""
        self._uri = f"file:///session{number}/{session.path}"
        self._first = len(self._log.presses)
        self._column = 0
        self.shown = ""
        self._client.open(self._uri, session.language.id, session.before + session.after)

    async def press(self, key: str, press: Press) -> None:
        """Put text before the cursor, and ask in a while."""
        await self._drop()
        row, column = press.place
        last = key.rpartition("\n")[2]
        start = (row - 1, self._column) if key.startswith("\n") else (row, column - units(last))
        self._column = column
        self._client.insert(self._uri, *start, key)
        self.shown = self.shown[len(key) :] if self.shown.startswith(key) else ""
        self._pending = asyncio.create_task(self._ask(press))

    async def close(self) -> None:
        """Close the document, and note what the server says of its answers."""
        await self._drop()
        self._client.close(self._uri)
        answers = {(each["line"], each["character"]): each for each in await self._client.answers()}
        for press in self._log.presses[self._first :]:
            found = answers.get(press.place)
            if found is not None and press.waited is not None:
                press.memory = found["memory"]
                self._log.answers.append({"kind": press.kind, "client_ms": round(press.waited, 3), **found})

    async def _ask(self, press: Press) -> None:
        await asyncio.sleep(self._debounce_ms / 1e3)
        press.asked = True
        began = perf_counter()
        text = await self._client.complete(self._uri, *press.place)
        press.answer(text, began)
        self.shown = text

    async def _drop(self) -> None:
        task, self._pending = self._pending, None
        if task is None:
            return
        if not task.done():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        elif task.exception() is not None:
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
            before = await client.status()
            await type_sessions(Codespec(client, debounce_ms, log), chosen, seed, log, say)
            after = await client.status()
        finally:
            await client.stop()
    counts = {key: value for key, value in after.items() if isinstance(value, int) and key not in _NO_COUNTS}
    log.status = after | {key: value - before.get(key, 0) for key, value in counts.items()}
    return log


async def measure_llama_vim(server: Server, chosen: Sequence[Session], seed: int, say: Callable[[str], None]) -> Log:
    """Type all sessions into an editor with llama.vim.

    Raises:
        CodespecError: the server refused a request.
    """
    log = Log()

    async def ask(body: dict[str, Any]) -> dict[str, Any]:
        return await asyncio.to_thread(server.ask, "/infill", body)

    await ask({"input_prefix": "a = 1\n", "input_suffix": "\n", "prompt": "b", "n_predict": 1})  # as Server.ask says
    plugin = LlamaVim(ask, seed)
    plugin.start()
    try:
        await type_sessions(plugin, chosen, seed, log, say)
    finally:
        await plugin.stop()
    if plugin.failures:
        raise CodespecError(f"llama-server: {len(plugin.failures)} requests failed; the first: {plugin.failures[0]}")
    log.sent = plugin.sent
    return log


async def settings_in_use(options: dict[str, Any]) -> tuple[int, int]:
    """Threads and context of the target under these settings."""
    client = EditorClient()
    with tempfile.TemporaryDirectory(prefix="codespec-latency-") as data:
        try:
            await client.start(options, data)
            status = await client.status()
        finally:
            await client.stop()
    return status["threads"], status["context"]


def llama_server_line(
    binary: Path, target: Path, threads: int, context: int, order: str, more: Sequence[str]
) -> list[str]:
    """The command of a server as llama.vim recommends it (``-ub 1024 -b 1024 --cache-reuse 256``), with our target.

    A prompt gets at most ``--batch-size`` tokens of the file around the cursor; in a small context fewer fit. Chunks of
    other files get what is left of the context beside ``--predict``, which the server does not take from the request.
    """
    batch = str(min(LLAMA_VIM_BATCH, max(context - N_PREDICT, context // 2)))
    line = [str(binary), "--model", str(target), "--threads", str(threads), "--threads-batch", str(threads)]
    line += ["--ctx-size", str(context), "--parallel", "1", "--batch-size", batch, "--ubatch-size", batch]
    line += ["--cache-reuse", "256", "--predict", str(N_PREDICT), "--no-ui"]
    return [*line, *(["--spm-infill"] if order == "spm" else []), *more]


def run(plan: Plan, options: dict[str, Any], say: Callable[[str], None]) -> int:
    """Measure, print a table, write ``latency.json`` and ``latency.svg`` under ``plan.out``.

    Args:
        options: settings of the server.

    Raises:
        CodespecError: no such arm, no sessions, a target without that order, or a server failed.
    """
    unknown = [arm for arm in plan.arms if arm not in ARMS]
    if unknown:
        raise CodespecError(f"no arm {unknown[0]}; there are: {', '.join(ARMS)}")
    chosen = sessions(plan.repository, plan.count, plan.seed)
    keys = [sum(1 for _ in session.key_presses()) for session in chosen]
    print(
        f"{plan.count} insertions of {statistics.median(keys):g} keys; milliseconds from request to answer and from key"
    )
    print(f"{'arm':12}{'keys':9}{'n':>5}{'answered':>9}{'text':>6}{'memory':>7}", end="")
    print("".join(f"{what + ' p' + str(share):>10}" for what in ("req", "key") for share in SHARES))
    with tempfile.TemporaryDirectory(prefix="codespec-latency-") as folder:
        target = find_target(options.get("target", {}).get("path", ""))
        if plan.order and plan.order != order_of(target):
            target = with_order(target, plan.order, Path(folder))
            options = {**options, "target": {**options.get("target", {}), "path": str(target)}}
        order = order_of(target)
        report = dict(_arms(plan, options, target, order, chosen, say))
    if plan.out is not None:
        _write(plan, order, options, report)
    return 0


def _arms(
    plan: Plan,
    options: dict[str, Any],
    target: Path,
    order: str,
    chosen: Sequence[Session],
    say: Callable[[str], None],
) -> Iterable[tuple[Arm, dict[str, Any]]]:
    logs = {}
    for arm in plan.arms:
        say(arm)
        settings = {**options, **ARMS[arm]}
        logs[arm] = asyncio.run(measure(settings, chosen, plan.debounce_ms, plan.seed, say))
        say("")
        yield arm, _show(arm, logs[arm])
    if plan.llama_server is not None:
        say(LLAMA_VIM)
        threads, context = asyncio.run(settings_in_use(options))
        line = llama_server_line(plan.llama_server, target, threads, context, order, plan.llama_server_arguments)
        try:
            with Server(line, environment(None), SERVER_TIMEOUT_S) as server:
                log = asyncio.run(measure_llama_vim(server, chosen, plan.seed, say))
                say("")
        except (RuntimeError, OSError) as error:
            raise CodespecError(f"{plan.llama_server}: {error}") from None
        same = {arm: on_the_same_keys(each, log) for arm, each in logs.items()}
        yield LLAMA_VIM, {**_show(LLAMA_VIM, log), "command": shlex.join(line), "same_keys": same}
        for arm, found in same.items():
            for what, each in found.items():
                print(f"{arm:12}{each['keys']} keys {what}: {_line(each['own'])}; {LLAMA_VIM}: {_line(each['other'])}")


def _show(arm: Arm, log: Log) -> dict[str, Any]:
    """Print what an arm has shown; returns its figures."""
    report = figures(log)
    for kind, each in report["requests"].items():
        times = [each[what].get(f"p{share}") for what in ("waited", "from_key") for share in SHARES]
        row = "".join(f"{'–' if value is None else f'{value:.1f}':>10}" for value in times)
        counts = f"{each['keys']:5}{each['answered']:9}{each['with_text']:6}{each['from_memory']:7}"
        print(f"{arm:12}{kind:9}{counts}{row}", flush=True)
    tokens = report["prompt_tokens"]
    parts = ", ".join(f"{name} {tokens[name]}" for name in tokens if name not in ("total", *_SHARES_OF_TOKENS))
    print(f"{arm:12}prompt tokens evaluated: {tokens['total']} ({parts}); for each answer {tokens['per_answer']}")
    if "server" in report:
        server = report["server"]
        print(f"{arm:12}in the server: from memory {_line(server.get('memory_ms'))}; stopping a decode", end=" ")
        print(f"{_line(server.get('stop_decode_ms'))} (in passes {_line(report['stop_decode_in_passes'])})", end=", ")
        print(f"a prefill {_line(server.get('stop_prefill_ms'))}")
        for kind in ("thought", "all"):
            found = report["in_server"][kind]
            print(
                f"{arm:12}a model was asked, {kind}: {found['count']} times, ms {_line(found['ms'])}, of that reading "
                f"{_line(found['prefill_ms'])}; over decoding (a pass takes {server.get('pass_ms', 0):g} ms) "
                f"{_line(found['over_decoding'])}",
                flush=True,
            )
    return report


_SHARES_OF_TOKENS = ("per_answer", "per_answer_without_ahead")


def _line(figures: dict[str, Any] | None) -> str:
    shown = {key: value for key, value in (figures or {}).items() if key != "count"}
    return " ".join(f"{key} {value}" for key, value in shown.items()) or "none"


def _write(plan: Plan, order: str, options: dict[str, Any], report: dict[str, Any]) -> None:
    out = plan.out
    assert out is not None
    out.mkdir(parents=True, exist_ok=True)
    settings = {
        "count": plan.count,
        "debounce_ms": plan.debounce_ms,
        "seed": plan.seed,
        "key_ms": KEY_MS,
        "key_sigma": KEY_SIGMA,
        "last_wait_s": LAST_WAIT_S,
        "between_s": BETWEEN_S,
        "order": order,
        "options": options,
    }
    bars = [
        (f"{kind}, {share}", arm, found["requests"][kind]["from_key"][share])
        for arm, found in report.items()
        for kind in KINDS
        for share in ("p50", "p95")
        if found["requests"][kind]["from_key"].get(share)
    ]
    (out / "latency.json").write_text(json.dumps({**settings, "arms": report}, indent=1) + "\n", "utf-8")
    (out / "latency.svg").write_text(plot.bars("milliseconds from key to answer", sorted(bars)), "utf-8")
    print(f"wrote latency.json, latency.svg to {out}")
