"""T(n): recovered from a target of known cost, interpolated with its jumps, and followed while it drifts."""

import math
import random
from typing import Any

import pytest

from codespec.draft.acceptance import Acceptance, prior
from codespec.draft.costs import FEW_SIZES, LONGEST, SIZES, UNKNOWN, CostCurve, Measurement, RunningCosts, plan
from tests.present import present

SWITCH_MS = 0.5


def jumpy(n, context):
    """Milliseconds: a step at 2 and at 9 tokens, and attention over the context."""
    return 10 + 0.25 * n + 8 * (n >= 2) + 6 * (n >= 9) + 0.001 * context * n


class TimedTarget:
    """Takes a known time on a clock of its own.

    Args:
        held_up: milliseconds that the pass of this number takes longer, counted from 0.
    """

    fork: Any = None
    decode_each: Any = None
    close: Any = None

    def __init__(self, cost=jumpy, held_up=None):
        self.cost, self.held_up = cost, held_up or {}
        self.n_past, self.now, self.last, self.passes = 0, 0.0, 0, []

    def decode(self, tokens, last=None):
        if last != 0:  # no prefill
            took = self.cost(len(tokens), self.n_past) + SWITCH_MS * (len(tokens) != self.last)
            self.now += (took + self.held_up.get(len(self.passes), 0)) / 1e3
            self.passes.append((len(tokens), last))
        self.last = len(tokens)
        self.n_past += len(tokens)

    def rollback(self, n_past):
        assert 0 <= n_past <= self.n_past
        self.n_past = n_past

    def clock(self):
        return self.now


def measured(target, **options):
    return Measurement(clock=target.clock, **options).run(target, lambda _: True)


def test_known_costs_are_recovered_exactly():
    target = TimedTarget()
    curve = measured(target, contexts=(400, 0))
    assert curve.contexts == (0, 400)
    assert curve.tokens == SIZES
    for context, row in zip(curve.contexts, curve.ms, strict=True):
        assert row == pytest.approx([jumpy(n, context) for n in SIZES], abs=1e-3)
    assert curve.switch_ms == pytest.approx(SWITCH_MS, abs=1e-3)
    assert target.n_past == 0


def test_a_draft_is_measured_with_the_rows_that_it_asks_for():
    target = TimedTarget()
    measured(target, sizes=(1, 2), rows=1)
    assert {rows for _, rows in target.passes} == {1}


def test_passes_that_were_held_up_do_not_count():
    once = len(SIZES) * 2
    held_up = {
        1 + 3 * 2 + once * repeat + kept: 40.0 for repeat in range(3) for kept in (0, 1) if (repeat, kept) != (2, 1)
    }
    curve = measured(TimedTarget(held_up=held_up))
    assert curve.ms[0] == pytest.approx([jumpy(n, 0) for n in SIZES], abs=1e-3)


def test_a_minimum_that_nothing_confirms_is_measured_again():
    once = len(SIZES) * 2
    held_up = {1 + 3 * 2 + once * repeat + 1: 10.0 + 5 * repeat for repeat in range(3)}  # every planned pass over 4
    target = TimedTarget(held_up=held_up)
    curve = measured(target)
    assert curve.ms[0] == pytest.approx([jumpy(n, 0) for n in SIZES], abs=1e-3)
    assert len(target.passes) < 1 + 3 * once + 10, "no other size is repeated"


def test_time_in_which_something_else_ran_does_not_count():
    target = TimedTarget(held_up=dict.fromkeys(range(1000), 25.0))
    curve = measured(target, busy=lambda: target.now - 0.025 * len(target.passes))
    assert curve.ms[0] == pytest.approx([jumpy(n, 0) for n in SIZES], abs=1e-3)
    parallel = TimedTarget()  # helpers computed beside it
    curve = measured(parallel, busy=lambda: 2 * parallel.now)
    assert curve.ms[0] == pytest.approx([jumpy(n, 0) for n in SIZES], abs=1e-3)


def test_a_measurement_among_other_programs_is_disturbed():
    noise = random.Random(1)
    for held_up, expected in (({}, False), ({n: 30 * noise.random() for n in range(1000)}, True)):
        target = TimedTarget(held_up=held_up)
        measurement = Measurement(clock=target.clock)
        assert measurement.run(target) is not None
        assert measurement.disturbed is expected


