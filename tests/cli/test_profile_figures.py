"""The figures of ``codespec profile``, from a curve that is known."""

from dataclasses import replace
from pathlib import Path

import pytest

from codespec.cli.profile import Profile, best_length, clipped, conclusion, table, write
from codespec.draft.costs import CostCurve
from codespec.draft.storage.profiles import Setup

SETUP = Setup("library", ("EPYC",), 0, 2, "f16", "auto", False, 0)
# Up to 4 tokens cost hardly more than 1, then there is a step.
CURVE = CostCurve((0, 1024), (1, 2, 4, 5, 33), ((10, 11, 12, 30, 90), (20, 40, 80, 100, 700)), 0.25)
TARGET = Profile("target", Path("big.gguf"), 1_500_000_000, SETUP, CURVE)
DRAFT = Profile("draft", Path("small.gguf"), 5_000_000, SETUP, CostCurve((0,), (1, 33), ((4.0, 60.0),)))


def test_the_best_length_lies_before_a_step_or_far_behind_it():
    assert best_length(CURVE, 0) == (32, pytest.approx(33 * 10 / 90))
    assert best_length(CURVE, 0, draft_ms=4.0) == (3, pytest.approx(4 * 10 / (12 + 3 * 4)))
    assert best_length(CURVE, 1024) == (0, 1.0)


def test_the_conclusion_is_a_line_for_each_context():
    assert conclusion(TARGET, DRAFT).splitlines() == [
        "at context 0 a perfect draft would give at most 3.7x at 32 tokens; "
        "small, if it were always right, 1.7x at 3 tokens",
        "at context 1,024 no draft can gain anything: a pass costs as much for each of its tokens as one token does",
    ]
    slow = replace(DRAFT, curve=CostCurve((0,), (1, 33), ((50.0, 60.0),)))
    assert conclusion(TARGET, slow).splitlines()[0].endswith("small, if it were always right, nothing")


def test_the_table_names_every_figure():
    rows = table(TARGET).splitlines()
    assert rows[0] == "target big: 1,500,000,000 parameters, 2 threads"
    assert rows[1].split("context") == ["".ljust(22), " 0".ljust(16), " 1,024"]
    assert rows[5].split() == ["4", "12.00", "1.20", "333", "80.00", "4.00", "50"]
    assert "0.25 ms more" in rows[-1]
    assert len({len(row) for row in rows[1:-1]}) == 1


def test_contexts_are_clipped():
    assert clipped((0, 512, 2048, 4096), 472) == (0, 472)
    assert clipped((5, 0), 472) == (0, 5)
    assert clipped((512,), -3) == (0,)


def test_files(tmp_path):
    out = tmp_path / "new" / "folder"
    write(out, {"target": TARGET.as_json()}, [TARGET, DRAFT])
    assert "profile.json" in {path.name for path in out.iterdir()}
    assert TARGET.as_json()["perfect_draft"]["0"] == {"length": 32, "speed_up": 3.667}
