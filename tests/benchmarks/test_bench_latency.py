"""Typing sessions: where they come from, how they are typed, and one with the real server."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.capacity import sessions as pace
from benchmarks.latency import latency, typing
from benchmarks.latency.figures import Log, figures, in_server, on_the_same_keys
from benchmarks.latency.fim_order import order_of, with_order
from benchmarks.latency.latency import Plan, llama_server_line, run
from benchmarks.latency.llama_vim import LlamaVim, Sent
from benchmarks.latency.typing import Press, Session, Typed, sessions, type_sessions
from codespec.languages import by_id
from codespec.models.registry import EMBEDDED_TARGET
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
    assert session.before.endswith("\n")
    assert session.after.startswith("\n")  # the line that is typed into was opened before
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


def test_figures_of_a_log_of_keys() -> None:
    log = Log(
        [
            Press("along", asked=True, waited=1.0, from_key=11.0, text="x", memory=True),
            Press("along", asked=True, waited=3.0, from_key=13.0),
            Press("typing", asked=True),
            Press("typing", asked=True, waited=20.0, from_key=30.0, text="y"),
        ],
        status={
            "prefill_tokens": 5,
            "read_ahead": 10,
            "pass_ms": 2.0,
            "stop_decode_ms": {"count": 4, "p50": 1.0, "p95": 3.0},
        },
    )
    found = figures(log)
    assert found["stop_decode_in_passes"] == {"p50": 0.5, "p95": 1.5}
    along, typed, thought = (found["requests"][kind] for kind in ("along", "typing", "thought"))
    assert along["waited"] == {"p50": 3.0, "p95": 3.0, "p99": 3.0}
    assert along["all_keys"] == along["from_key"] == {"p50": 13.0, "p95": 13.0, "p99": 13.0}
    assert (along["answered"], along["with_text"], along["from_memory"]) == (2, 1, 1)
    assert (typed["keys"], typed["asked"], typed["answered"], typed["with_text"]) == (2, 2, 1, 1)
    assert typed["from_key"]["p50"] == 30.0
    assert typed["all_keys"] == {"p50": None, "p95": None, "p99": None}  # one of the two was never answered
    assert (thought["keys"], thought["waited"]) == (0, {})
    tokens = found["prompt_tokens"]
    assert (tokens["total"], tokens["per_answer"], tokens["per_answer_without_ahead"]) == (15, 5.0, 1.7)


def test_figures_of_requests_to_llama_server() -> None:
    log = Log([Press("typing", asked=True, waited=4.0, from_key=4.0, text="x")])
    log.sent = [Sent("first", 4.0, 30, 8), Sent("speculative", 9.0, 10, 16)]
    found = figures(log)
    assert found["prompt_tokens"]["total"] == 40
    assert found["prompt_tokens"]["per_answer_without_ahead"] == 30.0
    assert found["sent"]["speculative"]["ms"]["p50"] == 9.0


def test_two_arms_are_compared_on_the_keys_that_both_answered() -> None:
    own = Log([Press("typing", from_key=4.0, text="x"), Press("typing", from_key=900.0), Press("typing", from_key=6.0)])
    other = Log([Press("typing", from_key=9.0, text="y"), Press("typing"), Press("typing", from_key=3.0, text="z")])
    found = on_the_same_keys(own, other)
    assert [found["answered by both"][whose]["p99"] for whose in ("own", "other")] == [6.0, 9.0]
    assert found["with text from both"]["keys"] == 1
    assert figures(own)["requests"]["all"]["text_within"] == {"50 ms": 0.333, "100 ms": 0.333, "200 ms": 0.333}


def test_an_answer_behind_a_pause_is_compared_with_its_decoding() -> None:
    answer = {"kind": "thought", "memory": False, "prefill_tokens": 1, "prefill_ms": 2.0, "total_ms": 14.5, "ms": 15.0}
    others = [{**answer, "kind": "typing", "ms": 99.0}, {**answer, "memory": True, "ms": 0.1}]
    found = in_server([answer, *others], "thought")
    assert found["count"] == 1
    assert found["over_decoding"]["p50"] == 1.2
    assert in_server([answer, *others], "all")["count"] == 2


def test_a_copy_of_the_target_with_the_other_order(tmp_path: Path) -> None:
    assert order_of(EMBEDDED_TARGET) == "spm"
    copy = with_order(EMBEDDED_TARGET, "psm", tmp_path)
    assert order_of(copy) == "psm"
    assert order_of(with_order(copy, "spm", tmp_path)) == "spm"
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF" + bytes(100))
    assert order_of(other) == "psm"
    with pytest.raises(CodespecError, match="no entry for the order"):
        with_order(other, "spm", tmp_path)


def test_the_command_of_llama_server_leaves_room_for_an_answer() -> None:
    line = llama_server_line(Path("server"), Path("a.gguf"), 2, 512, "spm", ["-fa", "off"])
    settings = dict(zip(line[1::2], line[2::2], strict=False))
    assert int(settings["--batch-size"]) + int(settings["--predict"]) <= int(settings["--ctx-size"])
    assert settings["--threads"] == settings["--threads-batch"] == "2"
    assert line[-3:] == ["--spm-infill", "-fa", "off"]
    assert "--spm-infill" not in llama_server_line(Path("server"), Path("a.gguf"), 2, 8192, "psm", [])


class Infill:
    """A stand-in for ``/infill`` that says what is typed, after a while."""

    def __init__(self, whole: str) -> None:
        self.whole, self.bodies, self.running, self.most = whole, [], 0, 0

    async def __call__(self, body: dict[str, Any]) -> dict[str, Any]:
        self.bodies.append(body)
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0.02)
        self.running -= 1
        before = (body["input_prefix"] + body["prompt"]).removeprefix("\n")
        assert self.whole.startswith(before)
        line = self.whole[len(before) :].split("\n")[0]
        return {"content": line, "timings/prompt_n": 3, "timings/predicted_n": len(line)}


def type_with_llama_vim(session: Session, ask: Any) -> tuple[LlamaVim, Typed]:
    typed = Typed()

    async def go() -> LlamaVim:
        plugin = LlamaVim(ask, seed=1)
        plugin.start()
        await type_sessions(plugin, [session], 1, typed, lambda message: None)
        await plugin.stop()
        return plugin

    return asyncio.run(go()), typed


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "KEY_MS", 60.0)
    monkeypatch.setattr(typing, "LAST_WAIT_S", 0.5)
    monkeypatch.setattr(typing, "BETWEEN_S", 0.0)


def test_llama_vim_asks_once_and_answers_what_is_typed_along_from_its_cache(hasty: None) -> None:
    session = Session("a.py", by_id("python"), "import math\n", "area = math.pi * radius", "\nprint(area)\n")
    ask = Infill(session.before + session.typed + "\n")
    plugin, typed = type_with_llama_vim(session, ask)
    assert plugin.failures == []
    assert ask.most == 1  # no request beside another
    assert len(typed.presses) == len(session.typed)
    along = [press for press in typed.presses if press.kind == "along"]
    assert len(along) > len(session.typed) / 2
    assert all(press.memory and press.waited is None for press in along)
    first, speculative = ask.bodies[0], next(body for body in ask.bodies if body["t_max_predict_ms"] == 1000)
    assert (first["input_prefix"], first["prompt"]) == ("import math\n", "")
    assert first["input_suffix"] == "\nprint(area)\n\n"
    assert (first["t_max_predict_ms"], first["n_predict"], first["n_indent"]) == (250, 128, 0)
    assert speculative["prompt"] == session.typed  # as if what is shown had been accepted
    assert {each.role for each in plugin.sent} == {"first", "speculative"}


def test_llama_vim_shows_nothing_that_stands_below_already(hasty: None) -> None:
    session = Session("a.py", by_id("python"), "x = 1\n", "pr", "\nprint(x)\n")
    plugin, typed = type_with_llama_vim(session, Infill("x = 1\nprint(x)\n"))
    assert {each.role for each in plugin.sent} >= {"first"}
    assert [press.text for press in typed.presses] == ["", ""]
    assert any(press.from_key is not None for press in typed.presses)


def test_llama_vim_does_not_ask_in_the_middle_of_a_line(hasty: None) -> None:
    session = Session("a.py", by_id("python"), "", "ab", "= a long rest of the line\n")
    ask = Infill("")
    assert type_with_llama_vim(session, ask)[0].sent == []
    assert ask.bodies == []


def test_a_session_with_the_server(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    (repository / "shapes.py").write_text(BEFORE + ADDED + ADDED.replace("volume", "surface") + AFTER.replace("2", "3"))
    git(repository, "commit", "-qam", "three")
    monkeypatch.setattr(pace, "KEY_MS", 40.0)
    monkeypatch.setattr(typing, "LAST_WAIT_S", 1.0)
    monkeypatch.setattr(typing, "BETWEEN_S", 0.0)
    monkeypatch.setattr(latency, "SETTLE_S", 0.1)
    out = tmp_path / "out"
    plan = Plan(repository, ["full"], 1, 20.0, 1, out)
    assert run(plan, {}, lambda message: None) == 0
    report = json.loads((out / "latency.json").read_text())["arms"]["full"]
    everything, server = report["requests"]["all"], report["server"]
    assert 0 < everything["answered"] <= everything["asked"] <= everything["keys"]
    assert (server["state"], server["target"]) == ("ready", "target")
    assert 0 < server["requests"] <= everything["asked"]
    assert server["memory_ms"]["count"] == server["from_memory"] >= report["requests"]["along"]["from_memory"]
    assert server["pass_ms"] > 0
    assert server["stop_decode_ms"]["count"] + server["stop_prefill_ms"]["count"] > 0
    assert report["prompt_tokens"]["total"] == server["prefill_tokens"] + server["read_ahead"]
    assert "<svg" in (out / "latency.svg").read_text()
    assert "from memory" in capsys.readouterr().out
    with pytest.raises(CodespecError, match="nonesuch"):
        run(plan, {"target": {"path": "/nonesuch.gguf"}}, lambda message: None)
    with pytest.raises(CodespecError, match="no arm fast"):
        run(Plan(repository, ["fast"], 1, 20.0, 1), {}, lambda message: None)
