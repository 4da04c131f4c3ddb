"""Loads models in the decode thread, with a progress bar in the editor."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from pygls.lsp.server import LanguageServer

from codespec.lsp.messages import Messages
from codespec.lsp.progress import Progress
from codespec.lsp.settings import needs_reload
from codespec.lsp.tasks import Tasks
from codespec.worker.decode_thread import DecodeThread

if TYPE_CHECKING:
    from codespec.config import Config
    from codespec.worker.jobs import CompletesAndEdits

    Loader: TypeAlias = Callable[[Config, Callable[[str, int], None]], CompletesAndEdits]
    """Settings and a ``progress(message, percent)`` in, a completer out; blocks, and raises CodespecError."""


class ModelLoader:
    """Loads models when the settings name others than those that are loaded.

    Args:
        load: called in the decode thread.
        loaded: called in the event loop once ``load`` has ended, successfully or not.

    Attributes:
        end: ends the model process, if there is one.
    """

    def __init__(
        self,
        server: LanguageServer,
        decode: DecodeThread,
        load: Loader,
        messages: Messages,
        tasks: Tasks,
        loaded: Callable[[], None],
    ) -> None:
        self._server, self._decode, self._load_completer = server, decode, load
        self._messages, self._tasks, self._loaded = messages, tasks, loaded
        self._in_use: Config | None = None
        self._progress: Progress | None = None
        self.end: Callable[[], object] = lambda: None

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

        def post(function: Callable[..., None], *arguments: Any) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the session is over
                loop.call_soon_threadsafe(function, *arguments)

        def done(error: Exception | None) -> None:
            progress.end("failed" if error else "ready")
            self._loaded()
            if error is not None:
                self._messages.failure(error)
            else:
                self._messages.log("the model is loaded")

        load = partial(self._load_completer, config, partial(post, progress.report))
        self._decode.load(load, partial(post, done))
