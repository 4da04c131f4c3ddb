"""``python -m tests.fuzz``: thousands of hostile grammars, each in a process of its own; prints what they did.

``python -m tests.fuzz jsonrpc`` sends hostile messages to a language server instead; ``models`` loads damaged model
files, ``hub`` fetches from a hub that answers anything; ``schemas`` tries JSON Schemas with ``jsonschema`` as judge.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from codespec.grammar import Grammar, GrammarError, byte_tokenizer, sandbox

from . import hub, jsonrpc, models, schemas
from .exercise import Report, exercise
from .generators import Source, any_source

SECONDS, MEMORY = 2.0, 500  # what each grammar may take: of processor time, and MB
DEADLINE = 30  # seconds of processor time until a process counts as hanging


def main() -> int:
    """Run; 1 if a grammar crashed, hung, took too much, or contradicted itself."""
    if sys.argv[1:2] == ["jsonrpc"]:
        return jsonrpc.main(sys.argv[2:])
    if sys.argv[1:2] == ["models"]:
        return models.main(sys.argv[2:])
    if sys.argv[1:2] == ["hub"]:
        return hub.main(sys.argv[2:])
    if sys.argv[1:2] == ["schemas"]:
        return schemas.main(sys.argv[2:])
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first grammar; each next one adds 1")
    parser.add_argument("--out", type=Path, help="keep the sources of what failed there")
    options = parser.parse_args()
    summary = Summary(options.out)
    began = time.monotonic()
    for seed in range(options.seed, options.seed + options.count):
        try:
            summary.add(seed, any_source(Random(seed)), run_one(seed))
        except KeyboardInterrupt:  # what is known so far
            break
        if seed % 50 == 0 and sys.stderr.isatty():
            print(f"\r{seed - options.seed}/{options.count}, {len(summary.failures)} failed", end="", file=sys.stderr)
    print(summary.text(time.monotonic() - began))
    return 1 if summary.failures else 0


def run_one(seed: int) -> dict[str, Any]:
    """What the grammar of this seed did: in the helper first, then in a process of its own."""
    rng = Random(seed)
    kind, text, options = any_source(rng)
    verdict = sandbox.shared.examine({"kind": kind, "text": text, "name": "g", "options": options})
    result = {"checked": verdict.get("seconds", 0.0), "memory": verdict.get("memory", 0)}
    if verdict["kind"] == "ok":
        sandbox.keep(verdict)
        used = in_process(lambda: use((kind, text, options), rng))
        return {**result, **used, "memory": max(result["memory"], used["memory"])}
    error = sandbox.refusal("g", verdict)
    bad = verdict["kind"] == "crash" or "\n" in str(error) or not error.cause
    return {**result, "outcome": f"{'BAD ERROR' if bad else verdict['kind']}: {error}"}


def in_process(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What ``work`` gives in a fork of this process, which may come to any end; and the memory it took, in MB."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        signal.setitimer(signal.ITIMER_PROF, DEADLINE)  # processor time: the machine may be busy
        code = 1
        try:
            with os.fdopen(write_end, "w") as pipe:
                json.dump(work(), pipe)
            code = 0
        finally:
            os._exit(code)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        text = pipe.read()
    _, status, usage = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    result: dict[str, Any] = json.loads(text) if code == 0 else {}
    if code:
        result["outcome"] = "HANG" if code == -signal.SIGPROF else f"CRASH: {code}"
    return {**result, "memory": usage.ru_maxrss // 1024}


def use(source: Source, rng: Random) -> dict[str, Any]:
    """Compile a grammar that was approved, and exercise it."""
    kind, text, options = source
    began = time.process_time()
    report = Report()
    first = 0.0
    try:
        grammar = report.timed("compile", lambda: Grammar.from_source(kind, text, "g", **options))
        if grammar.needs_vocabulary:
            return {"outcome": "works with a model only"}
        report.timed("state", lambda: grammar.state(byte_tokenizer()))
        first = time.process_time() - began
        exercise(grammar, rng, report=report)
    except GrammarError as error:
        report.outcome = f"BAD: approved, then refused: {error}"
    except BaseException as error:
        report.outcome = f"BAD: {type(error).__name__}: {error}"
    return {"outcome": report.outcome, "slowest": report.slowest, "operation": report.operation, "first": first}


class Summary:
    """Counts, extremes and failures."""

    def __init__(self, out: Path | None) -> None:
        self.out = out
        self.kinds: collections.Counter[str] = collections.Counter()
        self.errors: collections.Counter[str] = collections.Counter()
        self.failures: list[str] = []
        self.slowest: list[tuple[float, str]] = []
        self.largest: list[tuple[int, str]] = []

    def add(self, seed: int, source: Source, result: dict[str, Any]) -> None:
        """Count one grammar."""
        outcome = str(result["outcome"])
        self.kinds[source[0]] += 1
        self.errors[re.sub(r"'[^']*'|\"[^\"]*\"|\d+|g(:\d+)+", "…", outcome)[:90]] += 1
        total = max(result["checked"] + result.get("first", 0.0), result.get("slowest", 0.0))
        memory = result["memory"]
        what = f"seed {seed}, {source[0]}, {result.get('operation', 'check')}: {outcome[:100]}"
        self.slowest = sorted([*self.slowest, (total, what)], reverse=True)[:5]
        self.largest = sorted([*self.largest, (memory, what)], reverse=True)[:5]
        if outcome.startswith(("BAD", "CRASH", "HANG")) or total > SECONDS or memory > MEMORY:
            self.failures.append(f"{what} ({total:.2f} s, {memory} MB)")
            if self.out is not None:
                self.out.mkdir(parents=True, exist_ok=True)
                (self.out / f"{seed}.{source[0]}").write_text(source[1], "utf-8", "surrogatepass")

    def text(self, seconds: float) -> str:
        """The summary to print."""
        lines = [f"{self.kinds.total()} grammars in {seconds:.0f} s: {dict(self.kinds)}"]
        lines += [f"{count:6}  {error}" for error, count in self.errors.most_common(60)]
        lines += [f"slowest {taken:6.2f} s   {what}" for taken, what in self.slowest]
        lines += [f"largest {size:6} MB  {what}" for size, what in self.largest]
        lines += [f"FAILED  {failure}" for failure in self.failures]
        lines.append(f"{len(self.failures)} failed (crash, hang, contradiction, > {SECONDS:g} s or > {MEMORY} MB)")
        return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
