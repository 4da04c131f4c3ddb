"""The figures and plots of ``codespec profile``, from a curve that is known."""

import math
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from codespec.cli.profile import Profile, best_length, clipped, conclusion, table, write
from codespec.draft.costs import CostCurve
from codespec.draft.storage.profiles import Setup
from codespec.plot import lines

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
    assert {"profile.json", "profile.svg"} <= {path.name for path in out.iterdir()}
    assert TARGET.as_json()["perfect_draft"]["0"] == {"length": 32, "speed_up": 3.667}


@pytest.mark.parametrize("most", [1e-4, 0.7, 1, 9.99, 10, 33, 99.9, 12_345])
def test_lines_stay_inside_the_plot(most):
    text = lines("a < b", "n", "ms", [("one & all", [(1, most / 3), (33, most)], False), ("two", [(1, 0.0)], True)])
    root = ElementTree.fromstring(text)
    name = "{http://www.w3.org/2000/svg}"
    solid, dashed = root.findall(f"{name}polyline")
    places = [tuple(map(float, pair.split(","))) for pair in solid.get("points").split()]
    assert all(60 <= x <= 620 and 48 <= y <= 388 for x, y in places)
    assert places[0][0] < places[1][0]
    assert places[0][1] > places[1][1]
    assert math.isclose(388 - places[0][1], (388 - places[1][1]) / 3, abs_tol=0.2)
    assert dashed.get("stroke-dasharray")
    assert {"a < b", "one & all", "two", "n", "ms"} <= {each.text for each in root.iter(f"{name}text")}


def test_nothing_to_draw():
    with pytest.raises(ValueError, match="without points"):
        lines("", "", "", [("one", [], False)])