def test_it_stops_when_told_and_goes_on_where_it_was():
    whole = TimedTarget()
    measured(whole, contexts=(0, 300))
    target = TimedTarget()
    measurement = Measurement((0, 300), clock=target.clock)
    calls = shares = 0
    curve = None
    while curve is None:
        asked = 0

        def go_on(share):
            nonlocal asked, shares
            asked += 1
            assert share >= shares
            shares = share
            return asked < 9

        curve = measurement.run(target, go_on)
        assert target.n_past == 0
        calls += 1
    assert calls > 10
    assert curve.ms[1] == pytest.approx([jumpy(n, 300) for n in SIZES], abs=1e-3)
    assert len(target.passes) < 2 * len(whole.passes)


def test_an_error_leaves_the_sequence_empty():
    class Failing(TimedTarget):
        def decode(self, tokens, last=None):
            if len(self.passes) == 5:
                raise RuntimeError
            super().decode(tokens, last)

    target = Failing()
    with pytest.raises(RuntimeError):
        measured(target, contexts=(100,))
    assert target.n_past == 0


def test_slow_models_are_measured_at_fewer_sizes():
    fast, slow = TimedTarget(lambda n, _: 0.2 * n), TimedTarget(lambda n, _: 60 + 9 * n)
    assert plan(fast, 3.0, 512, clock=fast.clock) == ((0, 512), SIZES, 11)
    assert present(plan(fast, 3.0, clock=fast.clock))[0] == (0,)
    assert plan(slow, 3.0, 512, clock=slow.clock) == ((0,), FEW_SIZES, 2)
    assert plan(slow, 3.0, go_on=lambda _: False, clock=slow.clock) is None
    assert slow.n_past == 0
    assert {1, LONGEST} <= set(FEW_SIZES) <= set(SIZES)


CURVE = CostCurve((0, 100), (1, 4, 5, 8), ((10, 13, 20, 23), (20, 23, 40, 43)), 0.5)


def test_interpolation_keeps_a_jump_between_the_sizes_that_it_was_seen_between():
    assert CURVE.at(0)[:9] == [0, 10, 11, 12, 13, 20, 21, 22, 23]
    assert CURVE.at(0)[9] == pytest.approx(23 + 23 / 8)
    assert CURVE.at(50)[:6] == [0, 15, 16, 17, 18, 30]
    assert CURVE.at(1000) == CURVE.at(100)
    assert len(CURVE.at(0)) == LONGEST + 1


def test_curves_survive_json():
    assert CostCurve.from_json(CURVE.as_json()) == CURVE
    assert CostCurve.from_json(UNKNOWN.as_json()) == UNKNOWN


NONSENSE = [
    None, [], "curve", {}, {"contexts": 3}, {"ms": None}, {"tokens": [2, 4, 5, 8]}, {"tokens": [1, 4, 4, 8]},
    {"tokens": []}, {"tokens": [1, 4, 5, 40]}, {"tokens": [1, 4, 5]}, {"contexts": [100, 0]}, {"contexts": [-5, 100]},
    {"contexts": [0]},
    {"ms": [[10, 13, 20, 23], [20, 23, 40, -1]]}, {"ms": [[10, 13, 20, 23], [20, 23, 40, math.nan]]},
    {"ms": [[10, 13, 20, 23]]}, {"switch_ms": math.inf}, {"switch_ms": math.nan}, {"switch_ms": -1},
    {"tokens": [1, 4, 5, math.inf]},
]  # fmt: skip


@pytest.mark.parametrize("change", NONSENSE, ids=str)
def test_nonsense_is_no_curve(change):
    data = {**CURVE.as_json(), **change} if isinstance(change, dict) and change else change
    with pytest.raises(ValueError, match="not a cost curve"):
        CostCurve.from_json(data)


def relative(costs, truth, sizes=range(1, 9)):
    return max(abs(costs[n] / truth(n) - 1) for n in sizes)


def test_running_costs_follow_a_drift():
    costs = RunningCosts(CURVE)
    for _ in range(150):
        for n in range(1, 9):
            costs.observe(n, 0, 1.6 * CURVE.at(0)[n] + CURVE.switch_ms)
    costs.last = 1
    expected = costs.at(0)
    assert relative(expected, lambda n: 1.6 * CURVE.at(0)[n] + (n != 1) * 0.8) < 0.05
    assert expected[20] > 1.3 * CURVE.at(0)[20], "sizes that were not seen drift along"


def test_running_costs_follow_one_size():
    costs = RunningCosts(CURVE)
    for _ in range(300):
        costs.observe(4, 0, 26.0)
        costs.observe(1, 0, 10.5)
    assert costs.at(0)[4] - CURVE.switch_ms == pytest.approx(25.5, rel=0.1)
    assert costs.at(0)[1] == pytest.approx(10, rel=0.1)


