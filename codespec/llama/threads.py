"""Chooses the number of threads of a forward pass: as many as other programs leave CPUs for.

The threads of a forward pass wait for each other some hundred times. Where one of them shares its CPU with a compiler,
every such wait may last as long as the compiler's turn, and the pass takes several times what one thread less takes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import psutil

LOOK_S = 0.12
"""Seconds between two looks at least: systems count in hundredths of a second."""
STALE_S = 1.0
"""A longer time says nothing about now."""


class CpuLoad:
    """The use by other programs of the CPUs that this process may run on. For one thread."""

    def __init__(self) -> None:
        self._cpus = own_cpus()
        self._then = self._now()

    def others(self) -> float | None:
        """How many CPUs other programs kept busy since the last call, on average; None where that was too short ago, or
        cannot be told. After a longer pause, how many programs want a CPU at this moment, where the system says so."""
        seconds = perf_counter() - self._then[0]
        if seconds < LOOK_S:
            return None
        (then, idle, own), self._then = self._then, self._now()
        now, idle_now, own_now = self._then
        if seconds > STALE_S:
            return self._waiting()
        return max(0.0, len(self._cpus) - (idle_now - idle + own_now - own) / (now - then))

    def _now(self) -> tuple[float, float, float]:
        """Seconds of the clock, that the CPUs were idle, and that this process computed."""
        times = psutil.cpu_times(percpu=True)
        idle = sum(each.idle + getattr(each, "iowait", 0.0) for cpu, each in enumerate(times) if cpu in self._cpus)
        return perf_counter(), idle, process_time()

    def _waiting(self) -> float | None:
        try:
            running = int(Path("/proc/loadavg").read_text("ascii").split()[3].partition("/")[0])
        except (OSError, ValueError, IndexError):
            return None
        return (running - 1) * len(self._cpus) / (os.cpu_count() or 1)


class Threads:
    """Follows the load with the number of threads of one context.

    Args:
        most: threads on an idle machine.
        load: of ``cpus`` CPUs, how many others keep busy: ``CpuLoad.others``.
    """

    def __init__(self, most: int, cpus: int, load: Callable[[], float | None]) -> None:
        self._most = self._count = most
        self._cpus, self._others = cpus, load

    def count(self) -> int:
        """Threads for the next forward pass; takes 60 µs eight times a second, else next to nothing."""
        others = self._others()
        if others is not None:
            self._count = max(1, min(self._most, int(self._cpus - others + 0.5)))
        return self._count


def own_cpus() -> frozenset[int]:
    """Numbers of the CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))
