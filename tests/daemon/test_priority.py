"""What the model process leaves to other programs while nobody waits for it."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codespec.daemon.priority import LOW, Priority, _is_grouped
from codespec.worker.decode_thread import DecodeThread
from tests.daemon.windows import LONG, InThread, begun, eventually, process_of, request, window
from tests.decode_gate import WAIT_S, Gate, Idler, submit

SESSION = Path("/proc/self/autogroup")
SHARED_BY_SESSIONS = (
    Path("/proc/sys/kernel/sched_autogroup_enabled").exists()
    and Path("/proc/sys/kernel/sched_autogroup_enabled").read_text() == "1\n"
    and not _is_grouped()
)
by_sessions = pytest.mark.skipif(not SHARED_BY_SESSIONS, reason="the CPUs are not shared by sessions here")


class Recorder:
    """Changes of a priority, refused as often as the test says."""

    def __init__(self, refuse: int = 0) -> None:
        self.changes: list[bool] = []
        self.refuse = refuse

    def __call__(self, low: bool) -> None:
        if not low and self.refuse:
            self.refuse -= 1
            raise BlockingIOError
        self.changes.append(low)


def test_it_is_lowered_beside_others_only_and_raised_for_who_waits():
    change, others = Recorder(), iter([0.0, 1.0, None, 1.0])
    priority = Priority(change, 2, lambda: next(others))
    assert priority.may_work_ahead()
    priority.somebody_waits()
    assert change.changes == []
    assert [priority.may_work_ahead(), priority.may_work_ahead()] == [True, True]
    assert change.changes == [True]
    priority.somebody_waits()
    priority.somebody_waits()
    assert change.changes == [True, False]
    priority.may_work_ahead()
    assert change.changes == [True, False, True]


def test_where_it_cannot_be_raised_at_once_it_is_as_soon_as_that_is_possible():
    change = Recorder(refuse=3)
    priority = Priority(change, 2, lambda: 2.0)
    priority.may_work_ahead()
    priority.somebody_waits()
    priority.somebody_waits()
    assert change.changes == [True]
    assert eventually(lambda: change.changes == [True, False])
    priority.may_work_ahead()
    assert change.changes == [True, False, True]


@pytest.mark.parametrize(("others", "may"), [(0.0, True), (1.0, True), (1.8, False), (2.0, False)])
def test_without_a_way_back_nothing_is_done_ahead_while_no_cpu_is_free(others, may):
    assert Priority(None, 2, lambda: others).may_work_ahead() is may


class Told:
    """A priority that says what a test says, and notes what it is told."""

    def __init__(self) -> None:
        self.may = True
        self.calls: list[str] = []

    def may_work_ahead(self) -> bool:
        self.calls.append("ahead")
        return self.may

    def somebody_waits(self) -> None:
        self.calls.append("waits")


@pytest.fixture
def told():
    return Told()


@contextlib.contextmanager
def thread_of(worker, told, idle_s=0.01):
    decode = DecodeThread(worker, idle_s=idle_s, priority=told)
    try:
        yield decode
    finally:
        assert decode.close(WAIT_S)


def test_the_decode_thread_says_when_somebody_waits(told):
    gate = Gate()
    with thread_of(gate, told, idle_s=600) as thread:
        before = submit(thread, "a", "a1", ahead=True)
        assert gate.begun.acquire(timeout=WAIT_S)
        assert told.calls == ["ahead"]
        thread.hasten(before)
        assert told.calls == ["ahead", "waits"]
        gate.through.release()
        assert before.future.result(WAIT_S) == ["a1 done"]
        submit(thread, "a", "a2")
        assert told.calls[2:] == ["waits"]
        gate.through.release()


def test_what_nobody_waits_for_is_left_alone_where_that_is_better(told):
    completer = Idler(steps=3)
    told.may = False
    with thread_of(completer, told) as thread:
        assert submit(thread, "a", "a1", ahead=True).future.result(WAIT_S) is None
        assert completer.order == []
        completer.through.release()
        assert submit(thread, "a", "a2").future.result(WAIT_S) == ["a2 done"]
        assert not completer.idling.acquire(timeout=0.2)
        told.may = True
        assert completer.finished.wait(WAIT_S), "and done when there is room"


def test_the_next_request_is_received_at_the_usual_priority(told):
    completer = Idler(steps=1)
    completer.through.release()
    with thread_of(completer, told):
        assert completer.finished.wait(WAIT_S)
        assert eventually(lambda: told.calls[-1] == "waits")
        assert "ahead" in told.calls


def test_a_job_that_somebody_has_come_to_wait_for_is_no_longer_stopped_by_others(told):
    gate = Gate()
    with thread_of(gate, told) as thread:
        before = submit(thread, "a", "a1", ahead=True)
        assert gate.begun.acquire(timeout=WAIT_S)
        thread.hasten(before)
        assert told.calls[-1] == "waits"
        submit(thread, "b", "b1")
        gate.through.release()
        assert before.future.result(WAIT_S) == ["a1 done"]
        gate.through.release()


CHILD = f"""
import os, time
from pathlib import Path
from codespec.daemon.priority import LOW, Priority, _way_to_change
state = Path("{SESSION}")
nice = lambda: int(state.read_text().rpartition(" ")[2])
priority = Priority(_way_to_change(), 2, lambda: 1.0)
for _ in range(3):  # more often than the system lets an ordinary user change it
    end = time.monotonic() + 5
    while nice() != LOW and time.monotonic() < end:
        assert priority.may_work_ahead()
        time.sleep(0.01)
    assert nice() == LOW, state.read_text()
    priority.somebody_waits()
    while nice() and time.monotonic() < end:
        time.sleep(0.01)
    assert nice() == 0, state.read_text()
