"""``python -m tests.lsp.first_text FOLDER --target NAME``: how long until the first ghost text in a new file?

A real server opens the folder as its workspace, a dozen of its files as open documents, and a new file of 25 lines,
in which it is asked at once. Prints seconds, the text, and the tokens of the prompt that were read before it.

With ``--from-start`` the clock starts with the server, which opens only the new file, and each run is told with the
memory of the language server and of the model process (resident, and without what they share with others). The first
start has nothing cached; the second finds what the first one left.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from lsprotocol import types

from codespec.models.registry import find_target

from .helpers import ROOT, running
from .soak import SERVE

BASKET = (ROOT / "examples/drafts/basket.py").read_text("utf-8")
NEW = BASKET[: BASKET.index("        return sum(")] + " " * 8
OPENED, SMALLEST, LARGEST = 12, 3_000, 30_000
LONGEST_S = 60.0
STATUS = types.ExecuteCommandParams("codespec.status", [])


async def first_text(folder: Path, target: str, settings: dict[str, Any]) -> tuple[float, str, int]:
    """Seconds until the text, the text, and how many tokens were read for it."""
    files = [each for each in sorted(folder.rglob("*.py")) if SMALLEST < each.stat().st_size < LARGEST][:OPENED]
    options = {"prefetch": True, "generate_ahead": True, "target": {"path": target}, **settings}
    with tempfile.TemporaryDirectory(prefix="codespec-first-", ignore_cleanup_errors=True) as home:
        async with running(Path(home), SERVE, options=options, folder=folder) as server:
            for each in files:
                server.open(each.read_text("utf-8", "replace"), each.as_uri())
            status: Any = server.client.workspace_execute_command_async
            while (before := await status(STATUS)).get("state") != "ready":
                await asyncio.sleep(0.1)
            await asyncio.sleep(1.5)  # for what is read at the start
            began = time.monotonic()
            uri = (folder / "new_basket.py").as_uri()
            server.open(NEW, uri)
            answer = await server.ask(NEW.count("\n"), len(NEW.rpartition("\n")[2]), uri)
            seconds = time.monotonic() - began
            read = (await status(STATUS))["prefill_tokens"] - before["prefill_tokens"]
    return seconds, answer.items[0].insert_text if answer and answer.items else "", read


async def from_start(home: Path, folder: Path, target: str, settings: dict[str, Any]) -> tuple[float, str, list[str]]:
    """Seconds from the server's start to the text, the text, and lines about the memory of its processes."""
    options = {"prefetch": True, "generate_ahead": True, **settings}
    own = home / "config/codespec/codespec.toml"  # as `codespec setup` writes it
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(f"[target]\npath = {json.dumps(target)}\n", "utf-8")
    began = time.monotonic()
    async with running(home, SERVE, options=options, folder=folder) as server:
        uri = (folder / "new_basket.py").as_uri()
        server.open(NEW, uri)
        answer = await server.ask(NEW.count("\n"), len(NEW.rpartition("\n")[2]), uri)
        while not (answer and answer.items):
            if time.monotonic() - began > LONGEST_S:
                raise SystemExit(f"no text after {LONGEST_S:g} s")
            await asyncio.sleep(0.02)
            answer = await server.ask(NEW.count("\n"), len(NEW.rpartition("\n")[2]), uri)
        seconds = time.monotonic() - began
        await asyncio.sleep(3)  # for what is done after the first answer
        memory = memory_by_process(str(home))
    return seconds, answer.items[0].insert_text, memory


def memory_by_process(mark: str) -> list[str]:
    """A line for each process whose environment holds ``mark``, largest first."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if any(mark in value for value in process.environ().values()):
                memory = process.memory_full_info()
                line = f"{memory.rss / 2**20:.0f} MB, own {memory.uss / 2**20:.0f}: {' '.join(process.cmdline()[1:5])}"
                found.append((memory.rss, line))
    return [line for _, line in sorted(found, reverse=True)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lsp.first_text", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="embedded")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--settings", type=json.loads, default={}, metavar="JSON", help="of the server")
    parser.add_argument("--from-start", action="store_true", help="count from the start of the server")
    chosen = parser.parse_args()
    target, folder, seconds = str(find_target(chosen.target)), chosen.folder.resolve(), []
    with tempfile.TemporaryDirectory(prefix="codespec-first-", ignore_cleanup_errors=True) as home:
        for _ in range(chosen.runs):
            if chosen.from_start:
                took, text, memory = asyncio.run(from_start(Path(home), folder, target, chosen.settings))
                print(f"{took:.2f} s from the start, {text!r}", *memory, sep="\n  ", flush=True)
            else:
                took, text, read = asyncio.run(first_text(folder, target, chosen.settings))
                print(f"{took:.2f} s, {read} tokens read, {text!r}", flush=True)
            seconds.append(took)
    print(f"median {statistics.median(seconds):.2f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
