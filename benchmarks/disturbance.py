"""What other programs took of the machine while something was measured, and measuring again where it was much."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import TypeVar

import psutil

MOST = 0.1
"""Of a sample's time: a program waited for a CPU, or others used as much of one; above that, it is disturbed."""
TRIES = 3
"""Times that a sample is measured at most."""
_COUNTED_S = 0.5  # systems count the CPUs' times in hundredths of a second: shorter samples tell nothing

T = TypeVar("T")


@dataclass
class Disturbance:
    """Of all samples of a run.

    Attributes:
        samples: that were wanted.
        repeated: measurements that were thrown away because they were disturbed.
        left: samples that were disturbed the last time, too, and count all the same.
    """

    samples: int = 0
    repeated: int = 0
    left: int = 0

    def undisturbed(self, measure: Callable[[], T]) -> T:
        """What ``measure`` gives, once more where others took the CPU meanwhile, ``TRIES`` times at most."""
        self.samples += 1
        for attempt in range(TRIES):
            before = _Moment()
            found = measure()
            if _Moment().taken_since(before) <= MOST:
                return found
            if attempt < TRIES - 1:
                self.repeated += 1
        self.left += 1
        return found

    def as_json(self) -> dict[str, int]:
        """For a benchmark's file."""
        return {"samples": self.samples, "repeated": self.repeated, "left": self.left}

    def __str__(self) -> str:
        return (
            f"{self.samples} samples, {self.repeated} measured again because others computed, "
            f"{self.left} ({self.left / max(1, self.samples):.0%}) disturbed all the same"
        )


class _Moment:
    """A reading of clocks."""

    def __init__(self) -> None:
        self.now, self.waited = perf_counter(), _waited()
        times = psutil.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        # Time that a hypervisor gave to other machines (steal) is neither idle nor ours.
        self.free_or_ours = idle + _ours()

    def taken_since(self, before: _Moment) -> float:
        """Of the time since then, the share in which somebody waited for a CPU; where the system does not say that, how
        many CPUs others used."""
        seconds = self.now - before.now
        if self.waited is not None and before.waited is not None:
            return (self.waited - before.waited) / max(seconds, 1e-9)
        if seconds < _COUNTED_S:
            return 0.0
        return (psutil.cpu_count() or 1) - (self.free_or_ours - before.free_or_ours) / seconds


def _waited() -> float | None:
    """Seconds in which some program wanted a CPU and had none (Linux's pressure stall information)."""
    try:
        first = Path("/proc/pressure/cpu").read_text("ascii").split("\n")[0]
        return int(first.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError):
        return None


def _ours() -> float:
    """CPU time of this process, its children, and those that have ended."""
    process = psutil.Process()
    own = process.cpu_times()
    total = process_time() + own.children_user + own.children_system
    for child in process.children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.Error:  # it has just ended
            continue
        total += times.user + times.system
    return float(total)
