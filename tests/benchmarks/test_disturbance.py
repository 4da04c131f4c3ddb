"""What others compute while something is measured is seen, and what was measured then is measured again."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil
import pytest

from benchmarks.disturbance import TRIES, Disturbance, _Moment, _waited

BUSY = [sys.executable, "-c", "while True: pass"]


@pytest.mark.skipif(_waited() is None, reason="this system does not say how long programs waited")
def test_beside_others_a_sample_is_measured_again() -> None:
    others = [subprocess.Popen(BUSY) for _ in range(2 * (psutil.cpu_count() or 1))]
    try:
        seen, calls = Disturbance(), []
        assert seen.undisturbed(lambda: (calls.append(1), time.sleep(0.3))[1] or len(calls)) == TRIES
    finally:
        for each in others:
            each.kill()
            each.wait()
    assert seen == Disturbance(samples=1, repeated=TRIES - 1, left=1)
    assert "1 (100%) disturbed all the same" in str(seen)


def test_what_this_process_and_its_children_compute_is_no_disturbance() -> None:
    """Where the system does not say how long programs waited."""
    before, own = _Moment(), os.times()
    before.waited = None
    child = subprocess.Popen(
        [sys.executable, "-c", "import time\nend = time.time() + 1\nwhile time.time() < end: pass"]
    )
    end = time.monotonic() + 1
    while time.monotonic() < end:
        pass
    child.wait()
    after, now = _Moment(), os.times()
    ours = sum(now[:4]) - sum(own[:4])  # of this process and its children
    others = after.taken_since(before)
    left = (psutil.cpu_count() or 1) - ours / (now.elapsed - own.elapsed)
    assert others < left + 0.1, "whoever else computed, these seconds were ours"


def test_short_samples_count_where_nothing_can_be_told() -> None:
    before = _Moment()
    before.waited = None
    assert _Moment().taken_since(before) == 0.0
