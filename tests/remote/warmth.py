"""``python -m tests.remote.warmth``: what a llama-server reads of a prompt with every key, by how the prompt is put.

A line is typed key by key into a file of this project; after every key a completion is asked for. Printed are tokens
of the prompt that the server decoded for a completion (``timings.prompt_n``), the first one left out, and what a
completion took.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from codespec import Completer, Config, Request
from codespec.models.registry import EMBEDDED_TARGET
from codespec.remote.address import Address
from codespec.remote.connection import Connection
from codespec.remote.streaming.streaming_engine import StreamingEngine
from tests.remote.real_llama_server import running

ROOT = Path(__file__).parents[2]
CONFIG = replace(Config(), max_tokens=8, time_budget_ms=0, grammar="none", gate="off")
WAYS = {"tokens, spm": ("ids", "spm"), "tokens, psm": ("ids", "psm"), "/infill": ("fields", "auto")}


def typed(path: Path, line: int, keys: int) -> list[Request]:
    """A request for every key of the text from a line's start on."""
    text = path.read_text("utf-8")
    lines = text.splitlines(keepends=True)
    start = sum(map(len, lines[:line]))
    rest = text[start + keys :]
    rest = rest[rest.find("\n") :]
    return [
        Request(text[: start + end] + rest, start + end, "python", path.name)
        for end in range(keys + 1)
        if end == keys or text[start + end] != "\n"
    ]


def measure(url: str, way: str, order: str, requests: Sequence[Request]) -> tuple[list[int], list[float]]:
    """Tokens read and milliseconds for each request but the first."""
    vocabulary = EMBEDDED_TARGET if way == "ids" else None
    engine = StreamingEngine(Connection(Address(url)), "llama-server", vocabulary=vocabulary)
    completer = Completer(engine, replace(CONFIG, target=replace(CONFIG.target, fim=order)))
    read, took = [], []
    for request in requests:
        began = time.perf_counter()
        completer.complete(request)
        took.append((time.perf_counter() - began) * 1e3)
        read.append(engine.statistics.prefill_tokens)
    engine.close()
    return read[1:], took[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", type=Path, default=ROOT / "codespec/completion/completer.py")
    parser.add_argument("--line", type=int, default=120)
    parser.add_argument("--keys", type=int, default=120)
    options = parser.parse_args()
    requests = typed(options.file, options.line, options.keys)
    for name, (way, order) in WAYS.items():
        with running() as server:
            read, took = measure(server.url, way, order, requests)
        print(
            f"{name:12} {len(read)} keys: {statistics.mean(read):6.1f} tokens read on average, "
            f"median {statistics.median(read):.0f}, most {max(read)}; {statistics.median(took):.0f} ms a completion"
        )


if __name__ == "__main__":
    main()
