"""The model process gives way to other programs while nobody waits for what it computes.

A process of an ordinary user may lower its priority and has no way back, on Linux and macOS. But Linux gives each
session of processes (``setsid``) a share of the CPUs of its own, and the weight of that share may be lowered and raised
again (``/proc/PID/autogroup``, see ``sched(7)``); ``nice`` counts within a session only. On Windows a process may
change its priority class in both directions.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil

from codespec.llama.threads import CpuLoad, own_cpus

LOW = 15
"""The nice value of a session that nobody waits for: against one other program it gets 3 % of a CPU."""
BUSY = 0.5
"""CPUs that others use from which on the priority is lowered, and that must be free to work ahead without."""
_AGAIN_S = 0.01  # between two attempts; Linux lets an ordinary user change a session's share ten times a second

_SESSION, _SWITCH = Path("/proc/self/autogroup"), Path("/proc/sys/kernel/sched_autogroup_enabled")
_GROUPS = Path("/sys/fs/cgroup")

Change = Callable[[bool], None]
"""Lowers the priority, or with False makes it what it was; raises OSError where that is not possible just now."""


class Priority:
    """Of this process: low while it works ahead of what somebody asks for and other programs compute.

    Where that has no way back, nothing is done ahead while no CPU is free.

    Args:
        change: None where there is no way back.
        others: of ``cpus`` CPUs, how many others keep busy: ``CpuLoad.others``. Asked by one thread only.
    """

    def __init__(self, change: Change | None, cpus: int, others: Callable[[], float | None]) -> None:
        self._change, self._cpus, self._others = change, cpus, others
        self._load = 0.0
        self._low = False
        self._wanted = threading.Condition()
        self._raising = False

    def may_work_ahead(self) -> bool:
        """Whether there is a CPU for what nobody waits for; from then on the priority is low, if others compute. From
        the one thread that computes."""
        with contextlib.suppress(OSError, RuntimeError, ValueError, psutil.Error):  # no file is to be had just now
            others = self._others()
            self._load = self._load if others is None else others
        if self._change is None:
            return self._load <= self._cpus - BUSY
        if self._load >= BUSY:
            self._lower()
        return True

    def somebody_waits(self) -> None:
        """What is computed from now on is waited for; from any thread. Takes 0.1 ms after ``may_work_ahead``, else
        nothing."""
        with self._wanted:
            if self._low and not self._raising and not self._raise():
                raises = threading.Thread(target=self._keep_raising, name="priority", daemon=True)
                with contextlib.suppress(RuntimeError):  # no thread is to be had: who waits next tries again
                    raises.start()
                    self._raising = True

    def _lower(self) -> None:
        assert self._change is not None
        with self._wanted, contextlib.suppress(OSError):
            if not self._low and not self._raising:
                self._change(True)
                self._low = True

    def _raise(self) -> bool:
        """Lock held."""
        assert self._change is not None
        try:
            self._change(False)
        except OSError:
            return False
        self._low = False
        return True

    def _keep_raising(self) -> None:
        with self._wanted:
            while not self._raise():
                self._wanted.wait(_AGAIN_S)
            self._raising = False


def own_priority() -> Priority:
    """What lowers and raises the priority of this process by the load of the others."""
    return Priority(_way_to_change(), len(own_cpus()), CpuLoad().others)


def raise_priority_of(process: int) -> None:
    """Give a model process of this user the usual priority: at the low one, beside busy programs, it may have too
    little time to raise it itself."""
    with contextlib.suppress(OSError, psutil.Error):
        if sys.platform == "win32":
            psutil.Process(process).nice(psutil.NORMAL_PRIORITY_CLASS)
        elif os.getsid(process) == process:
            _write_nice(Path(f"/proc/{process}/autogroup"), 0)


def _way_to_change() -> Change | None:
    if sys.platform == "win32":
        return _change_class
    usual = _nice_of_session()
    return partial(_change_session, usual) if usual is not None and usual < LOW else None


def _change_class(low: bool) -> None:
    if sys.platform == "win32":
        try:
            psutil.Process().nice(psutil.BELOW_NORMAL_PRIORITY_CLASS if low else psutil.NORMAL_PRIORITY_CLASS)
        except psutil.Error as error:
            raise OSError(str(error)) from error


def _change_session(usual: int, low: bool) -> None:
    _write_nice(_SESSION, LOW if low else usual)


def _write_nice(session: Path, nice: int) -> None:
    handle = os.open(session, os.O_WRONLY)
    try:
        os.write(handle, str(nice).encode())
    finally:
        os.close(handle)


def _nice_of_session() -> int | None:
    """What stands for this session of processes; None where nothing does, or other programs are in it."""
    try:
        if os.getsid(0) != os.getpid() or _SWITCH.read_text("ascii").strip() != "1" or _is_grouped():
            return None
        return int(_SESSION.read_text("ascii").rpartition(" ")[2])
    except (OSError, ValueError):
        return None


def _is_grouped() -> bool:
    """Whether a control group has the CPUs, which are then not shared by sessions."""
    for line in Path("/proc/self/cgroup").read_text("utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        folder = _GROUPS / path.lstrip("/")
        if "cpu" in controllers.split(",") and path != "/":
            return True
        if not controllers and any((each / "cpu.weight").exists() for each in (folder, *folder.parents)):
            return True
    return False
