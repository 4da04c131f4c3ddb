"""Fetches a model for the user, in a process of its own, with a progress bar by which it can be cancelled."""

from __future__ import annotations

import asyncio

from pygls.lsp.server import LanguageServer

from codespec.lsp.child import run
from codespec.lsp.messages import Messages
from codespec.lsp.progress import Progress
from codespec.lsp.tasks import Tasks
from codespec.models.catalogue import known_model
from codespec.protocols import CodespecError


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

        def show(step: str, share: float) -> None:
            if not step.startswith("checking "):
                progress.report(step if step.startswith("comparing ") else f"fetching {name}", int(100 * share))

        said = name
        known = known_model(name)
        try:
            for each in (name, *([known.draft] if known is not None and known.draft else [])):
                self._task = asyncio.ensure_future(run("models", "pull", each, progress=show))
                await asyncio.wait((self._task,))
                if self._task.cancelled():
                    said = "cancelled"
                    return False
                self._task.result()
            if use:
                await run("models", "use", name, "--as", "target")
        except CodespecError as error:
            said = "failed"
            self._messages.failure(error)
            return False
        except (OSError, ValueError) as error:
            said = "failed"
            self._messages.failure(CodespecError(f"{name} cannot be fetched: {error}"))
            return False
        finally:
            self._task = None
            progress.end(said)
        self._messages.log(f"{name} is the target now" if use else f"{name} is there")
        return True

    def cancel(self) -> bool:
        """Stop the fetching; whether there was any."""
        return self._task is not None and self._task.cancel()


def suggested(found: dict[str, object]) -> list[dict[str, object]]:
    """What ``models suggest --json`` says of models that fit this machine, the one that suits it best first."""
    best, models = found["best"], found["models"]
    assert isinstance(models, list)
    own = [each for each in models if each["fits"]]
    first = best["model"] if isinstance(best, dict) else ""
    return sorted(own, key=lambda each: (each["model"] != first, each["download"]))
