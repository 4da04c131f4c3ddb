"""Typing sessions: where they come from, how they are typed, and one with the real server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from codespec.bench import latency
from codespec.bench.latency import Answered, Log, Session, figures, run, sessions
from codespec.languages import by_id
from codespec.protocols import CodespecError

BEFORE = "import math\n\n\ndef area(radius):\n    return math.pi * radius**2\n\n\n"
ADDED = "def volume(radius):\n    return 4 / 3 * math.pi * radius**3\n\n\n"
AFTER = "print(area(2))\n"


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits: the second inserts a function, changes a line, and touches a file of no language."""
    git(tmp_path, "init", "-q")
    (tmp_path / "shapes.py").write_text(BEFORE + AFTER)
    (tmp_path / "notes").write_text("one\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    (tmp_path / "shapes.py").write_text(BEFORE + ADDED + AFTER.replace("2", "3"))
    (tmp_path / "notes").write_text("one\n" + "two\n" * 20)
    git(tmp_path, "commit", "-qam", "two")
    return tmp_path


def test_sessions_are_what_commits_inserted(repository: Path) -> None:
    (repository / "shapes.py").write_text(BEFORE + ADDED + ADDED.replace("volume", "surface") + AFTER.replace("2", "3"))
    git(repository, "commit", "-qam", "three")
    [session] = sessions(repository, 1, seed=1)
    assert session.before + session.typed + session.after == (repository / "shapes.py").read_text()
    assert session.typed.count("def surface") == 1
    assert (session.path, session.language.id) == ("shapes.py", "python")
    with pytest.raises(CodespecError, match=r"1 insertions of 40 to 400 characters, 2 wanted"):
        sessions(repository, 2, seed=1)


def test_no_history(tmp_path: Path) -> None:
    with pytest.raises(CodespecError, match="no history to take sessions from"):
        sessions(tmp_path, 1, seed=1)


def test_a_key_adds_a_character_or_a_line_with_its_indentation() -> None:
    session = Session("a.py", by_id("python"), "", "  if a:\n    b\n\nc\n", "")
    assert list(session.key_presses()) == ["  ", *"if a:", "\n    ", "b", "\n", "\n", "c", "\n"]
    assert "".join(session.key_presses()) == session.typed


def test_figures() -> None:
    log = Log([Answered("along", 1.0, "x"), Answered("along", 3.0), Answered("typing"), Answered("typing", 20.0, "y")])
    found = figures(log)["requests"]
    assert found["along"] == {"asked": 2, "answered": 2, "with_text": 1, "p50": 3.0, "p95": 3.0, "p99": 3.0}
    assert found["typing"] == {"asked": 2, "answered": 1, "with_text": 1, "p50": 20.0, "p95": 20.0, "p99": 20.0}
    assert found["thought"] == {"asked": 0, "answered": 0, "with_text": 0}


def test_a_session_with_the_server(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    (repository / "shapes.py").write_text(BEFORE + ADDED + ADDED.replace("volume", "surface") + AFTER.replace("2", "3"))
    git(repository, "commit", "-qam", "three")
    monkeypatch.setattr(latency, "KEY_MS", 40.0)
    monkeypatch.setattr(latency, "LAST_WAIT_S", 1.0)
    monkeypatch.setattr(latency, "SETTLE_S", 0.1)
    out = tmp_path / "out"
    assert run(repository, ["full"], 1, 20.0, 1, out, {}, lambda message: None) == 0
    report = json.loads((out / "latency.json").read_text())["arms"]["full"]
    asked = sum(each["asked"] for each in report["requests"].values())
    assert sum(each["answered"] for each in report["requests"].values()) > 0
    assert report["server"]["state"] == "ready"
    assert report["server"]["target"] == "target"
    assert 0 < report["server"]["requests"] <= asked
    assert report["server"]["from_memory"] >= report["requests"]["along"]["answered"]
    assert report["server"]["read_ahead"] > 0
    assert "<svg" in (out / "latency.svg").read_text()
    assert "from memory" in capsys.readouterr().out
    with pytest.raises(CodespecError, match="nonesuch"):
        run(repository, ["full"], 1, 20.0, 1, None, {"target": {"path": "/nonesuch.gguf"}}, lambda message: None)
    with pytest.raises(CodespecError, match="no arm fast"):
        run(repository, ["fast"], 1, 20.0, 1, None, {}, lambda message: None)