def test_running_costs_ignore_an_outlier():
    costs = RunningCosts(CURVE)
    for _ in range(30):
        costs.observe(4, 0, 13.5)
        costs.observe(1, 0, 10.5)
    before = costs.at(0)[4]
    costs.observe(4, 0, 5000.0)
    costs.observe(1, 0, 10.5)
    assert costs.at(0)[4] == pytest.approx(before, rel=0.05)


def test_a_pass_of_another_size_is_expected_to_take_longer():
    costs = RunningCosts(CURVE)
    costs.observe(4, 0, 13.5)
    costs.observe(4, 0, 13.0)
    assert costs.at(0)[4] == pytest.approx(13, rel=0.01)
    assert costs.at(0)[1] == pytest.approx(10.5, rel=0.01)


def test_without_a_measurement_the_first_pass_sets_the_scale():
    costs = RunningCosts()
    assert not costs.measured
    costs.observe(1, 0, 40.0)
    assert costs.at(0)[1] == pytest.approx(40)
    costs.replace(CURVE)
    assert costs.measured
    assert costs.at(0)[4] == pytest.approx(13.5)
    for n, ms in ((0, 1.0), (LONGEST + 1, 1.0), (2, 0.0), (2, -1.0)):
        costs.observe(n, 0, ms)
    assert costs.at(0)[4] == pytest.approx(13.5)


def test_acceptance_learns_by_kind_and_depth():
    acceptance = Acceptance()
    kind = ("model", 4)
    assert acceptance.chance(kind, 0) == pytest.approx(prior(kind))
    for _ in range(200):
        acceptance.learn(kind, 0, True)
        acceptance.learn(kind, 2, False)
    assert acceptance.chance(kind, 0) > 0.9
    assert acceptance.chance(kind, 2) < 0.1
    assert acceptance.chance(("model", 5), 0) == pytest.approx(prior(("model", 5)))
    assert acceptance.chance(kind, 100) == acceptance.chance(kind, 3), "all later ones"


def test_acceptance_survives_json():
    acceptance = Acceptance()
    for step in range(300):
        acceptance.learn(("model", step % 9), step % 7, step % 3 > 0)
        acceptance.learn(("ngram", step % 5), step % 4, step % 4 > 0)
    again = Acceptance.from_json(acceptance.as_json())
    assert again.as_json() == acceptance.as_json()
    for kind in (("model", 3), ("ngram", 1), ("forced", 0)):
        for depth in range(5):
            assert again.chance(kind, depth) == pytest.approx(acceptance.chance(kind, depth), abs=1e-3)


@pytest.mark.parametrize(
    "data",
    [
        None, 3, "counts", [3], [["model", 1, 0]], [["model", "x", 0, 1, 2]], [["model", 1, 0, 3, 2]],
        [["model", 1, 0, -1, 2]], [["model", 1, 0, math.nan, 2]], [["model", 1, 0, 1, math.inf]],
        [["model", -9, 0, 1, 2]],
        [["model", math.inf, 0, 1, 2]],
    ],
    ids=str,
)  # fmt: skip
def test_nonsense_is_no_acceptance(data):
    with pytest.raises(ValueError, match="no counts of accepted tokens"):
        Acceptance.from_json(data)


def test_passes_of_one_size_in_a_row_count_as_one() -> None:
    alone, together = RunningCosts(CURVE), RunningCosts(CURVE)
    for n, ms in ((2, 15.0), (1, 14.0), (1, 13.0), (2, 16.0)):
        alone.observe(n, 0, ms)
    # The first pass over another number of tokens has a new graph, and counts apart.
    together.observe_all([(2, 15.0), (1, 14.0), (1, 12.0), (1, 13.0), (1, 14.0), (2, 16.0)], 0)
    assert together.at(0) == alone.at(0)
    assert together.last == alone.last == 2


def test_what_a_rejection_costs_is_learnt_apart_where_it_is_decoded_again():
    attention, hybrid = RunningCosts(CURVE), RunningCosts(CURVE)
    hybrid.replays = True
    assert hybrid.again_ms == pytest.approx(CURVE.at(0)[2] - CURVE.at(0)[1])
    for costs in (attention, hybrid):
        for _ in range(40):
            costs.observe(4, 0, 13.5)
            costs.observe(1, 0, 16.5, rejected=True)
    assert attention.again_ms == 0
    assert attention.kept(0)[1] > 12, "there it is the pass itself that takes so long"
    assert hybrid.again_ms == pytest.approx(6, rel=0.05)
    assert hybrid.kept(0)[1] == pytest.approx(10, rel=0.05)