print("there and back")
"""


@by_sessions
def test_an_ordinary_user_may_lower_and_raise_it():
    ordinary = []
    if os.geteuid() == 0:
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("no setpriv")
        ordinary = [setpriv, "--bounding-set=-sys_admin,-sys_nice", "--inh-caps=-sys_admin,-sys_nice"]
    done = subprocess.run(
        [*ordinary, sys.executable, "-c", CHILD], capture_output=True, text=True, start_new_session=True
    )
    assert done.stdout == "there and back\n", done.stderr


@by_sessions
def test_other_programs_of_the_same_session_are_not_slowed_down():
    code = "from codespec.daemon.priority import _way_to_change; print(_way_to_change())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"


def nice_of(process: int) -> int:
    return int(Path(f"/proc/{process}/autogroup").read_text().rpartition(" ")[2])


@by_sessions
def test_the_model_process_gives_way_until_somebody_waits(kept):
    spin, numbers = [sys.executable, "-c", "while True: pass"], itertools.count()
    with window() as one:
        process = process_of(one)["pid"]
        assert one.complete(request())

        def is_low_ahead() -> bool:
            """Whether its priority is low at some time while it works ahead."""
            ahead = InThread(one, request(f"{LONG}x{next(numbers)} = ", ahead=True))
            while ahead.is_alive():
                if nice_of(process) == LOW:
                    return True
                time.sleep(0.01)
            return False

        others = [subprocess.Popen(spin) for _ in range(os.cpu_count() or 1)]
        try:
            assert eventually(is_low_ahead)
            assert one.complete(request("def f(", path="/work/b.py"))
            assert eventually(lambda: nice_of(process) == 0)
        finally:
            for each in others:
                each.kill()
                each.wait()


@by_sessions
def test_a_process_that_others_leave_no_time_is_raised_from_outside(kept):
    with window() as one:
        process = process_of(one)["pid"]
        assert one.complete(request())
        assert eventually(lambda: nice_of(process) == 0)
        Path(f"/proc/{process}/autogroup").write_text(str(LOW))
        os.kill(process, signal.SIGSTOP)
        try:
            assert eventually(lambda: nice_of(process) == 0)
        finally:
            os.kill(process, signal.SIGCONT)
        assert one.complete(request("def g(", path="/work/c.py"))


def test_what_somebody_has_come_to_wait_for_does_not_give_way_to_another_window(kept):
    with window() as first, window() as second:
        asking = request(LONG + "def ")
        what = {"document": "a", "key": "the place", "request": asking}
        ahead = InThread(first, lambda: first.ask("complete", ahead=True, **what))
        assert eventually(lambda: begun(first))
        asked = InThread(first, lambda: first.ask("complete", **what))
        assert eventually(lambda: not any(each.ahead for each in first.client._asked.values()))
        process_of(first)  # it has heard of it by then
        assert InThread(second, request()).wait()
        assert asked.wait()
        assert ahead.wait() is asked.wait()


def test_where_no_file_is_to_be_had_the_load_is_what_it_was():
    answers = iter([1.9, OSError(24, "Too many open files")])

    def others():
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    priority = Priority(None, 2, others)
    assert [priority.may_work_ahead(), priority.may_work_ahead()] == [False, False]
