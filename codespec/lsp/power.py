"""Whether the machine has power to spare."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

import psutil

LOOK_S = 30.0
"""Seconds between two looks."""
OVERLOADED = 2.0
"""Programs for each core that want to run, over a minute, codespec among them."""


class Power:
    """Looks now and then.

    Args:
        look: tells what the battery says, None without one; psutil does.
        load: how many programs wanted to run in the last minute on average; psutil knows.
    """

    def __init__(
        self, look: Callable[[], Any] | None = None, load: Callable[[], float] = lambda: psutil.getloadavg()[0]
    ) -> None:
        found: Callable[[], Any] = getattr(psutil, "sensors_battery", lambda: None)  # not on every system
        self._look = look if look is not None else found
        self._load = load
        self._until = 0.0
        self._scarce = False

    def is_quiet(self, quiet: str) -> bool:
        """Whether to spare the processor: ``always``, ``never``, or ``auto``, by how it was half a minute ago."""
        return self._is_scarce() if quiet == "auto" else quiet == "always"

    def _is_scarce(self) -> bool:
        """Whether the machine runs on its battery or is overloaded; False where nobody knows."""
        if monotonic() >= self._until:
            self._until = monotonic() + LOOK_S
            try:
                battery = self._look()
                overloaded = self._load() > OVERLOADED * (psutil.cpu_count() or 1)
            except (OSError, RuntimeError, AttributeError, psutil.Error):  # of odd firmware and systems
                battery, overloaded = None, False
            self._scarce = overloaded or (battery is not None and battery.power_plugged is False)
        return self._scarce
