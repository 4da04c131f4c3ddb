"""Chooses the number of threads of a forward pass: as many as other programs leave CPUs for, and gain something.

The threads of a forward pass wait for each other some hundred times. Where one of them shares its CPU with a compiler,
every such wait may last as long as the compiler's turn, and the pass takes several times what one thread less takes.
In a small model the waits alone may take longer than what another thread saves. Which number is fastest depends on the
machine, so now and then a pass tries another.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import psutil

LOOK_S = 0.12
"""Seconds between two looks at least: systems count in hundredths of a second."""
STALE_S = 1.0
"""After a longer time what was computed in it says little about now."""
_IDLE = 0.5  # CPUs that others use
FEW = 33
"""Tokens of the longest pass that verifies a proposal."""
_TRIES, _SOON, _SELDOM = 5, 4, 512  # passes that try another number before it is judged, and passes between them
_GAIN, _MUCH, _MOST_MORE = 0.04, 0.25, 0.5  # logs of times: a number with which a pass takes much longer is given up


class CpuLoad:
    """The use by other programs of the CPUs that this process may run on. For one thread."""

    def __init__(self) -> None:
        self._cpus = own_cpus()
        self._then = self._now()
        self._latest = math.inf

    def others(self) -> float | None:
        """How many CPUs other programs kept busy since the last call, on average; None where that was too short ago.

        A pause of this process tells less. Where nothing else computed before it, None: what computed in the pause need
        not do so now. Else, and after a long pause, no more than want a CPU at this moment, where the system says so:
        what has ended does not count, nor does what has just begun, such as the program that asks.
        """
        seconds = perf_counter() - self._then[0]
        if seconds < LOOK_S:
            return None
        (then, idle, own), self._then = self._then, self._now()
        now, idle_now, own_now = self._then
        used = max(0.0, len(self._cpus) - (idle_now - idle + own_now - own) / (now - then))
        paused = own_now - own < seconds / 2
        if paused and seconds <= STALE_S and self._latest < _IDLE:
            return None
        self._latest = min(used, self._waiting()) if paused or seconds > STALE_S else used
        return self._latest

    def _now(self) -> tuple[float, float, float]:
        """Seconds of the clock, that the CPUs were idle, and that this process computed."""
        times = psutil.cpu_times(percpu=True)
        idle = sum(each.idle + getattr(each, "iowait", 0.0) for cpu, each in enumerate(times) if cpu in self._cpus)
        return perf_counter(), idle, process_time()

    def _waiting(self) -> float:
        try:
            running = int(Path("/proc/loadavg").read_text("ascii").split()[3].partition("/")[0])
        except (OSError, ValueError, IndexError):
            return math.inf
        return (running - 1) * len(self._cpus) / (os.cpu_count() or 1)


class Threads:
    """The number of threads of one context's forward passes.

    Passes over many tokens, a prefill, take as many as other programs leave CPUs for. Passes over a few take no more
    than that, and among numbers twice or half as large the fastest one: from time to time a pass tries another.

    Args:
        most: threads on an idle machine.
        cpus: that this process may run on.
        load: how many of them others keep busy: ``CpuLoad.others``.
        first: threads of passes over a few tokens before another number was tried.
    """

    def __init__(self, most: int, cpus: int, load: Callable[[], float | None], first: int) -> None:
        self._left = self._most = most
        self._best = first
        self._cpus, self._others = cpus, load
        self._usual: dict[int, list[float | None]] = {}  # log of seconds, by threads and tokens
        self._larger = True  # whether a larger number is tried, or a smaller one
        self._tried: list[float] = []  # how much longer passes with it took, as logs
        self._wait = self._often = _SOON  # passes until the next try, and between them

    def left(self) -> int:
        """As many as other programs leave CPUs for; takes 60 µs eight times a second, else next to nothing."""
        others = self._others()
        if others is not None:
            self._left = max(1, min(self._most, int(self._cpus - others + 0.5)))
        return self._left

    @property
    def usual(self) -> int:
        """Of passes over a few tokens that try nothing."""
        return min(self._best, self._left)

    def count(self, tokens: int) -> int:
        """Threads for the next forward pass, over so many tokens."""
        left = self.left()
        if tokens > FEW or left == 1:
            return left
        self._wait -= 1
        if self._wait > 0 or self._times()[tokens] is None:
            return self.usual
        number = 2 * self.usual if self._larger else self.usual // 2
        if 1 <= number <= left:
            return number
        self._larger = not self._larger
        return self.usual

    def took(self, tokens: int, threads: int, seconds: float) -> None:
        """A pass over so many tokens with ``count``'s number of threads took ``seconds``."""
        if tokens > FEW:
            return
        taken = math.log(max(seconds, 1e-7))
        times = self._times()
        known = times[tokens]
        if known is None:
            times[tokens] = taken
            return
        # What holds one pass up says little of the next.
        more = max(-_MOST_MORE, min(_MOST_MORE, taken - known))
        if threads == self.usual:
            times[tokens] = known + 0.2 * more
            return
        self._tried.append(more)
        if more < _MUCH and len(self._tried) < _TRIES:
            self._wait = _SOON
            return
        if more < _MUCH and sorted(self._tried)[_TRIES // 2] < -_GAIN:
            self._best, self._often = threads, _SOON
        else:
            self._larger, self._often = not self._larger, min(_SELDOM, 2 * self._often)
        self._tried.clear()
        self._wait = self._often

    def _times(self) -> list[float | None]:
        times = self._usual.get(self.usual)
        if times is None:
            times = self._usual[self.usual] = [None] * (FEW + 1)
        return times


def own_cpus() -> frozenset[int]:
    """Numbers of the CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))
