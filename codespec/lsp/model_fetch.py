"""Fetches a model for the user, in a process of its own, with a progress bar by which it can be cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

from pygls.lsp.server import LanguageServer

from codespec.lsp.child import run
from codespec.lsp.messages import Messages
from codespec.lsp.progress import Progress
from codespec.lsp.tasks import Tasks
from codespec.models.catalogue import known_model
from codespec.protocols import CodespecError

_COMPARING = 0.1
"""The part of the time that is shown for what comes after a download."""


class ModelFetch:
    """The fetching of a session; one model at a time."""

    def __init__(self, server: LanguageServer, messages: Messages, tasks: Tasks) -> None:
        self._server, self._messages, self._tasks = server, messages, tasks
        self._task: asyncio.Task[bytes] | None = None

    async def get(self, name: str, use: bool = True) -> bool:
        """Fetch a model and its draft, and make it the target in the user's settings where ``use`` says so;
        whether that was done.

        What fails is told to the user. What had come is kept, as after ``cancel``: the next call goes on from there.
        """
        if self._task is not None:
            self._messages.warn(f"{name} can be fetched when the model that is being fetched is there")
            return False
        progress = Progress(self._server, "codespec", self.cancel)
        self._tasks.start(progress.start())

        known = known_model(name)
        names = [name, known.draft] if known is not None and known.draft else [name]
        there = 0

        def show(step: str, share: float) -> None:
            compared = step.startswith("comparing ")
            what = f"{names[there]}: {step}" if compared else f"fetching {names[there]}"
            share = 1 - _COMPARING * (1 - share) if compared else (1 - _COMPARING) * share
            if not step.startswith("checking "):
                progress.report(what, int(100 * (there + share) / len(names)))

        said = name
        try:
            for there, each in enumerate(names):  # noqa: B007  # `show` reads it
                self._task = asyncio.ensure_future(run("models", "pull", each, progress=show))
                await asyncio.wait((self._task,))
                if self._task.cancelled():
                    said = "cancelled"
                    return False
                self._task.result()
            if use:
                await run("models", "use", name, "--as", "target")
        except (CodespecError, OSError, ValueError) as error:
            said = "failed"
            told = isinstance(error, CodespecError)
            self._messages.failure(error if told else CodespecError(f"{name} cannot be fetched: {error}"))
            return False
        finally:
            self._task = None
            progress.end(said)
        self._messages.log(f"{name} is the target now" if use else f"{name} is there")
        return True

    def cancel(self) -> bool:
        """Stop the fetching; whether there was any."""
        return self._task is not None and self._task.cancel()


def suggested(found: dict[str, Any]) -> list[dict[str, Any]]:
    """What ``models suggest --json`` says of models that fit this machine, the one that suits it best first."""
    best = found["best"]["model"] if found["best"] else ""
    fitting = (each for each in found["models"] if each["fits"])
    return sorted(fitting, key=lambda each: (each["model"] != best, each["download"]))
