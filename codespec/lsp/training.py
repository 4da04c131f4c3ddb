"""Trains a draft on accepted completions, in a process of its own at the lowest priority."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from pygls.lsp.server import LanguageServer

from codespec.child_progress import LEARNS, READS
from codespec.lsp.child import run
from codespec.lsp.messages import Messages
from codespec.lsp.progress import Progress
from codespec.lsp.tasks import Tasks
from codespec.protocols import CodespecError

MINUTES = 10.0
"""Minutes of a training, unless others are asked for."""
LONGEST = 24 * 60
"""The most minutes that may be asked for."""

_SPANS = {READS: (0, 30), LEARNS: (30, 90)}
"""Of the whole, in percent."""


class Training:
    """The training of a session; one at a time."""

    def __init__(self, server: LanguageServer, messages: Messages, tasks: Tasks) -> None:
        self._server, self._messages, self._tasks = server, messages, tasks
        self._task: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None

    def start(self, language: str, minutes: float, target: Path) -> bool:
        """Start a training; False where one runs already."""
        if self._task is not None and not self._task.done():
            return False
        self._task = asyncio.create_task(self._run(language, minutes, target))
        return True

    def cancel(self) -> bool:
        """Stop the running training; whether there was one."""
        return self._task is not None and self._task.cancel()

    def kill(self) -> None:
        """End the process at once: the session is over."""
        self.cancel()
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()

    def _started(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def _run(self, language: str, minutes: float, target: Path) -> None:
        progress = Progress(self._server, f"codespec: a draft for {language}", self.cancel)
        self._tasks.start(progress.start())

        def show(step: str, share: float) -> None:
            begin, end = _SPANS[step]
            progress.report(step, begin + int((end - begin) * share))

        arguments = ["--language", language, "--target", str(target), "--minutes", f"{minutes:g}"]
        # Half of the processors: what is decoded meanwhile has the others, and their caches, to itself.
        threads = {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // 2))}
        try:
            out = await run(
                "train", "draft", "--from-logs", *arguments,
                progress=show, started=self._started, aside=True, environment=threads,
            )  # fmt: skip
        except asyncio.CancelledError:
            progress.end("cancelled")
            self._messages.log("the training was cancelled")
        except (CodespecError, OSError) as error:
            progress.end("failed")
            self._messages.warn(str(error))
        else:
            said = out.decode("utf-8", "replace").strip().rpartition("\n")[2]
            progress.end(said)
            self._messages.log(said)
            self._messages.show(said)
