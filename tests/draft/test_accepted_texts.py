"""Accepted completions on the disk: what is kept, and that it can be read and deleted whatever happens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from codespec.cli.main import main
from codespec.draft.storage.accepted_texts import (
    PREFIX,
    SUFFIX,
    AcceptedText,
    accepted_folder,
    around,
    forget,
    keep,
    languages_kept,
    load,
    training_folder,
)
from codespec.draft.storage.token_log import workspace_key

RECORD = AcceptedText(1.0, "a-1", "w", "python", "a.py", "def f(", "x):", "\n    return x\n")
POSIX = pytest.mark.skipif(os.name == "nt", reason="modes of files are POSIX")


def record(number: int, **changes) -> AcceptedText:
    return replace(RECORD, time=float(number), offer=f"a-{number}", **changes)


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("CODESPEC_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CODESPEC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "data"


def test_round_trip(tmp_path):
    assert load(["python"], tmp_path / "kept") == []
    assert languages_kept(tmp_path / "kept") == {}
    assert not (tmp_path / "kept").exists(), "reading creates nothing"
    odd = record(3, language="c++", text='ü\u2028"\\\n\t😋')
    for each in (record(2), record(1), odd):
        keep(each, tmp_path / "kept")
    assert load(["python", "c++"], tmp_path / "kept") == [record(1), record(2), odd]
    assert set(languages_kept(tmp_path / "kept")) == {"python", "c++"}


def test_of_a_completion_accepted_bit_by_bit_the_last_record_counts(tmp_path):
    for index, text in enumerate(["x", "x)", "x):"]):
        keep(replace(RECORD, time=float(index), text=text), tmp_path)
    assert [each.text for each in load(["python"], tmp_path)] == ["x):"]


@POSIX
def test_nobody_else_can_read_it(tmp_path):
    keep(RECORD, tmp_path / "kept")
    assert (tmp_path / "kept").stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "kept").iterdir())


def test_the_oldest_are_dropped_beyond_the_limit(tmp_path):
    for number in range(200):
        keep(record(number), tmp_path, most_bytes=4_000)
        assert (tmp_path / "python.jsonl").stat().st_size <= 4_000
        numbers = [int(each.time) for each in load(["python"], tmp_path)]
        assert numbers == list(range(number + 1 - len(numbers), number + 1))
    assert len(numbers) > 10


def test_a_crash_while_writing_costs_the_last_record_alone(tmp_path):
    keep(record(1), tmp_path)
    path = tmp_path / "python.jsonl"
    before = path.read_bytes()
    keep(record(2), tmp_path)
    whole = path.read_bytes()
    for end in range(len(before), len(whole), 7):
        path.write_bytes(whole[:end])
        assert load(["python"], tmp_path) == [record(1)]
        keep(record(3), tmp_path)
        assert load(["python"], tmp_path) == [record(1), record(3)]
    path.write_bytes(before + bytes(50))  # as some file systems leave it
    keep(record(3), tmp_path)
    assert load(["python"], tmp_path) == [record(1), record(3)]


@pytest.mark.parametrize(
    "line", [b"", b"[]", b"{", b"\xff", b"{}", b'{"time": 1}', json.dumps({**vars(RECORD), "text": 3}).encode()]
)
def test_what_is_no_record_is_left_out(tmp_path, line):
    keep(record(1), tmp_path)
    with (tmp_path / "python.jsonl").open("ab") as file:
        file.write(line + b"\n")
    keep(record(2), tmp_path)
    assert load(["python"], tmp_path) == [record(1), record(2)]


def test_half_a_character_is_not_written(tmp_path):
    with pytest.raises(UnicodeEncodeError):
        keep(record(1, text="\ud83d"), tmp_path)
    assert load(["python"], tmp_path) == []


def test_several_processes_at_once(tmp_path):
    code = (
        "import sys; from pathlib import Path; from test_accepted_texts import record\n"
        "from codespec.draft.storage.accepted_texts import keep\n"
        "for n in range(40): keep(record(1000 * int(sys.argv[2]) + n), Path(sys.argv[1]))"
    )
    folders = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": folders}
    command = [sys.executable, "-c", code, str(tmp_path)]
    processes = [subprocess.Popen([*command, str(each)], env=environment) for each in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    found = [int(each.time) for each in load(["python"], tmp_path)]
    assert found == [1000 * process + n for process in range(3) for n in range(40)]


def test_whole_lines_around_a_place_are_kept():
    text = "".join(f"line {n}\r\n" for n in range(3000))
    offset = text.index("1500") + 2
    before, behind = around(text, offset)
    plain = text.replace("\r\n", "\n")
    assert before + behind in plain
    assert before.startswith("line ")
    assert before.endswith("line 15")
    assert behind.startswith("00\n")
    assert behind.endswith("\n")
    assert PREFIX - 20 < len(before) <= PREFIX
    assert SUFFIX - 20 < len(behind) <= SUFFIX
    assert around("x = 1", 4) == ("x = ", "1")
    assert [len(each) for each in around("y" * 50_000, 25_000)] == [PREFIX, SUFFIX]


def test_forgetting_a_workspace(tmp_path, data):
    mine, other = tmp_path / "mine", tmp_path / "other"
    for number, folder in enumerate([mine, other, mine]):
        keep(record(number, workspace=workspace_key(folder)))
    keep(record(9, workspace=workspace_key(mine), language="go"))
    training_folder().mkdir(parents=True)
    forget(mine)
    assert [each.time for each in load(["python", "go"])] == [1]
    assert set(languages_kept()) == {"python"}
    assert not training_folder().exists(), "what training has made of it so far"
    forget()
    assert not list(accepted_folder().glob("*.jsonl"))
    forget(mine)


def test_the_commands(tmp_path, data, capsys):
    assert main(["learnt", "list"]) == 0
    assert "no accepted completions are kept" in capsys.readouterr().out
    for number in range(3):
        keep(record(number, workspace=workspace_key(tmp_path / f"w{number % 2}")))
    assert main(["learnt", "list"]) == 0
    assert "python            3 accepted completions" in capsys.readouterr().out
    assert main(["learnt", "list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["language"], found["completions"], found["first"], found["last"]) == ("python", 3, 0.0, 2.0)
    assert found["bytes"] == Path(found["file"]).stat().st_size
    assert main(["learnt", "list", "--language", "python"]) == 0
    assert capsys.readouterr().out.count("a.py\nx):\n") == 3
    assert main(["learnt", "list", "--language", "python", "--json"]) == 0
    assert [json.loads(line)["offer"] for line in capsys.readouterr().out.splitlines()] == ["a-0", "a-1", "a-2"]
    assert main(["learnt", "clear", str(tmp_path / "w0")]) == 0
    assert len(load(["python"])) == 1
    assert main(["learnt", "clear", "--accepted"]) == 0
    assert load(["python"]) == []


def test_training_says_what_is_missing(data, capsys):
    keep(RECORD)
    assert main(["train", "draft", "--language", "python", "--from-logs"]) == 2
    said = capsys.readouterr().err
    assert "-m pip install" in said or "only 1 accepted completions of python are kept" in said
