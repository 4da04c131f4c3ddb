"""Has models loaded, with a progress bar in the editor."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from pygls.lsp.server import LanguageServer

from codespec.daemon.client import ModelClient
from codespec.lsp.messages import Messages
from codespec.lsp.progress import Progress
from codespec.lsp.settings import needs_reload
from codespec.lsp.tasks import Tasks

if TYPE_CHECKING:
    from codespec.config import Config


class ModelLoader:
    """Has models loaded when the settings name others than those that are loaded.

    Args:
        loaded: called once loading has ended, successfully or not.
    """

    def __init__(
        self,
        server: LanguageServer,
        models: ModelClient,
        messages: Messages,
        tasks: Tasks,
        loaded: Callable[[], None],
    ) -> None:
        self._server, self._models = server, models
        self._messages, self._tasks, self._loaded = messages, tasks, loaded
        self._in_use: Config | None = None
        self._progress: Progress | None = None

    def use(self, config: Config, again: bool = False) -> None:
        """Follow these settings.

        Args:
            again: load the models even where a change does not concern them.
        """
        if again or self._in_use is None or needs_reload(self._in_use, config):
            self._load(config)
        self._in_use = config

    def _load(self, config: Config) -> None:
        loop = self._messages.loading()
        if self._progress is not None:
            self._progress.end("replaced")
        self._progress = progress = Progress(self._server, "codespec")
        progress.report("loading the model", 0)
        self._tasks.start(progress.start())

        def report(text: str, percent: int) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the session is over
                loop.call_soon_threadsafe(progress.report, text, percent)

        def done(error: Exception | None) -> None:
            progress.end("failed" if error else "ready")
            self._loaded()
            if error is not None:
                self._messages.failure(error)
            else:
                self._messages.log("the model is loaded")

        self._models.load(config, report, done)
