"""Threads that follow what other programs use."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from codespec.draft.costs import LONGEST, CostCurve, RunningCosts
from codespec.draft.storage.profiles import Profiles
from codespec.engine.calibration import ModelCosts
from codespec.llama.context import Context
from codespec.llama.model import Model
from codespec.llama.runtime import Cancellation
from codespec.llama.threads import FEW, LOOK_S, STALE_S, CpuLoad, Threads, own_cpus
from codespec.models.registry import EMBEDDED_TARGET

SPIN = [sys.executable, "-c", "while True: pass"]


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that compute without end."""
    processes = [subprocess.Popen(SPIN) for _ in range(count)]
    try:
        yield
    finally:
        for each in processes:
            each.kill()
            each.wait()


def looked(load: CpuLoad) -> float | None:
    load.others()
    time.sleep(4 * LOOK_S)
    return load.others()


def compute(load: CpuLoad) -> float | None:
    """What is said of others while this process computes."""
    load.others()
    began = time.perf_counter()
    while time.perf_counter() - began < 4 * LOOK_S:
        pass
    return load.others()


def test_others_are_seen_at_once_and_own_work_is_not_others() -> None:
    cpus = len(own_cpus())
    load = CpuLoad()
    with busy(cpus):
        seen = looked(load)
    assert seen is not None
    assert seen > 0.5 * cpus
    mine = compute(load)
    assert mine is not None
    assert mine < seen, "what this process computes is nobody else's"


def test_a_look_takes_some_time_apart() -> None:
    load = CpuLoad()
    time.sleep(1.5 * LOOK_S)
    assert None in [load.others() for _ in range(20)]  # on a busy machine two of them may be that far apart


def test_what_computed_in_a_pause_need_not_compute_now() -> None:
    load = CpuLoad()
    if (seen := compute(load)) is None or seen >= 0.5:
        pytest.skip("other programs compute")
    began = time.monotonic()
    with busy(len(own_cpus())):
        time.sleep(4 * LOOK_S)
    found = load.others()
    if time.monotonic() - began > STALE_S:
        pytest.skip("the machine was too busy")
    assert found is None


@pytest.mark.parametrize(
    ("most", "cpus", "others", "count"),
    [
        (2, 2, 0.0, 2), (2, 2, 0.3, 2), (2, 2, 1.0, 1), (2, 2, 2.0, 1), (2, 2, 9.0, 1), (8, 64, 30.0, 8),
        (8, 8, 3.2, 5), (8, 8, None, 8), (1, 2, 0.0, 1),
    ],
)  # fmt: skip
def test_as_many_as_others_leave(most: int, cpus: int, others: float | None, count: int) -> None:
    assert Threads(most, cpus, lambda: others, most).count(FEW + 1) == count


def test_they_come_back_when_the_others_are_gone() -> None:
    said = iter([1.0, None, None, 0.1])
    threads = Threads(2, 2, lambda: next(said), 2)
    assert [threads.count(FEW + 1) for _ in range(4)] == [1, 1, 1, 2]


def passes(threads: Threads, seconds: Callable[[int], float], count: int, tokens: int = 1) -> list[int]:
    """Threads of so many passes, which take ``seconds`` with a number of threads."""
    taken = []
    for _ in range(count):
        taken.append(threads.count(tokens))
        threads.took(tokens, taken[-1], seconds(taken[-1]))
    return taken


@pytest.mark.parametrize("first", [1, 8])
@pytest.mark.parametrize("best", [1, 2, 4, 8])
def test_short_passes_take_the_fastest_number(first: int, best: int) -> None:
    threads = Threads(8, 8, lambda: 0.0, first)
    taken = passes(threads, lambda count: 1.0 + abs(math.log2(count / best)), 1000)
    assert taken[-200:].count(best) > 190, "it is tried rarely whether another is faster by now"
    assert threads.count(FEW + 1) == 8


def test_a_number_is_not_changed_for_what_one_pass_takes() -> None:
    slow = iter([*[0.001] * 60, 1.0, *[0.001] * 1000])
    assert passes(Threads(2, 2, lambda: 0.0, 2), lambda count: next(slow) * (3 - count), 200)[60:].count(2) > 130


def test_what_was_best_is_so_again_after_others_computed() -> None:
    others = 0.0
    threads = Threads(2, 2, lambda: others, 1)
    passes(threads, lambda count: 1.0 / count, 200)
    others = 2.0
    assert set(passes(threads, lambda count: 1.0, 1000)) == {1}
    others = 0.0
    assert passes(threads, lambda count: 1.0 / count, 20).count(2) >= 15


def test_tokens_of_a_pass_are_no_threads() -> None:
    """Passes over more tokens take longer whatever the threads, and are compared with their like."""
    threads = Threads(2, 2, lambda: 0.0, 1)
    for tokens in [1, 9, 17] * 200:
        count = threads.count(tokens)
        threads.took(tokens, count, tokens * (1.0 + 0.2 * count))
    assert threads.usual == 1


def test_a_context_decodes_with_as_many_as_it_is_told() -> None:
    with Model(EMBEDDED_TARGET) as model, Context(model, context_length=64, threads=2) as context:
        said: list[int] = []
        context.on_threads = said.append
        counts = iter([2, 1, 1, 2])
        sequence = context.sequence()
        expected = sequence.decode([1, 2, 3]).copy()
        sequence.rollback(0)
        context.follows = Threads(2, 2, lambda: 2.0 - next(counts), 2)
        for _ in range(4):
            assert sequence.decode([1, 2, 3]) == pytest.approx(expected, abs=1e-3)
            sequence.rollback(0)
        assert said == [1, 2]


def test_no_proposal_is_longer_than_a_few_tokens() -> None:
    assert FEW == LONGEST


def test_costs_are_not_measured_while_others_compute() -> None:
    with Model(EMBEDDED_TARGET) as model, Context(model, context_length=640, threads=2) as context:
        costs = ModelCosts(context, None, Profiles(None))
        context.follows = Threads(2, 2, lambda: 1.0, 2)
        assert not costs.measure(lambda: True, Cancellation())
        context.follows = Threads(2, 2, lambda: 0.0, 2)
        assert costs.measure(lambda: True, Cancellation())
        assert costs.running.measured


def test_a_number_that_is_set_is_kept() -> None:
    with Model(EMBEDDED_TARGET) as model, Context(model, context_length=64, threads=2) as context, busy(2):
        sequence = context.sequence()
        for _ in range(3):
            sequence.decode([1])
            time.sleep(1.5 * LOOK_S)
        assert context.threads_now == 2


def test_costs_of_each_number_of_threads_are_their_own() -> None:
    costs = RunningCosts(CostCurve((0,), (1, LONGEST), ((10.0, 20.0),)), threads=2)
    costs.observe(1, 0, 10.0)
    costs.use(1)
    for _ in range(20):
        costs.observe(1, 0, 15.0)
        costs.observe(LONGEST, 0, 40.0)
    assert costs.kept(0)[1] == pytest.approx(15.0, rel=0.1)
    assert costs.kept(0)[LONGEST] == pytest.approx(40.0, rel=0.15)
    costs.use(2)
    assert costs.kept(0)[1] == pytest.approx(10.0, rel=0.01)
    costs.use(1)
    assert costs.kept(0)[1] == pytest.approx(15.0, rel=0.1)
