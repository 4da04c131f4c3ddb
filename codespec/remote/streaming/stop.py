"""When a request is to end: by whoever asked, by another thread, or by the clock."""

from __future__ import annotations

import threading
from time import monotonic

from codespec.protocols import Cancel


class Stop:
    """A flag that another thread sets, that follows another flag, and that is set by itself when the time is over.

    Args:
        cancel: the flag of the request.
        budget_ms: from now on; None is no limit.
    """

    def __init__(self, cancel: Cancel | None = None, budget_ms: float | None = None) -> None:
        self._cancel = cancel
        self._asked = threading.Event()
        self._until = float("inf") if budget_ms is None else monotonic() + budget_ms / 1e3

    def set(self) -> None:
        """Ask for the stop; from any thread."""
        self._asked.set()

    def allow(self, ms: float) -> None:
        """From now on no more than this time."""
        self._until = min(self._until, monotonic() + ms / 1e3)

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked for it."""
        return self._asked.is_set() or (self._cancel is not None and self._cancel.is_set())

    def is_set(self) -> bool:
        """Whether to stop."""
        return self.cancelled or monotonic() >= self._until
