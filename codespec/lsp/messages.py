"""Messages to the user: in the client's log, and in message boxes, each once."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from codespec.protocols import CodespecError
from codespec.terminal import printable_lines

logger = logging.getLogger(__name__)


class Messages:
    """Messages to one client. For the thread of the event loop, except ``warn``."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self._of_settings: list[str] = []
        self._failure = ""
        self._loop: asyncio.AbstractEventLoop | None = None

    def log(self, message: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Write to the client's log."""
        self._server.window_log_message(types.LogMessageParams(kind, printable_lines(message)))

    def show(self, message: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Show a message box."""
        self._server.window_show_message(types.ShowMessageParams(kind, f"codespec: {message}"))

    def settings(self, problems: list[str]) -> None:
        """Show all problems of the settings in one message, unless it was shown last time."""
        if problems and problems != self._of_settings:
            self.show("\n".join(problems), types.MessageType.Warning)
            for problem in problems:
                self.log(problem, types.MessageType.Warning)
        self._of_settings = problems

    def warn(self, message: str, show: bool = True) -> None:
        """Write to the client's log, and show it to the user; from any thread, once models are being loaded."""

        def say() -> None:
            self.log(message, types.MessageType.Warning)
            if show:
                self.show(message, types.MessageType.Warning)

        logger.warning("%s", message)
        with contextlib.suppress(RuntimeError):  # the loop is closed: the session is over
            if self._loop is not None:
                self._loop.call_soon_threadsafe(say)

    def failure(self, error: Exception, again: bool = False) -> None:
        """Show why there is nothing to offer; the same reason once in a row.

        Args:
            again: show it in any case: the user has asked by a key.
        """
        if not isinstance(error, CodespecError):
            logger.error("the model could not be loaded", exc_info=error)
        text = str(error) or type(error).__name__
        if text == self._failure and not again:
            return
        self._failure = text
        self.show(text, types.MessageType.Error)
        self.log(f"codespec: {text}", types.MessageType.Error)

    def loading(self) -> asyncio.AbstractEventLoop:
        """Note that models are being loaded: a later failure is shown again. Returns the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._failure = ""
        return self._loop
