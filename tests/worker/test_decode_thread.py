"""The decode thread, without a server around it."""

from __future__ import annotations

import threading

import pytest
from decode_gate import WAIT_S, Gate, Idler, load, submit

from codespec.worker.decode_thread import DecodeThread
from codespec.worker.jobs import EDIT, OTHER_CLIENT, QUESTION


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture
def thread():
    decode = DecodeThread()
    yield decode
    assert decode.close(WAIT_S)


def test_documents_take_turns_and_a_newer_request_keeps_the_turn(thread, gate):
    load(thread, lambda: gate)
    jobs = [submit(thread, "a", "a1")]
    assert gate.begun.acquire(timeout=WAIT_S)
    jobs += [submit(thread, "b", "b1"), submit(thread, "c", "c1"), submit(thread, "b", "b2")]
    for _ in range(3):
        gate.through.release()
    assert [job.future.result(WAIT_S) for job in jobs] == [["a1 done"], None, ["c1 done"], ["b2 done"]]
    assert gate.order == ["a1", "b2", "c1"]
    assert gate.aborts == 0


def test_an_older_request_is_answered_before_it_has_stopped(thread, gate):
    load(thread, lambda: gate)
    older = submit(thread, "a", "a1")
    assert gate.begun.acquire(timeout=WAIT_S)
    newer = submit(thread, "a", "a2")
    assert older.future.result(timeout=0) is None
    assert gate.aborts == 1
    assert gate.begun.acquire(timeout=WAIT_S)
    gate.through.release()
    assert newer.future.result(WAIT_S) == ["a2 done"]


def test_what_is_stopped_while_it_reads_its_prompt_counts_as_reading(thread, gate):
    load(thread, lambda: gate)
    for gate.reading in (True, False, True):
        job = submit(thread, "a", "a1")
        assert gate.begun.acquire(timeout=WAIT_S)
        thread.cancel(job)
        assert submit(thread, "b", "b1") is not job
        assert gate.begun.acquire(timeout=WAIT_S)
        gate.through.release()
    status = thread.status()
    assert (status["stop_prefill_ms"]["count"], status["stop_decode_ms"]["count"]) == (2, 1)


def test_only_a_job_that_waits_can_be_given_up(thread, gate):
    load(thread, lambda: gate)
    runs = submit(thread, "a", "a1")
    assert gate.begun.acquire(timeout=WAIT_S)
    waits = submit(thread, "b", "b1")
    thread.give_up(runs)
    thread.give_up(waits)
    assert waits.future.result(timeout=0) is None
    gate.through.release()
    assert runs.future.result(WAIT_S) == ["a1 done"]
    assert gate.order == ["a1"]


def test_cancelling_a_job_that_is_done_does_not_abort_the_next(thread, gate):
    load(thread, lambda: gate)
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


def test_a_new_load_stops_what_runs_and_serves_what_waits(thread, gate):
    load(thread, lambda: gate)
    runs = submit(thread, "a", "a1")
    assert gate.begun.acquire(timeout=WAIT_S)
    waits = submit(thread, "b", "b1")
    other = Gate()
    other.through.release()
    loaded, errors = load(thread, lambda: other)
    assert runs.future.result(WAIT_S) is None
    assert waits.future.result(WAIT_S) == ["b1 done"]
    assert loaded.wait(WAIT_S)
    assert errors == [None]
    assert gate.closed.is_set()
    assert other.order == ["b1"]


def test_after_a_failed_load_requests_get_nothing_until_one_succeeds(thread, gate):
    def fail():
        raise ValueError("no model")

    early = submit(thread, "a", "a1")
    loaded, errors = load(thread, fail)
    assert early.future.result(WAIT_S) is None
    assert loaded.wait(WAIT_S)
    assert str(errors[0]) == "no model"
    assert submit(thread, "a", "a2").future.result(timeout=0) is None
    load(thread, lambda: gate)
    gate.through.release()
    assert submit(thread, "a", "a3").future.result(WAIT_S) == ["a3 done"]


def test_closing_while_loading(gate):
    thread = DecodeThread()
    begun, may_end = threading.Event(), threading.Event()

    def slow():
        begun.set()
        may_end.wait(WAIT_S)
        return gate

    load(thread, slow)
    job = submit(thread, "a", "a1")
    assert begun.wait(WAIT_S)
    assert not thread.close(timeout=0.01)
    assert job.future.result(timeout=0) is None
    may_end.set()
    assert thread.close(WAIT_S)
    assert gate.closed.is_set()
    assert submit(thread, "a", "a2").future.result(timeout=0) is None


@pytest.fixture
def eager():
    decode = DecodeThread(idle_s=0.01)
    yield decode
    assert decode.close(WAIT_S)


def test_idle_work_gives_way_to_a_request_and_goes_on(eager):
    completer = Idler(steps=float("inf"))
    load(eager, lambda: completer)
    for number in range(3):
        assert completer.idling.acquire(timeout=WAIT_S)
        job = submit(eager, "a", f"a{number}")
        completer.through.release()
        assert job.future.result(WAIT_S) == [f"a{number} done"]
        assert completer.aborts == number + 1, "a step that runs is aborted, the request is not"
    completer.steps = 3
    assert completer.finished.wait(WAIT_S)


