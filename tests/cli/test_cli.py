"""Commands as a person calls them: output, exit codes, one-line errors."""

import ast
import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import get_args

import pytest

from benchmarks.commands import main as benchmark
from benchmarks.decode import learning
from codespec import Completer, Config, LocalEngine, Request, load_completer
from codespec.cli import show
from codespec.cli.complete import read_position
from codespec.cli.main import main
from codespec.completion.report import report_of
from codespec.errors import CodespecError
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import FinishReason, Round, Statistics

EXAMPLE = Path(__file__).parents[2] / "examples" / "shapes.py"

FIELDS = {
    "text", "finish_reason", "tokens", "target_calls", "drafted", "accepted", "by_source", "prefill_tokens",
    "reused_tokens", "grammar", "gate", "draft", "target", "timings_ms",
}  # fmt: skip


def test_complete_as_json(capsys):
    assert main(["complete", f"{EXAMPLE}:24", "--json", "--max-tokens", "20"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer.keys() == FIELDS
    assert answer["by_source"].keys() == {"model", "window", "ngram", "forced"}
    assert answer["timings_ms"].keys() == {"prefill", "draft", "verify", "grammar", "total"}
    assert answer["draft"] == "draft-python"
    assert answer["target"] == "target"
    assert answer["drafted"] == sum(count["drafted"] for count in answer["by_source"].values())
    assert answer["tokens"] <= 20


def test_complete_says_why_there_is_nothing(capsys, tmp_path):
    path = tmp_path / "deep.ts"
    path.write_text("async function f() { x = " + "await " * 20_000 + "a; }\n")
    assert main(["complete", f"{path}:1:120000"]) == 0
    said = capsys.readouterr()
    assert said.out.strip() == ""
    assert "codespec: no completion: The time for an answer was up" in said.err
    assert main(["complete", f"{EXAMPLE}:24", "--max-tokens", "20"]) == 0
    assert "no completion" not in capsys.readouterr().err


def test_complete_with_a_grammar_says_which(capsys):
    assert main(["complete", f"{EXAMPLE}:24", "--grammar", "auto", "--json", "--max-tokens", "10"]) == 0
    assert json.loads(capsys.readouterr().out)["grammar"] == "python"


def test_a_grammar_that_the_text_does_not_match_is_said_to_be_off(capsys, tmp_path):
    path = tmp_path / "broken.json"
    path.write_text("{,\n")
    assert main(["complete", f"{path}:2", "--grammar", "auto", "--json", "--max-tokens", "4"]) == 0
    assert json.loads(capsys.readouterr().out)["grammar"] == "none (json: line 1 does not match it)"


@pytest.mark.parametrize(
    ("options", "verdicts"), [(["--no-gate"], {"off"}), (["--gate", "whole"], {"passed", "cut", "broken", "dropped"})]
)
def test_the_gate_is_an_option(capsys, options, verdicts):
    assert main(["complete", f"{EXAMPLE}:24", "--json", "--max-tokens", "8", *options]) == 0
    assert json.loads(capsys.readouterr().out)["gate"] in verdicts


def test_bench_gate_judges_files_and_writes_its_table(capsys, tmp_path):
    out = tmp_path / "out"
    values = {f"key {n}": [n, {"more": None}] for n in range(20)}
    (tmp_path / "a.json").write_text(json.dumps(values, indent=1))
    arguments = ["gate", str(tmp_path), "--positions", "2", "--max-tokens", "8"]
    assert benchmark([*arguments, "--languages", "json", "--out", str(out)]) == 0
    found = json.loads((out / "gate.json").read_text())["languages"]["json"]["figures"]["all"]
    assert (found["positions"], found["worse"], found["changed"]) == (10, 0, 0)
    assert "| json | new line | 2 |" in capsys.readouterr().out
    assert benchmark([*arguments, "--languages", "go"]) == 2
    assert "no files" in capsys.readouterr().err
    assert benchmark([*arguments, "--languages", "json,markdown"]) == 2


def test_complete_shows_where_tokens_came_from(capsys):
    assert main(["complete", f"{EXAMPLE}:24", "--show", "--max-tokens", "20"]) == 0
    out = capsys.readouterr().out
    assert "drafted and accepted" in out
    assert "target calls" in out


def test_complete_shows_what_it_would_insert(capsys):
    arguments = ["complete", f"{EXAMPLE}:22", "--grammar", "python", "--exact"]
    assert main(arguments) == 0
    text = capsys.readouterr().out.rstrip("\n")
    assert main([*arguments, "--show"]) == 0
    assert text
    assert f"            raise {text}\n" in re.sub("⟦.*?⟧", "", capsys.readouterr().out)


def test_drafts_carry_text_that_resembles_what_is_there(capsys):
    path = EXAMPLE.with_name("figures.py")
    assert main(["complete", f"{path}:26", "--grammar", "auto", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["accepted"] > answer["tokens"] / 4  # less is proposed on a busy machine
    program: dict = {}
    exec(path.read_text().rstrip("\n") + answer["text"], program)
    assert str(program["Circle"](1.0)) == "area: 3.14"


@pytest.mark.parametrize(
    ("reason", "gate", "said"),
    [("stop", "passed", "complete"), ("length", "off", "at the limit of tokens"), ("length", "cut", "cut back to")],
)
def test_the_summary_says_why_a_text_has_ended(reason, gate, said):
    report = report_of(Statistics(), "none", gate, None, str(EMBEDDED_TARGET))
    assert f"finished: {said}" in show.summary(report, reason, (), 1.5)[0]
    assert set(show.ENDS) == set(get_args(FinishReason))


def test_the_summary_says_why_nothing_was_drafted():
    alone, drafted = Round((1,)), Round((1, 2), (1,), 1, ("ngram",))
    by_model = report_of(Statistics(), "none", "passed", Path("draft-python.gguf"), str(EMBEDDED_TARGET))
    assert len(show.summary(by_model, "stop", (alone, drafted), 1.5)) == 1
    (_, why) = show.summary(by_model, "stop", (alone, drafted, alone), 1.5)
    assert why == "no draft in 2 of 3 target calls, which take 1.5 ms each: none was expected to save time"
    without = report_of(Statistics(), "none", "passed", None, str(EMBEDDED_TARGET))
    assert show.summary(without, "stop", (alone,), 1.5)[1].endswith("there is no draft model")


def test_seeds_and_samples_give_different_texts(capsys):
    arguments = ["generate", "import ", "--temperature", "1.5", "--max-tokens", "12", "--n", "3", "--json"]
    texts = []
    for seed in ("1", "2", "1"):
        assert main([*arguments, "--seed", seed]) == 0
        texts.append([json.loads(line)["text"] for line in capsys.readouterr().out.splitlines()])
    assert texts[0] == texts[2] != texts[1]
    assert len(set(texts[0])) == 3


def test_texts_are_different_and_a_lack_of_them_is_told(capsys):
    assert (
        main(["generate", "--regex", "[ab]c?", "--n", "10", "--temperature", "9", "--top-p", "1", "--min-p", "0"]) == 0
    )
    captured = capsys.readouterr()
    assert sorted(captured.out.split()) == ["a", "ac", "b", "bc"]
    assert captured.err == (
        "codespec: only 4 of 10 texts: further draws repeat them; raise --temperature, if there are any others\n"
    )
    assert main(["generate", "--regex", "[ab]c?", "--n", "2"]) == 0
    assert "only 1 of 2 texts: further draws repeat them; set a --temperature above 0" in capsys.readouterr().err


def test_generate_a_regular_expression(capsys):
    assert main(["generate", "--regex", "[0-9]{3}-[a-f]+;", "--json", "--max-tokens", "60", "--temperature", "1"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["finish_reason"] in ("stop", "length")
    assert answer["text"][3] == "-"


def test_generate_a_schema(capsys, tmp_path):
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps({"type": "object", "properties": {"answer": {"enum": [True, False]}},
                                  "required": ["answer"], "additionalProperties": False}))  # fmt: skip
    assert main(["generate", "--json-schema", str(schema), "--max-tokens", "100"]) == 0
    assert json.loads(capsys.readouterr().out)["answer"] in (True, False)


def test_grammar_check(capsys, tmp_path):
    assert main(["grammar", "check", "json"]) == 0
    path = tmp_path / "bad.gbnf"
    path.write_text('root ::= "a" | itm\nitem ::= "b"\n')
    assert main(["grammar", "check", str(path)]) == 1
    assert "bad.gbnf:1:16" in capsys.readouterr().out


def test_grammar_accepts(capsys, tmp_path):
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text('{"a": [1, 2.5e3, "é"]}')
    bad.write_text('{\n  "a": 01}')
    assert main(["grammar", "accepts", "json", str(good)]) == 0
    assert capsys.readouterr().out == f"{good}: accepted\n"
    assert main(["grammar", "accepts", "json", str(good), str(bad)]) == 1
    assert f"{bad}: rejected at 2:9, expected " in capsys.readouterr().out
    assert main(["grammar", "accepts", "json", str(good), str(bad), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == [
        {"file": str(good), "accepted": True, "line": None, "column": None},
        {"file": str(bad), "accepted": False, "line": 2, "column": 9},
    ]


UPSTREAM = [
    case
    for case in json.loads((Path(__file__).parents[1] / "data" / "gbnf_upstream.json").read_text("utf-8"))
    if case["kind"] == "grammar"
]


@pytest.mark.parametrize("case", UPSTREAM, ids=lambda case: case["name"])
def test_upstream_grammars(case, capsys, tmp_path):
    grammar = tmp_path / "g.gbnf"
    grammar.write_bytes(case["source"].encode())
    expected = []
    for accepted, texts in ((True, case["accept"]), (False, case["reject"])):
        for text in texts:
            path = tmp_path / f"{len(expected)}.txt"
            path.write_bytes(text.encode())
            expected.append((str(path), accepted))
    main(["grammar", "check", str(grammar)])  # warnings are welcome, errors would show below
    capsys.readouterr()
    assert main(["grammar", "accepts", str(grammar), *(file for file, _ in expected), "--json"]) == 1
    answers = json.loads(capsys.readouterr().out)
    assert [(answer["file"], answer["accepted"]) for answer in answers] == expected


def test_models_list(capsys):
    assert main(["models", "list"]) == 0
    assert {"target", "draft-python"} <= {line.split()[0] for line in capsys.readouterr().out.splitlines()}


ERRORS = [
    (["complete", "nowhere.py:1"], "nowhere.py: no such file; check the path"),
    (["complete", str(EXAMPLE)], "no line given; write FILE:LINE or FILE:LINE:COL"),
    (["complete", f"{EXAMPLE}:999"], "shapes.py:999: no such line; give one from 1 to 30"),
    (["complete", f"{EXAMPLE}:0"], "shapes.py:0: no such line; give one from 1 to 30"),
    (["complete", f"{EXAMPLE}:3:99"], "shapes.py:3:99: no such column; give one from 1 to 12"),
    (["complete", f"{EXAMPLE}:3", "--target", "nonesuch"], "no target model 'nonesuch'; give the path of a .gguf file"),
    (["complete", f"{EXAMPLE}:3", "--target", "./nonesuch.gguf"], "./nonesuch.gguf: no such model file; "),
    (["complete", f"{EXAMPLE}:3", "--draft", "nonesuch"], "no draft model 'nonesuch'"),
    (["complete", f"{EXAMPLE}:3", "--grammar", "jsn"], "jsn: no such grammar; "),
    (["generate", "--grammar", "none.gbnf"], "none.gbnf: no such grammar"),
    (["generate", "é" * 5_000], "the prompt has 10,001 tokens, the model's context 1,024; shorten it"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), ERRORS, ids=lambda value: str(value)[:40])
def test_bad_input_is_one_line_that_names_cause_and_remedy(arguments, message, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("codespec: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["complete"],
        ["nonsense"],
        ["generate", "--temperature", "-1"],
        ["generate", "--top-p", "2"],
        ["generate", "--draft-length", "-1"],
    ],
)
def test_bad_usage(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--n", "x"], "argument --n: 'x' is no whole number"),
        (["--seed", "1.5"], "argument --seed: '1.5' is no whole number"),
        (["--temperature", "x"], "argument --temperature: 'x' is no number"),
    ],
)
def test_what_is_no_number_is_named(arguments, message, capsys):
    with pytest.raises(SystemExit):
        main(["generate", *arguments])
    assert message in capsys.readouterr().err


def test_not_utf8(tmp_path, capsys):
    path = tmp_path / "latin.py"
    path.write_bytes(b"x = '\xe9'\n")
    assert main(["complete", f"{path}:1"]) == 2
    assert "latin.py:1:6: not UTF-8; save the file as UTF-8" in capsys.readouterr().err


def test_positions(tmp_path):
    path = tmp_path / "a b:c.py"
    path.write_bytes(b"\xef\xbb\xbf" + "eins\r\nzwei🦙x\nend".encode())
    assert read_position(f"{path}:1:1")[1][0] == "e"
    assert read_position(f"{path}:1")[2] == 4
    assert read_position(f"{path}:2:5")[2] == 10
    assert read_position(f"{path}:2")[2] == 12
    assert read_position(f"{path}:3:1")[2] == 13
    with pytest.raises(CodespecError, match="no such column; give one from 1 to 7"):
        read_position(f"{path}:2:8")
    path.write_bytes(b"eins\rzwei\r\rvier")
    assert read_position(f"{path}:4:2")[1:] == ("eins\nzwei\n\nvier", 12)


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from codespec.cli.main import build_parser; build_parser().format_help()\n"
        "print([m for m in ('numpy', 'llama_cpp', 'pygls', 'lark', 'llguidance', 'platformdirs') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_reader_that_goes_away_is_no_failure():
    command = [sys.executable, "-m", "codespec", "generate", "--n", "20", "--max-tokens", "200", "--temperature", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ})
    assert process.stdout is not None
    process.stdout.read(1)
    process.stdout.close()
    assert process.stderr is not None
    error = process.stderr.read()
    process.stderr.close()
    process.wait(timeout=60)
    assert b"Traceback" not in error


def test_complete_reads_what_its_workspace_has_learnt(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("CODESPEC_DATA", str(tmp_path / "data"))
    folder = tmp_path / "w" / "src"
    folder.mkdir(parents=True)
    (tmp_path / "w" / ".git").mkdir()
    (folder / "a.py").write_text("import os\n\n\ndef to")
    arguments = ["complete", f"{folder / 'a.py'}:4", "--json", "--max-tokens", "40", "--draft", "none"]
    arguments += ["--temperature", "1", "--seed", "3", "--exact"]  # such text repeats itself less than greedy text

    def answer():
        assert main(arguments) == 0
        return json.loads(capsys.readouterr().out.splitlines()[-1])

    def taught():
        files = (tmp_path / "data").rglob("*.sqlite")
        rows = [row for file in files for row in sqlite3.connect(file).execute("SELECT kind, tokens FROM segments")]
        return sorted(rows)

    before = answer()
    assert not taught(), "a command teaches nothing"
    engine = LocalEngine(EMBEDDED_TARGET, exact=True)
    completer = Completer(engine, Config())
    workspace = (tmp_path / "w").as_uri()
    [same] = Completer(engine, Config(max_tokens=40, draft="none", temperature=1.0, seed=3, time_budget_ms=0)).complete(
        Request("import os\n\n\ndef to", 18, "python", "a.py")
    )
    assert same.text == before["text"]
    written = b"".join(engine.vocabulary.token_bytes(token) for step in same.rounds for token in step.tokens)
    completer.learn("import os\n\n\ndef to" + written.decode(), "b.py", "python", workspace)
    completer.close()
    lesson = taught()
    assert lesson
    after = answer()
    assert after["text"] == before["text"]
    # How many is a matter of what passes cost while the test runs; on a busy machine one answer may do without.
    more = (each["by_source"]["ngram"]["accepted"] for each in (after, answer(), answer()))
    assert max(more) > before["by_source"]["ngram"]["accepted"]
    assert taught() == lesson
    assert main(["learnt", "clear", str(tmp_path / "w")]) == 0
    assert not taught()
    assert answer()["by_source"]["ngram"]["accepted"] < after["by_source"]["ngram"]["accepted"]


def test_what_was_read_in_a_workspace_is_forgotten_with_what_was_learnt(tmp_path, monkeypatch):
    monkeypatch.setenv("CODESPEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CODESPEC_DATA", str(tmp_path / "data"))
    text = "def area(width, height):\n    return width * height\n" * 8
    for name in "wv":
        with closing(load_completer(Config())) as completer:
            completer.prefill(
                Request(text, len(text), "python", str(tmp_path / name / "a.py"), workspace=str(tmp_path / name))
            )
    assert len(list((tmp_path / "cache" / "kv").iterdir())) == 2
    assert main(["learnt", "clear", str(tmp_path / "w")]) == 0
    assert len(list((tmp_path / "cache" / "kv").iterdir())) == 1


def test_bench_learning(capsys, tmp_path):
    source = Path(learning.__file__)
    assert benchmark(["learning", str(source), "--positions", "3", "--out", str(tmp_path)]) == 0
    passes = json.loads((tmp_path / "learning.json").read_text())["passes"]
    assert len(passes) == 10
    share = {each["pass"]: each["ngram_share_of_text"] for each in passes if each["drafts"] == "n-grams alone"}
    assert share["second, files as before"] > max(0.5, share["first"])
    assert share["nothing learnt"] < share["second, files edited"]
    assert len(capsys.readouterr().out.splitlines()) == 12


def test_an_edited_file_is_still_python_and_always_the_same():
    for path in sorted(EXAMPLE.parent.parent.joinpath("codespec").rglob("*.py")):
        text = path.read_text("utf-8")
        edited = learning.edit(text, "1")
        ast.parse(edited)
        assert edited == learning.edit(text, "1")
        if text.count("\n") > 100:
            assert edited != text
            assert edited != learning.edit(text, "2")
