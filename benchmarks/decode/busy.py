"""``python -m benchmarks busy``: what a token takes while other programs compute, by the number of threads."""

from __future__ import annotations

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import codespec
from benchmarks.decode.learning import read
from benchmarks.progress import progress
from codespec.engine.local import LocalEngine
from codespec.languages import by_path
from codespec.protocols import CodespecError, Limits, Sampling

SPIN = (sys.executable, "-c", "while True: pass")
_LEAST_NICE = 19
_SETTLE_S = 1.5  # until what was started computes
_PROMPT = 96  # tokens
_TOKENS = 16
_WHAT = ("reading", "alone", "drafted")


def run(target: Path, paths: list[Path], samples: int, command: str, out: Path | None) -> int:
    """Measure, print a table, write ``busy.json`` under ``out``.

    Beside nothing, one and two processes that compute without end, one of the lowest priority, and a shell command that
    is begun again and again, each in turn and the idle machine before each. The same texts are read, and continued by
    the target alone and with its drafts: with the number of threads that codespec chooses, with one, and with all.

    Raises:
        CodespecError: the target cannot be loaded, or there is no file.
    """
    say, texts = progress(), [text for _, text in read(paths or [Path(codespec.__file__).parent])]
    if not texts:
        raise CodespecError("no files to continue")
    loads: dict[str, Sequence[tuple[Sequence[str], int]]] = {
        "one busy process": [(SPIN, 0)],
        "two busy processes": [(SPIN, 0)] * 2,
        "one of low priority": [(SPIN, _LEAST_NICE)],
    }
    if command:
        loads[command] = [(("sh", "-c", f"while true; do {command}; done"), 0)]
    rows: list[dict[str, Any]] = []
    language = by_path("x.py")
    with ExitStack() as stack:
        numbers = {"chosen": 0, "one": 1, "all": os.cpu_count() or 1}
        engines = {
            each: stack.enter_context(closing(LocalEngine(target, threads=count))) for each, count in numbers.items()
        }
        for engine in engines.values():
            engine.drafts.choose(engine.drafts.find("auto", language))
            engine.measure(lambda: True)
        for turn, (name, processes) in enumerate(loads.items()):
            chooser = random.Random(7)
            prompts = [_prompt(engines["chosen"], chooser.choice(texts), chooser) for _ in range(samples)]
            say(f"idle, then {name}")
            idle = {each: _sample(engine, prompts, 2 * turn) for each, engine in engines.items()}
            with running(processes):
                busy = {each: _sample(engine, prompts, 2 * turn + 1) for each, engine in engines.items()}
            say("")
            for each in engines:
                for what in _WHAT:
                    row = {"load": name, "threads": each, "what": what, "idle": idle[each][what]}
                    rows.append({**row, "busy": busy[each][what]})
                    _print(rows[-1])
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "busy.json").write_text(json.dumps(rows, indent=1))
    return 0


def _prompt(engine: LocalEngine, text: str, chooser: random.Random) -> list[int]:
    tokens = engine.vocabulary.tokenize(text[:100_000])
    end = chooser.randint(min(_PROMPT, len(tokens)), len(tokens))
    return tokens[max(0, end - _PROMPT) : end]


def _sample(engine: LocalEngine, prompts: Sequence[list[int]], turn: int) -> dict[str, list[float]]:
    """Milliseconds a token of reading each prompt, and of each continuation without the drafts and with them."""
    found: dict[str, list[float]] = {each: [] for each in _WHAT}
    for prompt in prompts:
        began = time.perf_counter()
        read = engine.prefill([turn, *prompt])  # which it does not know yet
        found["reading"].append((time.perf_counter() - began) * 1e3 / read)
        for what, drafts in (("alone", False), ("drafted", True)):
            engine.prefill(prompt)
            began = time.perf_counter()
            chunks = engine.generate(prompt, None, Sampling(), Limits(max_tokens=_TOKENS), None, drafts, "python")
            count = sum(len(chunk.round.tokens) for chunk in chunks if chunk.round is not None)
            found[what].append((time.perf_counter() - began) * 1e3 / max(1, count))
    return found


@contextmanager
def running(processes: Sequence[tuple[Sequence[str], int]]) -> Iterator[None]:
    """Processes with some priority each, and all that they start, until the end of the block."""
    started = [
        subprocess.Popen(
            list(command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            preexec_fn=partial(os.nice, value) if os.name == "posix" else None,
        )
        for command, value in processes
    ]  # fmt: skip
    try:
        time.sleep(_SETTLE_S)
        yield
    finally:
        for each in started:
            if os.name == "posix":
                os.killpg(each.pid, signal.SIGKILL)
            each.kill()
            each.wait()


def _print(row: dict[str, Any]) -> None:
    idle, busy = row["idle"], row["busy"]
    before, now = statistics.median(idle), statistics.median(busy)
    tail = sorted(busy)[int(0.95 * (len(busy) - 1))] / sorted(idle)[int(0.95 * (len(idle) - 1))]
    print(
        f"{row['load']:24} threads {row['threads']:6} {row['what']:8} "
        f"idle {before:7.2f} ms a token, busy {now:7.2f}: {now / before:5.2f} x, 95 % {tail:5.2f} x",
        flush=True,
    )
