"""Sends changes of the status to the client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

NOTIFICATION = "codespec/status"
"""The notification with a part of the status."""

EVERY_S = 0.5
"""Seconds between two notifications at least."""

_TOLD = (
    "state",
    "target",
    "draft",
    "drafts",
    "grammar",
    "language",
    "acceptance",
    "tokens_per_second",
    "from_memory_share",
    "reading",
    "nothing",
    "edits_mode",
)


class StatusReporter:
    """Sends ``codespec/status`` when its content has changed, twice a second at most.

    Args:
        status: returns the whole status; called in a thread of its own, and again where it is ``stale`` or ``busy``.
        notify: sends a notification.

    Attributes:
        enabled: whether anything is sent.
    """

    def __init__(self, status: Callable[[], dict[str, Any]], notify: Callable[[str, Any], None]) -> None:
        self._status, self._notify = status, notify
        self.enabled = True
        self._sent: dict[str, Any] | None = None
        self._pending: asyncio.Task[None] | None = None
        self._again = False

    def touch(self) -> None:
        """Note that the status may have changed."""
        if not self.enabled:
            return
        if self._pending is None:
            self._pending = asyncio.create_task(self._report())
        else:
            self._again = True

    async def _report(self) -> None:
        try:
            while True:
                self._again = False
                status = await asyncio.to_thread(self._status)
                told = {key: status.get(key) for key in _TOLD}
                if told != self._sent:
                    self._sent = told
                    self._notify(NOTIFICATION, told)
                await asyncio.sleep(EVERY_S)
                if not (self._again or status.get("stale") or status.get("state") == "busy"):
                    break
        except OSError:
            pass  # the client is gone
        finally:
            self._pending = None
