"""Notices a model process that has hung, and kills it, so that another one can take its place."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

from codespec.daemon.address import endpoint
from codespec.daemon.start import TooSlow, connect, end_hung, raise_priority

SLOW_S = 1.5
"""Seconds of silence after which the process gets the usual priority: while it works ahead, on a busy machine, it has
little time to send a message."""
WARN_S = 2.5
"""Seconds of silence after which the user is told; the process sends a message every ``wire.BEAT_S``."""
_DEAD_S = 5.0  # of silence, after which it is asked in another way
_STEP_S = 0.25


class Watchdog:
    """Watches one connection until it is closed. Begins with the first message.

    Args:
        warn: called once for each silence.
    """

    def __init__(self, warn: Callable[[], None]) -> None:
        self._warn = warn
        self._heard: float | None = None
        self._warned = self._raised = False
        self._over = threading.Event()

    @property
    def silent(self) -> bool:
        """Whether the process has been silent for so long that the user was told."""
        return self._warned

    def heard(self) -> None:
        """Note a message of the process."""
        begin = self._heard is None
        self._heard = time.monotonic()
        self._warned = self._raised = False
        if begin:
            threading.Thread(target=self._run, name="watch", daemon=True).start()

    def close(self) -> None:
        """End the watching thread within one of its steps; a second call does nothing."""
        self._over.set()

    def _run(self) -> None:
        while not self._over.wait(_STEP_S):
            assert self._heard is not None
            silence = time.monotonic() - self._heard
            if silence > SLOW_S and not self._raised:
                self._raised = True
                with contextlib.suppress(OSError):
                    raise_priority(endpoint())
            if silence > WARN_S and not self._warned:
                self._warned = True
                self._warn()
            if silence > _DEAD_S:
                self._ask()

    def _ask(self) -> None:
        """Kill the process if it answers no new connection either: after sleep of the computer it does answer."""
        try:
            where = endpoint()
            connect(where).close()
            self._heard = time.monotonic()  # asked again only after another while
        except TooSlow:
            end_hung(where)
        except (OSError, EOFError):  # it has ended meanwhile
            pass
