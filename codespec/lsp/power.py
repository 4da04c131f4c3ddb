"""Whether the machine runs on its battery."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

import psutil

LOOK_S = 30.0
"""Seconds between two looks."""


class Power:
    """Looks now and then.

    Args:
        look: tells what the battery says, None without one; psutil does.
    """

    def __init__(self, look: Callable[[], Any] | None = None) -> None:
        found: Callable[[], Any] = getattr(psutil, "sensors_battery", lambda: None)  # not on every system
        self._look = look if look is not None else found
        self._until = 0.0
        self._on_battery = False

    def is_on_battery(self) -> bool:
        """Whether it does, half a minute ago at most; False where nobody knows."""
        if monotonic() >= self._until:
            self._until = monotonic() + LOOK_S
            try:
                battery = self._look()
            except (OSError, RuntimeError, psutil.Error):  # of odd firmware
                battery = None
            self._on_battery = battery is not None and battery.power_plugged is False
        return self._on_battery
