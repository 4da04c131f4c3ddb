"""The decode thread, without a server around it."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import pytest

from codespec.daemon.priority import Priority
from codespec.worker.decode_thread import MOST_TASKS, DecodeThread
from codespec.worker.jobs import EDIT, OTHER_CLIENT, QUESTION
from tests.decode_gate import WAIT_S, Gate, Idler, submit


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture
def thread(gate):
    decode = DecodeThread(gate)
    yield decode
    assert decode.close(WAIT_S)
    assert gate.closed.is_set()


def test_documents_take_turns_and_a_newer_request_keeps_the_turn(thread, gate):
    jobs = [submit(thread, "a", "a1")]
    assert gate.begun.acquire(timeout=WAIT_S)
    jobs += [submit(thread, "b", "b1"), submit(thread, "c", "c1"), submit(thread, "b", "b2")]
    for _ in range(3):
        gate.through.release()
    assert [job.future.result(WAIT_S) for job in jobs] == [["a1 done"], None, ["c1 done"], ["b2 done"]]
    assert gate.order == ["a1", "b2", "c1"]
    assert gate.aborts == 0


def test_an_older_request_is_answered_before_it_has_stopped(thread, gate):
    older = submit(thread, "a", "a1")
    assert gate.begun.acquire(timeout=WAIT_S)
    newer = submit(thread, "a", "a2")
    assert older.future.result(timeout=0) is None
    assert gate.aborts == 1
    assert gate.begun.acquire(timeout=WAIT_S)
    gate.through.release()
    assert newer.future.result(WAIT_S) == ["a2 done"]


def test_what_is_stopped_while_it_reads_its_prompt_counts_as_reading(thread, gate):
    for gate.reading in (True, False, True):
        job = submit(thread, "a", "a1")
        assert gate.begun.acquire(timeout=WAIT_S)
        thread.cancel(job)
        assert submit(thread, "b", "b1") is not job
        assert gate.begun.acquire(timeout=WAIT_S)
        gate.through.release()
    status = thread.status()
    assert (status["stop_prefill_ms"]["count"], status["stop_decode_ms"]["count"]) == (2, 1)


def test_cancelling_a_job_that_is_done_does_not_abort_the_next(thread, gate):
    first = submit(thread, "a", "a1")
    gate.through.release()
    first.future.result(WAIT_S)
    second = submit(thread, "b", "b1")
    assert gate.begun.acquire(timeout=WAIT_S)
    assert gate.begun.acquire(timeout=WAIT_S)
    thread.cancel(first)
    gate.through.release()
    assert second.future.result(WAIT_S) == ["b1 done"]
    assert gate.aborts == 0


@contextlib.contextmanager
def eager(completer, idle_s=0.01):
    """A decode thread that soon has its worker use the time."""
    decode = DecodeThread(completer, idle_s)
    try:
        yield decode
    finally:
        assert decode.close(WAIT_S)


def test_idle_work_gives_way_to_a_request_and_goes_on():
    completer = Idler(steps=float("inf"))
    with eager(completer) as thread:
        for number in range(3):
            assert completer.idling.acquire(timeout=WAIT_S)
            job = submit(thread, "a", f"a{number}")
            completer.through.release()
            assert job.future.result(WAIT_S) == [f"a{number} done"]
            assert completer.aborts == number + 1, "a step that runs is aborted, the request is not"
        completer.steps = 3
        assert completer.finished.wait(WAIT_S)


def test_idle_work_that_is_done_is_not_asked_for_again_before_the_next_request():
    completer = Idler(steps=2)
    with eager(completer) as thread:
        assert completer.finished.wait(WAIT_S)
        assert completer.idling.acquire(timeout=WAIT_S)
        assert not completer.idling.acquire(timeout=0.1)
        completer.through.release()
        assert submit(thread, "a", "a1").future.result(WAIT_S) == ["a1 done"]
        assert completer.idling.acquire(timeout=WAIT_S)
        assert completer.aborts == 0


def test_idle_work_waits_until_nothing_has_happened_for_a_while():
    completer = Idler(steps=1)
    with eager(completer, idle_s=600) as thread:
        completer.through.release()
        assert submit(thread, "a", "a1").future.result(WAIT_S) == ["a1 done"]
        assert completer.calls == 0


def test_closing_stops_idle_work():
    completer = Idler(steps=float("inf"))
    with eager(completer):
        assert completer.idling.acquire(timeout=WAIT_S)
    assert completer.closed.is_set()


def test_idle_work_that_fails_costs_no_request(caplog):
    completer: Any = Idler(steps=0)
    completer.finished = None  # raises
    with eager(completer) as thread:
        assert completer.idling.acquire(timeout=WAIT_S)
        completer.through.release()
        assert submit(thread, "a", "a1").future.result(WAIT_S) == ["a1 done"]
        assert "while nobody waits" in caplog.text


def test_what_gives_way_is_stopped_by_a_request_and_waits_for_its_turn(thread, gate):
    first = submit(thread, "edits", "e1", gives_way=EDIT)
    assert gate.begun.acquire(timeout=WAIT_S)
    completion = submit(thread, "a", "a1")
    assert first.future.result(timeout=0) is None
    assert gate.begun.acquire(timeout=WAIT_S)
    again, other = submit(thread, "edits", "e2", gives_way=EDIT), submit(thread, "b", "b1")
    for _ in range(3):
        gate.through.release()
    assert [job.future.result(WAIT_S) for job in (completion, again, other)] == [["a1 done"], ["e2 done"], ["b1 done"]]
    assert gate.order == ["e1", "a1", "b1", "e2"]


def test_who_gives_way_more_is_stopped_and_waits_longer(thread, gate):
    client = submit(thread, "http 1", "h1", gives_way=OTHER_CLIENT)
    assert gate.begun.acquire(timeout=WAIT_S)
    edit = submit(thread, "edits", "e1", gives_way=EDIT)
    completion = submit(thread, "a", "a1")
    assert client.future.result(timeout=0) is None
    again = submit(thread, "http 2", "h2", gives_way=OTHER_CLIENT)
    for _ in range(4):
        gate.through.release()
    assert [job.future.result(WAIT_S) for job in (completion, edit, again)] == [["a1 done"], ["e1 done"], ["h2 done"]]
    assert gate.order == ["h1", "a1", "e1", "h2"]
    assert [job.overtaken for job in (client, edit, completion, again)] == [True, False, False, False]


def test_a_question_goes_first_and_stops_nothing(thread, gate):
    completion = submit(thread, "a", "a1")
    assert gate.begun.acquire(timeout=WAIT_S)
    jobs = [submit(thread, "b", "b1"), submit(thread, "http 1", "h1", gives_way=OTHER_CLIENT)]
    question = submit(thread, "http 2", "q1", gives_way=QUESTION)
    for _ in range(4):
        gate.through.release()
    assert [job.future.result(WAIT_S) for job in (completion, question, *jobs)] == [
        [f"{each} done"] for each in ("a1", "q1", "b1", "h1")
    ]
    assert gate.order == ["a1", "q1", "b1", "h1"]


def test_what_was_cancelled_is_not_overtaken(thread, gate):
    client = submit(thread, "http 1", "h1", gives_way=OTHER_CLIENT)
    assert gate.begun.acquire(timeout=WAIT_S)
    thread.cancel(client)
    completion = submit(thread, "a", "a1")
    gate.through.release()
    gate.through.release()
    assert completion.future.result(WAIT_S) == ["a1 done"]
    assert not client.overtaken


def test_work_ahead_neither_stops_nor_replaces_what_gives_way_until_nobody_wants_it(thread, gate):
    edit = submit(thread, "edits", "e1", gives_way=EDIT)
    assert gate.begun.acquire(timeout=WAIT_S)
    assert submit(thread, "a", "a1", ahead=True).future.result(timeout=0) is None
    assert not edit.cancel.is_set()
    thread.cancel(edit)
    ahead = submit(thread, "a", "a2", ahead=True)
    assert gate.begun.acquire(timeout=WAIT_S)
    gate.through.release()
    assert ahead.future.result(WAIT_S) == ["a2 done"]


def test_tasks_wait_for_requests_and_the_newest_of_a_key_counts(thread, gate):
    first = submit(thread, "a", "a1")
    assert gate.begun.acquire(timeout=WAIT_S)
    tasks = [thread.later("x", lambda worker, n=n: worker.order.append(f"x{n}")) for n in range(3)]
    failing = thread.later("y", lambda worker: 1 / 0)
    second = submit(thread, "b", "b1")
    gate.through.release(2)
    for future in (first.future, second.future, *tasks, failing):
        future.result(WAIT_S)
    assert gate.order == ["a1", "b1", "x2"]
    assert thread.close(WAIT_S)
    assert thread.later("late", lambda worker: None).done()


def test_tasks_that_wait_are_done_before_the_models_are_freed(thread, gate):
    submit(thread, "a", "a1")
    assert gate.begun.acquire(timeout=WAIT_S)
    done: list[Any] = []
    tasks = [thread.later(str(n), lambda worker, n=n: done.append(n)) for n in range(MOST_TASKS + 1)]
    assert tasks[0].done(), "one too many"
    gate.close = lambda: done.append("closed")
    gate.through.release()
    assert thread.close(WAIT_S)
    gate.closed.set()
    assert all(task.done() for task in tasks)
    assert sorted(done[:-1]) == list(range(1, MOST_TASKS + 1))
    assert done[-1] == "closed"


class Panic(BaseException):
    """As native code in Rust raises it."""


def test_whatever_fails_the_next_request_is_answered():
    class Fails(Idler):
        def idle(self, go_on):
            super().idle(go_on)
            raise Panic("a text of the user's")

    def panic(*arguments):
        raise Panic("a text of the user's")

    worker = Fails(steps=0)
    decode = DecodeThread(worker, idle_s=0.01)
    assert worker.idling.acquire(timeout=WAIT_S)
    error = decode.submit("a", panic).future.exception(WAIT_S)
    assert type(error) is RuntimeError  # an event loop would end over a panic
    assert str(error) == "Panic"
    assert decode.later("task", panic).result(WAIT_S) is None
    worker.through.release()
    assert submit(decode, "b", "b1").future.result(WAIT_S) == ["b1 done"]
    assert decode.close(WAIT_S)


def test_a_priority_that_fails_ends_no_thread():
    class Fails(Priority):
        def __init__(self):
            super().__init__(None, 2, lambda: None)
            self.asked = threading.Semaphore(0)

        def may_work_ahead(self):
            self.asked.release()
            raise ValueError("no load")

    priority, worker = Fails(), Gate()
    decode = DecodeThread(worker, idle_s=0.01, priority=priority)
    assert priority.asked.acquire(timeout=WAIT_S)
    with pytest.raises(ValueError, match="no load"):
        submit(decode, "a", "a1", ahead=True).future.result(WAIT_S)
    worker.through.release()
    assert submit(decode, "b", "b1").future.result(WAIT_S) == ["b1 done"]
    assert decode.close(WAIT_S)
