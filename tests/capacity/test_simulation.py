"""One replica, against what can be computed by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from benchmarks.capacity.sessions import Keys, Work, draw
from benchmarks.capacity.simulation import MEMORY_MS, EngineSettings, Outcome, pass_costs, simulate
from benchmarks.capacity.waits import percentiles, together
from codespec.draft.costs import CostCurve

FLAT = [0.0] + [5.0] * 5000
"""A pass takes 5 ms, whatever its size."""
PLAIN = Work(prompt=1000, reread=1, answer=1, memory=0.0, debounce_ms=0.0, prefill=False)
BARE = EngineSettings(slots=64, cache=1_000_000, overhead_ms=0.0)


def keys(*pressed: tuple[float, int, int], luck: float = 0.5, opens: bool = False) -> Keys:
    """Keys of (seconds, developer, tokens of the answer)."""
    at, who, answer = (np.asarray(column) for column in zip(*pressed, strict=True))
    until = [min([t for t, w in zip(at, who, strict=True) if w == mine and t > now], default=math.inf)
             for now, mine in zip(at, who, strict=True)]  # fmt: skip
    count = len(at)
    return Keys(at.astype(float), who, np.asarray(until), np.full(count, opens), np.full(count, luck), answer)


def run(pressed: Keys, work: Work = PLAIN, engine: EngineSettings = BARE, costs: list[float] = FLAT) -> Outcome:
    return simulate(pressed, 0.0, work, engine, costs)  # 0 seconds of warm-up: all requests count


def test_an_m_d_1_queue():
    """One slot, Poisson arrivals, service of 2 passes: the mean wait of Pollaczek and Khinchin."""
    rng = np.random.default_rng(1)
    service, load, count = 0.010, 0.6, 30_000
    at = np.cumsum(rng.exponential(service / load, count))
    people = np.arange(count)
    pressed = Keys(at, people, np.full(count, np.inf), np.zeros(count, bool), np.ones(count), np.full(count, 2))
    found = simulate(pressed, at[-1], PLAIN, replace(BARE, slots=1), FLAT)
    expected = service * (1 + load / (2 * (1 - load)))
    assert found.waits.ms.mean() == pytest.approx(expected * 1e3, rel=0.05)
    assert found.busy == pytest.approx(load, rel=0.03)
    assert found.waits.answered.all()


def test_a_request_alone_takes_its_passes():
    assert run(keys((0.0, 0, 10))).waits.ms == pytest.approx([50.0])
    assert run(keys((0.0, 0, 10)), engine=replace(BARE, overhead_ms=3.0)).waits.ms == pytest.approx([53.0])
    # The first pass reads the prompt and gives a token; then 3 of the 9 left in a pass.
    drafted = replace(BARE, draft=4, accepted=2.0, draft_ms=1.0)
    assert run(keys((0.0, 0, 10)), engine=drafted).waits.ms == pytest.approx([4 * 5 + 3])


def test_requests_share_passes():
    found = run(keys((0.0, 0, 10), (0.0, 1, 10)))
    assert found.waits.ms == pytest.approx([50.0, 50.0])
    dearer = run(keys((0.0, 0, 10), (0.0, 1, 10)), engine=replace(BARE, sequence_ms=2.0))
    assert dearer.waits.ms == pytest.approx([70.0, 70.0])
    one_by_one = run(keys((0.0, 0, 10), (0.0, 1, 10)), engine=replace(BARE, slots=1))
    assert one_by_one.waits.ms == pytest.approx([50.0, 100.0])


def test_a_pass_costs_what_its_tokens_cost():
    steep = [float(n) for n in range(5000)]
    assert run(keys((0.0, 0, 3)), costs=steep).waits.ms == pytest.approx(
        [2.0 + 1 + 1]
    )  # one token is cached, one typed
    cold = replace(BARE, cache=0)
    assert run(keys((0.0, 0, 3)), engine=cold, costs=steep).waits.ms == pytest.approx([1000.0 + 1 + 1])
    in_parts = replace(cold, batch=600)
    assert run(keys((0.0, 0, 3)), engine=in_parts, costs=steep).waits.ms == pytest.approx([600.0 + 400 + 1 + 1])
    assert run(keys((0.0, 0, 3), opens=True), costs=steep).waits.ms == pytest.approx([1000.0 + 1 + 1])


def test_the_next_key_takes_a_request_back():
    found = run(keys((0.0, 0, 10), (0.022, 0, 2)))
    assert found.waits.answered.tolist() == [False, True]
    # The pass under way runs to its end at 25 ms before the second request is in one.
    assert found.waits.ms == pytest.approx([22.0, 3.0 + 10])
    assert found.requests == 2


def test_an_engine_may_notice_late_that_a_request_was_taken_back():
    steep = [float(n) for n in range(5000)]
    reading = replace(PLAIN, prompt=1000)
    engine = replace(BARE, slots=1, batch=100, cache=0)
    pressed = keys((0.0, 0, 9), (0.01, 1, 1), (0.25, 0, 1))
    assert run(pressed, reading, engine, steep).waits.ms[1] == pytest.approx(1290)  # from 300 to 1300
    late = run(pressed, reading, replace(engine, late_cancel=1), steep)
    assert late.waits.ms[1] == pytest.approx(1990)  # from 1000 to 2000
    assert not late.waits.answered[0]


def test_what_waits_for_a_slot_reads_what_is_unread_when_it_gets_one():
    # Twenty keys while a prompt is read do not make twenty requests that read everything behind it again.
    steep = [float(n) for n in range(5000)]
    pressed = keys((0.0, 0, 9), *((0.01 * n, 0, 9) for n in range(1, 21)))
    engine = replace(BARE, slots=1, late_cancel=1, cache=0)
    assert run(pressed, replace(PLAIN, prompt=100), engine, steep).waits.ms[-1] == pytest.approx(21 * 100 + 8 - 200)
    cached = run(pressed, replace(PLAIN, prompt=100), replace(engine, cache=9), steep)
    assert cached.waits.ms[-1] < 100


def test_memory_answers_what_goes_on_as_what_is_shown():
    work = replace(PLAIN, memory=0.9)
    along = run(keys((0.0, 0, 2), (0.1, 0, 2), (0.2, 0, 2)), work)
    assert (along.memory, along.requests) == (2, 1)
    assert along.waits.ms == pytest.approx([10.0, MEMORY_MS, MEMORY_MS])
    unanswered = run(keys((0.0, 0, 90), (0.1, 0, 2), (0.2, 0, 2)), work)  # nothing was shown at the second key
    assert (unanswered.memory, unanswered.requests) == (1, 2)
    otherwise = run(keys((0.0, 0, 2), (0.1, 0, 2), luck=0.95), work)
    assert (otherwise.memory, otherwise.requests) == (0, 2)


def test_prefill_while_typing_is_done_before_the_request():
    work = replace(PLAIN, debounce_ms=75.0)
    steep = [float(n) for n in range(5000)]
    pressed = keys((0.0, 0, 3), opens=True)
    assert run(pressed, work, costs=steep).waits.ms == pytest.approx([1002.0])
    ahead = run(pressed, replace(work, prefill=True), costs=steep)
    assert ahead.waits.ms == pytest.approx([1002.0 - 75])
    short = replace(work, prefill=True, prompt=50)
    assert run(pressed, short, costs=steep).waits.ms == pytest.approx([1 + 1 + 1])
    assert run(pressed, short, replace(BARE, cache=0), steep).waits.ms == pytest.approx([50 + 1 + 1])


def test_the_prefix_cache_lets_go_who_was_not_there_longest():
    steep = [float(n) for n in range(5000)]
    one, two = (0.0, 0, 1), (10.0, 1, 1)
    again = keys(one, two, (20.0, 0, 1))
    assert run(again, engine=replace(BARE, cache=2), costs=steep).waits.ms == pytest.approx([2.0, 2.0, 1.0])
    assert run(again, engine=replace(BARE, cache=1), costs=steep).waits.ms == pytest.approx([2.0, 1000.0, 1000.0])


def test_another_size_of_pass_costs_more():
    assert simulate(keys((0.0, 0, 3)), 0.0, PLAIN, BARE, FLAT, 1.0).waits.ms == pytest.approx([6.0 + 6.0 + 5.0])


def test_costs_go_on_behind_the_curve():
    curve = CostCurve((0, 1000), (1, 33), ((10.0, 66.0), (20.0, 99.0)))
    costs = pass_costs(curve, EngineSettings(batch=100), 0)
    assert len(costs) == 101
    assert (costs[1], costs[33]) == (10.0, 66.0)
    assert costs[100] == pytest.approx(66 + 67 * 2)
    assert pass_costs(curve, EngineSettings(batch=100, prefill=1000.0), 2000)[100] == pytest.approx(99 + 67)
    assert len(pass_costs(curve, EngineSettings(batch=8, slots=50, draft=1), 0)) == 101


def test_more_replicas_are_never_slower_for_the_same_sessions():
    curve = CostCurve((0,), (1, 33), ((8.0, 20.0),))
    work, engine = Work(prompt=600), EngineSettings(slots=8)
    costs = pass_costs(curve, engine, work.prompt)
    found = []
    for replicas in (1, 2, 4, 8):
        parts = [range(first, 48, replicas) for first in range(replicas)]
        outcomes = [simulate(draw(part, 40.0, work, 5), 40.0, work, engine, costs) for part in parts]
        found.append(percentiles(together([(each.waits, 1.0) for each in outcomes]), 0.5, 0.95))
    for slower, quicker in pairwise(found):
        assert quicker[0] <= slower[0]
        assert quicker[1] <= slower[1]
    assert found[-1][1] < found[0][1] / 2


def test_the_same_seed_gives_the_same():
    work, engine = Work(), EngineSettings()
    costs = pass_costs(CostCurve((0,), (1, 33), ((8.0, 20.0),)), engine, work.prompt)
    first, second = (simulate(draw(6, 30.0, work, 2), 30.0, work, engine, costs) for _ in range(2))
    assert np.array_equal(first.waits.ms, second.waits.ms)
    assert first.requests == second.requests


def test_nobody_types():
    nothing = Keys(*(np.zeros(0, kind) for kind in (float, int, float, bool, float, int)))
    assert len(run(nothing).waits.ms) == 0
