"""Work that grows with a request: not in the event loop, in which everybody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")

SMALL = 32 << 10
"""Bytes that are handled sooner than another thread takes them over."""
_THREADS = 2
"""What they work on is in memory twice: more of them would not be faster, but take more."""


class Aside:
    """Threads for such work, the oldest first."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "http aside")

    async def run(self, size: int, work: Callable[[], Result]) -> Result:
        """What ``work`` gives, in this thread if it is about so few bytes that nobody notices.

        Raises:
            Exception: as ``work``.
        """
        if size <= SMALL:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Drop work that has not begun, and take no more; what runs goes on to its end."""
        self._threads.shutdown(wait=False, cancel_futures=True)
