"""Percentiles of waits that were partly cut short."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.capacity.waits import Waits, percentiles, together


def test_without_requests_taken_back_they_are_plain_percentiles():
    waits = Waits.of([float(n) for n in range(1, 101)], [True] * 100)
    assert percentiles(waits, 0.5, 0.95) == [50.0, 95.0]
    assert waits.answered_share == 1.0


def test_what_was_taken_back_counts_as_waiting_at_least_so_long():
    # By hand: 4 wait; one is answered at 10 (3/4 left), one gone at 20, one of the 2 left answered at 30 (3/8 left).
    waits = Waits.of([10.0, 20.0, 30.0, 40.0], [True, False, True, False])
    assert percentiles(waits, 0.25, 0.5, 0.7) == [10.0, 30.0, math.inf]
    assert waits.answered_share == 0.5


def test_a_slow_engine_does_not_look_quick_by_its_quick_answers():
    rng = np.random.default_rng(1)
    needed, patience = rng.exponential(200, 40_000), rng.exponential(200, 40_000)
    waits = Waits(np.minimum(needed, patience), needed <= patience, np.ones(40_000))
    naive = np.median(waits.ms[waits.answered])
    assert percentiles(waits, 0.5)[0] == pytest.approx(200 * math.log(2), rel=0.05)
    assert naive == pytest.approx(100 * math.log(2), rel=0.05)


def test_weights_are_counts():
    twice = Waits.of([1.0, 1.0, 5.0], [True] * 3)
    assert percentiles(together([(Waits.of([1.0], [True]), 2.0), (Waits.of([5.0], [True]), 1.0)]), 0.5, 0.9) == (
        percentiles(twice, 0.5, 0.9)
    )


def test_nobody_waited():
    assert all(map(math.isnan, percentiles(Waits.of([], []), 0.5, 0.95)))
    assert Waits.of([], []).answered_share == 1.0
