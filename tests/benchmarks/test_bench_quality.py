"""Requests of typed sessions: where they come from, what is counted, and a run with the embedded models."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from benchmarks.latency.typing import Session
from benchmarks.quality import quality
from benchmarks.quality.quality import Outcome, duplicates, failures, figures, from_file, places, run, typed_sessions
from codespec.languages import by_id
from codespec.protocols import CodespecError

PYTHON = "".join(f"def function_{n}(value):\n    total = value + {n}\n    return total\n\n\n" for n in range(20))
JSON = json.dumps({f"key {n}": [n, {"a": True}] for n in range(30)}, indent=2)


def outcome(**changes: object) -> Outcome:
    plain = {
        "path": "a.py", "language": "python", "line": 1, "before": "", "after": "", "wanted": "", "text": "x",
        "reason": "stop", "gate": "passed", "raw": True, "duplicate": False, "authors": False, "errors": 0,
        "document_errors": 0, "finished_errors": 0, "ms": 2.0,
    }  # fmt: skip
    return Outcome(**{**plain, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("prefix", "text", "suffix", "expected"),
    [
        ("if a:\n    ", "run()", "\n    run()\n", True),
        ("if a:\n    ru", "n()", "\n    run()\n", True),
        ("if a:\n    ", "stop()\n    run()", "\n\n    run()\n", True),
        ("x = f(", "1", ")\nx = f(1)\n", True),
        ("if a:\n    ", "stop()", "\n    run()\n", False),
        ("f(\n    a", ",\n)", "\n)\n", False),
        ("a", " ", "\na\n", False),
        ("a", "b", "", False),
    ],
)
def test_a_line_that_follows_and_is_inserted_again(prefix: str, text: str, suffix: str, expected: bool) -> None:
    assert duplicates(prefix, text, suffix) is expected


def test_figures_count_what_was_wrong() -> None:
    outcomes = [
        outcome(),
        outcome(text="", raw=True, gate="dropped"),
        outcome(text=" ", raw=False),
        outcome(duplicate=True, authors=True, errors=2, document_errors=2),
        outcome(language="json", errors=3, document_errors=1, finished_errors=5),
        outcome(language="toml", errors=-1, document_errors=-1, finished_errors=-1),
    ]
    found = figures(outcomes)
    assert (found["count"], found["with_text"], found["target_has_text"]) == (6, 4, 5)
    assert found["answered_where_target_has_text"] == 0.8
    assert (found["duplicates"], found["duplicates_of_the_author"]) == (1, 1)
    assert found["judged_by_errors"] == 3
    assert found["no_worse_than_the_document"] == pytest.approx(2 / 3, abs=1e-4)
    assert found["no_worse_than_the_finished_file"] == pytest.approx(2 / 3, abs=1e-4)
    assert found["languages"]["toml"]["no_worse_than_the_document"] is None
    assert {kind: len(of) for kind, of in failures(outcomes).items()} == {
        "no text where the target has any": 1,
        "the line behind the cursor again": 1,
        "more errors than the document": 1,
        "more errors than the finished file": 1,
    }
    assert "66.7%" in quality.summary(found)


def test_sessions_of_files_are_runs_of_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(PYTHON)
    for seed in range(20):
        session = from_file(path, random.Random(seed))
        if session is not None:
            assert session.before + session.typed + session.after == PYTHON
            assert session.before == "" or session.before.endswith("\n")
            assert 40 <= len(session.typed) <= 800
    path.write_bytes(b"\xff" * 100)
    assert from_file(path, random.Random(1)) is None


def test_languages_take_turns(tmp_path: Path) -> None:
    for n in range(5):
        (tmp_path / f"{n}.py").write_text(PYTHON)
    (tmp_path / "a.json").write_text(JSON)
    chosen = typed_sessions([tmp_path], 10, random.Random(1))
    assert sum(session.language.id == "json" for session in chosen) in range(3, 8)
    with pytest.raises(CodespecError, match="no files"):
        typed_sessions([tmp_path / "nonesuch"], 1, random.Random(1))


def test_places_are_between_keys() -> None:
    session = Session("a.py", by_id("python"), "", "if a:\n    b = 1\n", "")
    ends = {1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15, 16}  # never inside the indentation that comes with a line
    found = [each for seed in range(30) for each in places(session, 5, random.Random(seed))]
    assert set(found) == ends
    assert places(session, 99, random.Random(1)) == sorted(ends)


def test_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text(PYTHON)
    (tmp_path / "a.json").write_text(JSON)
    config = quality.settings(max_tokens=16)
    told: list[str] = []
    assert run([tmp_path], 12, 1, tmp_path / "out", config, told.append, shown=1) == 0
    report = json.loads((tmp_path / "out" / "quality.json").read_text())
    assert (report["count"], len(told), told[-1]) == (12, 13, "")  # the last empties the line
    assert report["with_text"] > 0
    assert report["target_has_text"] > 0
    assert set(report["languages"]) == {"json", "python"}
    assert report["judged_by_errors"] == report["with_text"]
    assert sum(report["gate"].values()) == 12
    assert "finish reasons" in capsys.readouterr().out


def test_the_gate_can_be_switched_off(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(PYTHON)
    config = quality.settings(gate="off", max_tokens=16)
    assert run([tmp_path], 5, 1, tmp_path / "out", config, lambda message: None) == 0
    assert set(json.loads((tmp_path / "out" / "quality.json").read_text())["gate"]) == {"off"}
