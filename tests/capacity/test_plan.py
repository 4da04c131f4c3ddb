"""``python -m benchmarks plan``, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.capacity.plan import read_curve, read_engine
from benchmarks.commands import main
from codespec.errors import CodespecError

EXAMPLE = Path(__file__).parents[2] / "examples" / "costs-1.5b-amx.json"


def test_a_plan(tmp_path, capsys):
    out = tmp_path / "out"
    arguments = ["plan", "--developers", "2,1", "--curve", str(EXAMPLE), "--keys", "600", "--out", str(out)]
    assert main([*arguments, "--within", "3000", "--engine", "slots=4, cache=8"]) == 0
    text = capsys.readouterr().out
    rows = [line.split() for line in text.splitlines()]
    assert [row[0] for row in rows[1:3]] == ["1", "2"]
    assert "no answers from memory" in text
    assert (out / "plan.svg").read_text().startswith("<svg")
    data = json.loads((out / "plan.json").read_text())
    assert (data["developers"], data["within_ms"]) == ([1, 2], 3000.0)
    assert data["rows"][0]["engine"]["slots"] == 4


def test_json(capsys):
    arguments = ["plan", "--developers", "5", "--curve", str(EXAMPLE)]
    assert main([*arguments, "--active", "0.2", "--keys", "600", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["developers"] == [5]
    assert data["rows"][0]["answers"][0]["developers"] == 1


def test_the_curve_of_a_profile(tmp_path):
    curve = json.loads(EXAMPLE.read_text())
    path = tmp_path / "profile.json"
    path.write_text(json.dumps({"target": {"model": "big", **curve}, "draft": {}}))
    assert read_curve(path) == read_curve(EXAMPLE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[1]", "not a cost curve"),
        ("{}", "not a cost curve: 'contexts'"),
        ('{"contexts": [0], "tokens": [1, 2], "ms": [[1]]}', "do not fit together"),
        ('{"contexts": [0], "tokens": [1], "ms": [[-1]]}', "no such milliseconds"),
        ('{"target": 3}', "not a cost curve"),
        (" " * (2 << 20), "too large"),
    ],
)
def test_bad_curves(tmp_path, capsys, text, said):
    path = tmp_path / "curve.json"
    path.write_text(text)
    assert main(["plan", "--developers", "1", "--curve", str(path)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "benchmarks profile --out" in error


def test_no_curve(tmp_path, capsys):
    assert main(["plan", "--developers", "1", "--curve", str(tmp_path / "none.json")]) == 2
    assert "give profile.json of `python -m benchmarks profile --out DIR`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("slot=3", "'slot=3' is no setting; give KEY=VALUE,… of slots, batch"),
        ("slots", "is no setting"),
        ("slots=0", "slots='0' must be a whole number from 1 to 4,096"),
        ("slots=two", "must be a whole number"),
        ("prefill=nan", "prefill='nan' must be a number"),
        ("overhead_ms=-1", "must be a number from 0"),
        ("accepted=2", "accepted=2 of draft=0 proposed tokens is too many"),
    ],
)
def test_bad_engines(text, said):
    with pytest.raises(CodespecError, match=r"--engine: ") as error:
        read_engine(text)
    assert said in str(error.value)


def test_an_engine():
    engine = read_engine("slots=8,draft=4,accepted=2.5,replicas=3,")
    assert (engine.slots, engine.draft, engine.accepted, engine.replicas, engine.batch) == (8, 4, 2.5, 3, 2048)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--developers", "0"],
        ["--developers", "100001"],
        ["--developers", "many"],
        ["--developers", "1", "--within", "0"],
        ["--developers", "1", "--memory", "1.5"],
        ["--developers", "1", "--debounce", "-3"],
    ],
)
def test_bad_numbers(arguments, capsys):
    with pytest.raises(SystemExit) as error:
        main(["plan", "--curve", str(EXAMPLE), *arguments])
    assert error.value.code == 2
    assert "error: argument" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    arguments = ["plan", "--developers", "1", "--curve", str(EXAMPLE), "--keys", "200"]
    assert main([*arguments, "--out", str(tmp_path / "file" / "out")]) == 2
    assert "choose another --out" in capsys.readouterr().err
