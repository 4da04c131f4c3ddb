"""``python -m tests.swap``: going back and forth between a Python and a Go file; how long until the draft has changed?

Once with drafts that stay loaded and once with memory for one alone, so that each switch loads it anew.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from lsprotocol import types

from .helpers import Server, running

SERVE = [sys.executable, "-m", "codespec", "serve"]
TEXTS = {
    "python": ("file:///swap/one.py", "def add_{0}(first, second):\n    return first"),
    "go": ("file:///swap/two.go", "package main\n\nfunc add{0}(first int, second int) int {{\n\treturn first"),
}
WITHIN_S = 10.0


class Switcher:
    """Asks for completions in two files by turns.

    Attributes:
        first_ms, later_ms: from a request to its answer: the first after a switch, and others.
        changed_ms: from the first request after a switch until the draft is the file's own.
        unanswered: requests without an answer.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._number = 0
        self._version = 1
        self.first_ms: list[float] = []
        self.later_ms: list[float] = []
        self.changed_ms: list[float] = []
        self.unanswered = 0

    async def warm_up(self) -> None:
        """Open both files and complete in each until its own draft is in use."""
        for language, (uri, text) in TEXTS.items():
            self._server.open(text.format(0), uri, language)
            await self._until_own(language)
        for kept in (self.first_ms, self.later_ms, self.changed_ms):
            kept.clear()

    async def switch(self, language: str) -> None:
        """Go to the file of this language."""
        await self._until_own(language)
        for _ in range(3):
            self.later_ms.append(await self._ask(language))

    async def _until_own(self, language: str) -> None:
        began = time.perf_counter()
        self.first_ms.append(await self._ask(language))
        while (await self._draft()) != f"draft-{language}":
            if time.perf_counter() - began > WITHIN_S:
                raise SystemExit(f"{language}: the draft is {await self._draft()}")
            await self._ask(language)
        self.changed_ms.append(1e3 * (time.perf_counter() - began))

    async def _ask(self, language: str) -> float:
        """Milliseconds to an answer at a place where there was none before."""
        uri, text = TEXTS[language]
        self._number, self._version = self._number + 1, self._version + 1
        text = text.format(self._number)
        self._server.change(types.TextDocumentContentChangeWholeDocument(text), uri, self._version)
        lines = text.split("\n")
        began = time.perf_counter()
        answer = await self._server.ask(len(lines) - 1, len(lines[-1]), uri, invoked=True)
        self.unanswered += answer is None
        return 1e3 * (time.perf_counter() - began)

    async def _draft(self) -> str:
        params = types.ExecuteCommandParams("codespec.status", [])
        status: Any = await self._server.client.workspace_execute_command_async(params)
        return Path(str(status["draft_in_use"])).stem


async def swap(switches: int, options: dict[str, Any]) -> Switcher:
    """Switch that often, with a server of its own."""
    with tempfile.TemporaryDirectory(prefix="codespec-swap-", ignore_cleanup_errors=True) as folder:
        async with running(Path(folder), SERVE, options=options) as server:
            switcher = Switcher(server)
            await switcher.warm_up()
            for number in range(switches):
                await switcher.switch(("python", "go")[number % 2])
    return switcher


def main() -> int:
    """Print both cases."""
    parser = argparse.ArgumentParser(prog="python -m tests.swap", description=__doc__)
    parser.add_argument("--switches", type=int, default=40)
    chosen = parser.parse_args()
    unanswered = 0
    for name, options in (("loaded", {}), ("not loaded", {"draft_memory_mib": 0})):
        found = asyncio.run(swap(chosen.switches, {"max_tokens": 8, **options}))
        unanswered += found.unanswered
        print(
            f"{name}: own draft in use after {median(found.changed_ms):.0f} ms (at most {max(found.changed_ms):.0f}); "
            f"first answer {median(found.first_ms):.0f} ms, later ones {median(found.later_ms):.0f} ms; "
            f"{len(found.changed_ms)} switches, {found.unanswered} requests unanswered"
        )
    return 1 if unanswered else 0
