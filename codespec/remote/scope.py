"""A part of the event loop's work that another thread can stop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import anyio

from codespec.protocols import Aborted

T = TypeVar("T")


class Scope:
    """Stops a request so that its connection is given back.

    httpx cleans up behind its shields of anyio, which only anyio's own cancellation heeds: where a task is cancelled by
    asyncio while it closes a response, the connection counts as in use for ever, and soon there is none left.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._scope: anyio.CancelScope | None = None
        self._stopped = False

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work; once, in the loop.

        Raises:
            Aborted: it was stopped.
        """
        with anyio.CancelScope() as self._scope:
            if self._stopped:
                self._scope.cancel()
            return await work
        raise Aborted

    def stop(self) -> None:
        """Stop the work, begun or not, soon; from any thread. Nothing where it is done."""
        with suppress(RuntimeError):  # the loop is closed, and with it the work
            self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        self._stopped = True
        if self._scope is not None:
            self._scope.cancel()