def test_idle_work_that_is_done_is_not_asked_for_again_before_the_next_request(eager):
    completer = Idler(steps=2)
    load(eager, lambda: completer)
    assert completer.finished.wait(WAIT_S)
    assert completer.idling.acquire(timeout=WAIT_S)
    assert not completer.idling.acquire(timeout=0.1)
    completer.through.release()
    assert submit(eager, "a", "a1").future.result(WAIT_S) == ["a1 done"]
    assert completer.idling.acquire(timeout=WAIT_S)
    assert completer.aborts == 0


def test_idle_work_waits_until_nothing_has_happened_for_a_while(thread):
    completer = Idler(steps=1)
    loaded, _ = load(thread, lambda: completer)
    assert loaded.wait(WAIT_S)
    completer.through.release()
    assert submit(thread, "a", "a1").future.result(WAIT_S) == ["a1 done"]
    assert completer.calls == 0


def test_a_new_load_stops_idle_work(eager):
    completer, other = Idler(steps=float("inf")), Idler(steps=0)
    load(eager, lambda: completer)
    assert completer.idling.acquire(timeout=WAIT_S)
    load(eager, lambda: other)
    assert completer.closed.wait(WAIT_S)
    assert other.finished.wait(WAIT_S)


def test_closing_stops_idle_work():
    thread = DecodeThread(idle_s=0.01)
    completer = Idler(steps=float("inf"))
    load(thread, lambda: completer)
    assert completer.idling.acquire(timeout=WAIT_S)
    assert thread.close(WAIT_S)
    assert completer.closed.is_set()


def test_idle_work_that_fails_costs_no_request(eager, caplog):
    completer = Idler(steps=0)
    completer.finished = None  # raises
    load(eager, lambda: completer)
    assert completer.idling.acquire(timeout=WAIT_S)
    completer.through.release()
    assert submit(eager, "a", "a1").future.result(WAIT_S) == ["a1 done"]
    assert "while nobody waits" in caplog.text


def test_a_request_takes_over_what_was_begun_before_it_came(thread, gate):
    load(thread, lambda: gate)
    before = submit(thread, "a", "a1", ahead=True, key="the place")
    assert gate.begun.acquire(timeout=WAIT_S)
    asked = submit(thread, "a", "a1", key="the place")
    assert asked is before
    submit(thread, "b", "b1", ahead=True)  # and is not stopped as what was begun ahead
    gate.through.release()
    assert asked.future.result(WAIT_S) == ["a1 done"]
    assert gate.aborts == 0


def test_what_is_wanted_ahead_twice_is_begun_once(thread, gate):
    load(thread, lambda: gate)
    before = submit(thread, "a", "a1", ahead=True, key="the place")
    assert gate.begun.acquire(timeout=WAIT_S)
    assert submit(thread, "a", "a1", ahead=True, key="the place") is before
    asked = submit(thread, "b", "b1")  # nobody waits for it still
    assert before.future.result(timeout=WAIT_S) is None
    assert gate.begun.acquire(timeout=WAIT_S)
    gate.through.release()
    assert asked.future.result(WAIT_S) == ["b1 done"]


@pytest.mark.parametrize(("document", "key"), [("a", "another place"), ("a", None), ("b", "the place")])
def test_what_was_begun_for_something_else_is_stopped(thread, gate, document, key):
    load(thread, lambda: gate)
    before = submit(thread, "a", "a1", ahead=True, key="the place")
    assert gate.begun.acquire(timeout=WAIT_S)
    asked = submit(thread, document, "asked", key=key)
    assert before.future.result(timeout=0) is None
    assert gate.begun.acquire(timeout=WAIT_S)
    gate.through.release()
    assert asked.future.result(WAIT_S) == ["asked done"]


def test_what_gives_way_is_stopped_by_a_request_and_waits_for_its_turn(thread, gate):
    load(thread, lambda: gate)
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
    load(thread, lambda: gate)
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
    load(thread, lambda: gate)
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
    load(thread, lambda: gate)
    client = submit(thread, "http 1", "h1", gives_way=OTHER_CLIENT)
    assert gate.begun.acquire(timeout=WAIT_S)
    thread.cancel(client)
    completion = submit(thread, "a", "a1")
    gate.through.release()
    gate.through.release()
    assert completion.future.result(WAIT_S) == ["a1 done"]
    assert not client.overtaken


def test_work_ahead_neither_stops_nor_replaces_what_gives_way_until_nobody_wants_it(thread, gate):
    load(thread, lambda: gate)
    edit = submit(thread, "edits", "e1", gives_way=EDIT)
    assert gate.begun.acquire(timeout=WAIT_S)
    assert submit(thread, "a", "a1", ahead=True).future.result(timeout=0) is None
    assert not edit.cancel.is_set()
    thread.cancel(edit)
    ahead = submit(thread, "a", "a2", ahead=True)
    assert gate.begun.acquire(timeout=WAIT_S)
    gate.through.release()
    assert ahead.future.result(WAIT_S) == ["a2 done"]
