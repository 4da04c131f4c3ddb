"""How far a benchmark is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic

from codespec.cli.show import CLEAR_LINE
from codespec.terminal import printable, write_own

Say = Callable[[str], None]

SELDOM_S = 30.0
"""Between lines of progress where standard error is no terminal."""


def progress() -> Say:
    """Says one line in place of the last on a terminal, and now and then a line elsewhere."""
    if sys.stderr.isatty():
        return lambda message: write_own(f"{CLEAR_LINE}{printable(message[:100])}", sys.stderr)
    latest = monotonic()

    def now_and_then(message: str) -> None:
        nonlocal latest
        if message and monotonic() - latest >= SELDOM_S:
            latest = monotonic()
            print(message, file=sys.stderr, flush=True)

    return now_and_then
