"""How far a benchmark is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic

Say = Callable[[str], None]

SELDOM_S = 30.0
"""Between lines of progress where standard error is no terminal."""


def progress() -> Say:
    """Says one line in place of the last on a terminal, and now and then a line elsewhere."""
    if sys.stderr.isatty():
        return lambda message: print(f"\r\033[K{message[:100]}", end="", file=sys.stderr, flush=True)
    latest = monotonic()

    def now_and_then(message: str) -> None:
        nonlocal latest
        if message and monotonic() - latest >= SELDOM_S:
            latest = monotonic()
            print(message, file=sys.stderr, flush=True)

    return now_and_then
