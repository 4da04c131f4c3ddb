"""A progress bar in the editor, for clients that have one."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from concurrent.futures import Future

from lsprotocol import types
from pygls.lsp.server import LanguageServer

logger = logging.getLogger(__name__)

_STEP_PERCENT = 5


class Progress:
    """The progress bar of one piece of work; where the client has none every method does nothing.

    Args:
        cancel: called when the user cancels the work; None: it cannot be cancelled.
    """

    def __init__(self, server: LanguageServer, title: str, cancel: Callable[[], object] | None = None) -> None:
        self._server = server
        self._title = title
        self._cancel = cancel
        self._token = str(uuid.uuid4())
        self._latest = types.WorkDoneProgressReport(message="", percentage=0)
        self._sent = self._latest
        self._shown = False
        self._ended = False

    async def start(self) -> None:
        """Ask the client for the bar and show it. The work need not wait for this."""
        window = self._server.client_capabilities.window
        if window is None or not window.work_done_progress:
            return
        try:
            params = types.WorkDoneProgressCreateParams(token=self._token)
            await self._server.window_work_done_progress_create_async(params)
        except Exception as error:
            logger.info("the client refused a progress bar: %s", error)
            return
        if self._ended:
            return
        self._let_cancel()
        self._shown = True
        self._sent = self._latest
        self._send(
            types.WorkDoneProgressBegin(
                title=self._title,
                cancellable=self._cancel is not None,
                message=self._latest.message,
                percentage=self._latest.percentage,
            )
        )

    def report(self, message: str, percent: int) -> None:
        """Show how far the work is."""
        # The protocol wants percentages that never go down.
        percent = max(min(percent, 100), self._latest.percentage or 0)
        self._latest = types.WorkDoneProgressReport(message=message, percentage=percent)
        # A library that reports every percent within a tenth of a second would only flood the client.
        news = message != self._sent.message or percent >= (self._sent.percentage or 0) + _STEP_PERCENT
        if self._shown and not self._ended and news:
            self._sent = self._latest
            self._send(self._latest)

    def end(self, message: str) -> None:
        """Remove the bar: the work is over."""
        if self._shown and not self._ended:
            self._send(types.WorkDoneProgressEnd(message=message))
        self._server.protocol.progress.tokens.pop(self._token, None)
        self._ended = True

    def _let_cancel(self) -> None:
        """pygls cancels the future of a token that the client names."""
        cancel = self._cancel
        if cancel is not None:
            future: Future[None] = Future()
            future.add_done_callback(lambda _: cancel())
            self._server.protocol.progress.tokens[self._token] = future

    def _send(
        self, value: types.WorkDoneProgressBegin | types.WorkDoneProgressReport | types.WorkDoneProgressEnd
    ) -> None:
        self._server.progress(types.ProgressParams(token=self._token, value=value))
