"""Memory: what was freed goes back to the system, where the C library would keep it; what stays is not looked through
for garbage."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from collections.abc import Iterator
from functools import cache
from time import monotonic
from typing import Any

EVERY_S = 60.0


@contextlib.contextmanager
def lasting() -> Iterator[None]:
    """For imports: what is made in the block stays, and the collector leaves it alone, then and later. Modules are a
    hundred thousand objects; looking through them again and again is a seventh of the time that they take to load."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


class Trimmer:
    """Trims the heap of this process now and then, which takes some milliseconds.

    glibc returns only the end of its heap to the system: one small block in use keeps all memory freed before it. With
    other C libraries there is nothing to do.
    """

    def __init__(self) -> None:
        self._last = monotonic()

    def trim(self) -> None:
        """Trim, unless that was done less than ``EVERY_S`` ago."""
        if monotonic() - self._last >= EVERY_S:
            self._last = monotonic()
            trim = _malloc_trim()
            if trim is not None:
                trim(0)


@cache
def _malloc_trim() -> Any:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library
            return ctypes.CDLL(None).malloc_trim
    return None
