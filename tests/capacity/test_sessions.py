"""Keys of simulated typists."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.capacity.sessions import KEY_MS, KEYS, OPENING_SHARE, THINKS, Pauses, Work, draw


def test_keys_come_in_order_and_know_the_next_one_of_their_developer():
    keys = draw(5, 60.0, Work(), seed=3)
    assert np.all(np.diff(keys.at) >= 0)
    assert keys.at.min() >= 0
    assert keys.at.max() < 60
    for who in range(5):
        own = keys.who == who
        at, until = keys.at[own], keys.until[own]
        assert until[:-1] == pytest.approx(at[1:])
        assert until[-1] >= 60 or np.isinf(until[-1])


def test_the_pace_is_that_of_the_latency_benchmark():
    keys = draw(40, 300.0, Work(answer=20), seed=1)
    between = (keys.until - keys.at)[np.isfinite(keys.until)] * 1e3
    assert np.median(between) == pytest.approx(KEY_MS, rel=0.05)
    assert np.mean((between > 600) & (between < 1500)) == pytest.approx(OPENING_SHARE * THINKS * 900 / 1200, rel=0.25)
    assert keys.opens.mean() == pytest.approx(2 / sum(KEYS), rel=0.1)
    assert keys.answer.mean() == pytest.approx(20, rel=0.05)
    assert keys.answer.min() == 1
    real = Pauses(1)
    typed = [real.before("a") for _ in range(4000)]
    assert np.median(typed) == pytest.approx(np.median(between), rel=0.06)


def test_the_same_seed_types_the_same_and_nobody_changes_what_others_type():
    some, all_of_them = draw(range(2, 4), 30.0, Work(), seed=7), draw(4, 30.0, Work(), seed=7)
    assert np.array_equal(some.at, all_of_them.at[all_of_them.who >= 2])
    assert np.array_equal(some.luck, all_of_them.luck[all_of_them.who >= 2])
    assert not np.array_equal(draw(4, 30.0, Work(), seed=8).at, all_of_them.at)
