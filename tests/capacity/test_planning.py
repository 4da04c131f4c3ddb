"""Replicas for a number of developers."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from benchmarks.capacity.planning import Replica, _shares, answer, changes, plan, replicas_for
from benchmarks.capacity.report import as_json, picture, table, write
from benchmarks.capacity.sessions import Work
from benchmarks.capacity.simulation import EngineSettings
from codespec.draft.costs import CostCurve
from tests.present import present

CURVE = CostCurve((0,), (1, 8, 33), ((6.0, 7.0, 10.0),), 0.1)
WORK = Work(prompt=500, answer=12)
ENGINE = EngineSettings(slots=16)


KEYS = 800


def test_the_shares_are_the_binomial_distribution():
    for developers, replicas in ((7, 3), (1000, 10), (100_000, 900)):
        found = _shares(developers, replicas)
        empty = (1 - 1 / replicas) ** developers
        assert sum(weight for _, weight in found) + empty == pytest.approx(1.0, abs=1e-4)
        assert sum(load * weight for load, weight in found) == pytest.approx(developers / replicas, rel=1e-3)
    assert dict(_shares(2, 2)) == {1: pytest.approx(0.5), 2: pytest.approx(0.25)}
    assert _shares(5, 1) == [(5, 1.0)]


def test_more_developers_need_more_replicas_and_the_bound_holds():
    replica = Replica(CURVE, ENGINE, WORK, 1, 300.0, keys=KEYS)
    needed = [present(replicas_for(replica, developers, 300.0)) for developers in (1, 100, 1000, 100_000)]
    assert needed[0] == 1
    assert needed == sorted(needed)
    assert needed[3] / needed[2] == pytest.approx(100, rel=0.25)
    for developers, replicas in zip((100, 1000), needed[1:], strict=False):
        assert answer(replica, developers, replicas).ms[1] <= 300
        assert answer(replica, developers, replicas - 1).ms[1] > 300


def test_no_number_of_replicas_is_enough_for_less_than_a_request_takes():
    replica = Replica(CURVE, ENGINE, WORK, 1, 20.0, keys=KEYS)
    assert replicas_for(replica, 10, 20.0) is None


def test_hopeless_loads_are_not_simulated():
    said: list[str] = []
    replica = Replica(CURVE, ENGINE, WORK, 1, 300.0, said.append, KEYS)
    assert replica.under(1_000_000)[1] < 5_000
    loads = [load for load, _ in replica.loads()]
    assert max(loads) < 5_000
    assert len(said) == len(loads)


def test_changes_are_one_thing_at_a_time():
    names = [each.name for each in changes(ENGINE, WORK)]
    assert names[:5] == [
        "as given",
        "no answers from memory",
        "no prefill while typing",
        "drafts: 1.5 of 4 accepted",
        "no prefix cache",
    ]
    assert names[5:] == ["batch of 1", "batch of 8", "batch of 32"]
    other = changes(replace(ENGINE, slots=1, draft=3, accepted=1.0, cache=0), replace(WORK, memory=0.0, prefill=False))
    assert [each.name for each in other] == ["as given", "no drafts", "batch of 2"]
    assert [each.name for each in changes(ENGINE, replace(WORK, prefill=False))][2] == "with prefill while typing"


def test_what_a_plan_says():
    percents: list[int] = []
    rows = plan(CURVE, ENGINE, WORK, (3, 200), 300.0, 1, lambda _, percent: percents.append(percent), keys=KEYS)
    given, no_memory = rows[0], rows[1]
    assert [each.developers for each in given.answers] == [3, 200]
    assert given.needed == [each.replicas for each in given.answers]
    assert present(no_memory.needed[1]) > present(given.needed[1])
    assert no_memory.answers[1].replicas == given.answers[1].replicas
    assert no_memory.answers[1].memory == 0.0 < given.answers[1].memory
    assert no_memory.answers[1].requests > given.answers[1].requests
    assert percents == sorted(percents)
    assert percents[-1] == 100
    text = table(rows, 300.0)
    assert "200 developers on" in text
    assert len({len(line) for line in text.splitlines()[:3]}) == 1
    data = json.loads(json.dumps(as_json(rows, {"seed": 1}), allow_nan=False))
    assert data["rows"][0]["answers"][1]["p95_ms"] <= 300
    ElementTree.fromstring(picture(rows, 300.0))


def test_replicas_that_are_given_stay():
    rows = plan(CURVE, replace(ENGINE, replicas=3, gpus=2), WORK, (60,), 300.0, 1, fixed=True, keys=KEYS)
    assert (rows[0].answers[0].replicas, rows[0].answers[0].gpus) == (3, 6)
    assert rows[0].needed[0] is not None
    without = plan(CURVE, ENGINE, WORK, (60,), None, 1, keys=KEYS)
    assert (without[0].answers[0].replicas, without[0].needed) == (1, [])
    assert "replicas for" not in table(without, None)


def test_a_bound_that_cannot_hold_is_said(tmp_path):
    rows = plan(CURVE, ENGINE, replace(WORK, memory=0.0), (5,), 10.0, 1, keys=KEYS)
    assert "no number of replicas gives 10 ms" in table(rows, 10.0)
    assert "none suffice" in table(rows, 10.0)
    write(tmp_path / "new" / "out", rows, {}, 10.0)
    assert {path.name for path in (tmp_path / "new" / "out").iterdir()} == {"plan.json", "plan.svg"}


def test_the_same_seed_gives_the_same_plan():
    first, second = (as_json(plan(CURVE, ENGINE, WORK, (50,), 300.0, 4, keys=KEYS), {}) for _ in range(2))
    assert first == second


def test_waits_that_nobody_had_have_no_number():
    slow = CostCurve((0,), (1, 33), ((900.0, 2000.0),))
    rows = plan(slow, ENGINE, WORK, (50,), None, 1, keys=KEYS)
    assert math.isinf(rows[0].answers[0].ms[1])
    assert "too long" in table(rows, None)
    assert as_json(rows, {})["rows"][0]["answers"][0]["p95_ms"] is None
    ElementTree.fromstring(picture(rows, None))
