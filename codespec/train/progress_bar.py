"""Progress of a training step, in seconds of the time that it has."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

from tqdm import tqdm

TICK_S = 5.0
"""A step of the work may take minutes on a busy machine; meanwhile the bar moves with the clock."""

IN_A_FILE_S = 10.0
"""Between two lines where standard error is no terminal."""


class ProgressBar:
    """A bar on standard error."""

    def __init__(self, step: str, seconds: float) -> None:
        self._bar = tqdm(
            total=max(1, round(seconds)),
            desc=step,
            mininterval=0.1 if sys.stderr.isatty() else IN_A_FILE_S,
            bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}",
        )
        self._last = 0.0, time.monotonic()
        self._over = threading.Event()
        self._clock = threading.Thread(target=self._tick, name="progress", daemon=True)

    def __enter__(self) -> ProgressBar:
        self._clock.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._over.set()
        self._clock.join()
        self._bar.close()

    def at(self, seconds: float) -> None:
        """Show that so many seconds have passed."""
        self._last = seconds, time.monotonic()
        self._show(seconds)

    def _tick(self) -> None:
        while not self._over.wait(TICK_S):
            seconds, then = self._last
            self._show(seconds + time.monotonic() - then)

    def _show(self, seconds: float) -> None:
        self._bar.update(min(self._bar.total, round(seconds)) - self._bar.n)

    def note(self, text: str) -> None:
        """Show a text beside the bar."""
        self._bar.set_postfix_str(text, refresh=False)
