"""The figures of ``python -m benchmarks profile``, from a curve that is known."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.commands import main
from benchmarks.decode.profile import Profile, best_length, clipped, conclusion, table, write
from codespec import LocalEngine
from codespec.draft.costs import CostCurve
from codespec.draft.storage.profiles import Profiles, Setup
from codespec.models.registry import EMBEDDED_TARGET

SETUP = Setup("library", ("EPYC",), 0, 2, "f16", "auto", False, 0)
# Up to 4 tokens cost hardly more than 1, then there is a step.
CURVE = CostCurve((0, 1024), (1, 2, 4, 5, 33), ((10, 11, 12, 30, 90), (20, 40, 80, 100, 700)), 0.25)
TARGET = Profile("target", Path("big.gguf"), 1_500_000_000, SETUP, CURVE)
DRAFT = Profile("draft", Path("small.gguf"), 5_000_000, SETUP, CostCurve((0,), (1, 33), ((4.0, 60.0),)))


def test_the_best_length_lies_before_a_step_or_far_behind_it():
    assert best_length(CURVE, 0) == pytest.approx((32, 33 * 10 / 90))
    assert best_length(CURVE, 0, draft_ms=4.0) == pytest.approx((3, 4 * 10 / (12 + 3 * 4)))
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


def test_profile_measures_and_remembers(capsys, tmp_path, monkeypatch):
    kept, out = tmp_path / "kept", tmp_path / "out"
    monkeypatch.setenv("CODESPEC_PROFILES", str(kept))
    arguments = ["profile", "--contexts", "0,9000", "--repeats", "1", "--threads", "1"]
    assert main([*arguments, "--out", str(out)]) == 0
    captured = capsys.readouterr()
    assert "target.gguf: its context is 1,024 tokens and a pass needs 40; measured at 0, 984" in captured.err
    assert "draft draft-python: " in captured.out
    assert captured.out.count("  33 ") == 2
    assert re.search(r"at context 984 (a perfect draft would give at most \d+\.\dx at|no draft can)", captured.out)
    found = json.loads((out / "profile.json").read_text())
    assert found.keys() == {"target", "draft"}
    assert found["target"]["contexts"] == [0, 984]
    assert found["target"]["tokens"][-1] == 33
    assert len(list(kept.iterdir())) == 2
    engine = LocalEngine(EMBEDDED_TARGET, threads=1, profiles=Profiles(kept))
    assert engine.costs.curve.contexts == (0, 984)
    engine.close()

    assert main(["profile", "--contexts", "0", "--repeats", "1", "--draft", "none", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out).keys() == {"target"}
    assert captured.err == ""


@pytest.mark.parametrize("wrong", [("--contexts", "0,x"), ("--contexts", "-1"), ("--repeats", "0")])
def test_bad_usage(wrong, capsys):
    with pytest.raises(SystemExit):
        main(["profile", *wrong])
