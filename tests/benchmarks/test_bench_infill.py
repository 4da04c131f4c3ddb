"""Gaps: where they are cut, what fills them, and what is counted of it."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.commands import main
from benchmarks.infill import doctests, human_eval
from benchmarks.infill.arms import Answer, until_suffix
from benchmarks.infill.cut import cut, is_written_by_hand, lines_of
from benchmarks.infill.infill import Plan, placed, run
from benchmarks.infill.outcome import outcome, similarity
from benchmarks.infill.packages import recipe
from benchmarks.infill.report import figures, groups
from benchmarks.infill.sandbox import passes, runs
from benchmarks.infill.sets import made, sample, tasks_of
from benchmarks.infill.settings import settings
from benchmarks.infill.task import KINDS, MULTI, SINGLE, SPAN, Task, behind_indentation, read, write
from benchmarks.quality.judges import judge_of
from codespec.languages import by_id
from codespec.models.registry import EMBEDDED, EMBEDDED_TARGET, models_folder
from codespec.protocols import CodespecError

PYTHON = '''"""A module of several lines
with text = that, is(no) code
"""

import os


def area(width, height):
    """The area = width * height, of a rectangle.

    >>> area(2, 3)
    6
    """
    # width = height * 2
    result = width * height
    if result < 0:
        raise ValueError("negative")
    note = """several = lines
    are = one, text
    """
    return result


def perimeter(width, height):
    """
    >>> perimeter(2, 3)
    10
    """
    if width < 0:
        raise ValueError("negative")
    total = width + height
    return 2 * total
'''
SOLUTION = """    result = []

    for value in values:
        result.append(2 * value)
    return result
"""
PROBLEM = {
    "task_id": "HumanEval/0",
    "entry_point": "double",
    "prompt": "def double(values):\n",
    "canonical_solution": SOLUTION,
    "test": "def check(candidate):\n    assert candidate([1, 2]) == [2, 4]\n",
}
JAVASCRIPT = """function add(a, b) {
  // a = b + c
  const sum = a + b;
  if (sum > 9) {
    log(sum, 9);
  }
  return sum;
}
"""
GO = """package main

func add(a int, b int) int {
	// a = b
	sum := a + b
	if sum > 9 {
		print(sum)
	}
	return sum
}
"""
RUST = """fn add(a: i32, b: i32) -> i32 {
    // a = b
    let sum = a + b;
    if sum > 9 {
        log(sum);
    }
    sum + 0
}
"""
C = """#include <stdio.h>

int add(int a, int b)
{
    /* a = b */
    int sum = a + b;
    if (sum > 9)
        puts("nine");
    return sum + 0;
}
"""
TEXTS = {"python": PYTHON, "javascript": JAVASCRIPT, "go": GO, "rust": RUST, "c": C}


def task(**changes: str) -> Task:
    plain = Task("a", "", "def f(a):\n", "\n    return b\n", "    b = a + 1", "")
    return replace(plain, **changes)


def test_the_published_format_is_read_and_a_line_break_goes_behind_the_cursor(tmp_path: Path) -> None:
    fields = {
        "task_id": "SingleLineInfilling/HumanEval/0/L0",
        "entry_point": "f",
        "prompt": "def f(a):\n",
        "canonical_solution": "    b = a + 1\n",
        "suffix": "    return b\n",
        "test": "def check(candidate):\n    assert candidate(1) == 2\n",
    }
    path = tmp_path / "set.jsonl.gz"
    span = {**fields, "task_id": "RandomSpanInfilling/HumanEval/0/1"}
    path.write_bytes(gzip.compress((json.dumps(fields) + "\n\n" + json.dumps(span)).encode()))
    line, within = read(path)
    assert (line.kind, line.cursor, line.language) == (SINGLE, "start", "python")
    assert (line.canonical_solution, line.suffix) == ("    b = a + 1", "\n    return b\n")
    assert (within.kind, within.cursor, within.canonical_solution) == (SPAN, "within", "    b = a + 1\n")
    assert passes(line, line.canonical_solution)
    assert not passes(line, "    b = a")


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    tasks = [task(kind=MULTI, language="rust", path="a.rs", package="p"), task(prompt="é\n", cursor="indentation")]
    for name in ("a.jsonl", "a.jsonl.gz"):
        write(tmp_path / name, tasks)
        assert read(tmp_path / name) == tasks


@pytest.mark.parametrize("text", ['{"task_id": "a"}', '{"task_id": 1}', "[]", "{", '"a"'])
def test_another_file_is_no_set(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(CodespecError, match=r"a\.jsonl"):
        read(tmp_path / "a.jsonl")


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_gap_with_its_solution_is_the_file(language: str, kind: str) -> None:
    text = TEXTS[language]
    found = [each for seed in range(20) for each in cut("a", text, by_id(language), kind, 3, random.Random(seed))]
    assert found
    for each in found:
        assert each.prompt + each.canonical_solution + each.suffix == text
        lines = each.canonical_solution.count("\n") + 1
        if kind == SPAN:
            assert each.canonical_solution.strip()
        else:
            assert each.prompt.endswith("\n") or not each.prompt
            assert each.suffix.startswith("\n")
            assert (lines == 1) == (kind == SINGLE)
        if kind == MULTI:
            assert all(each.canonical_solution.count(a) == each.canonical_solution.count(b) for a, b in ("()", "{}"))


def test_only_lines_of_code_that_are_there_once_are_cut_out() -> None:
    found = lines_of(PYTHON, by_id("python"))
    assert [found.lines[row].strip() for row in found.good] == [
        "def area(width, height):",
        "result = width * height",
        "if result < 0:",
        "def perimeter(width, height):",
        "if width < 0:",
        "total = width + height",
        "return 2 * total",
    ]


@pytest.mark.parametrize("line", ["// Code generated by protoc. DO NOT EDIT.", "var a = 1;" * 40, "\0"])
def test_what_programs_wrote_is_left_alone(line: str) -> None:
    assert is_written_by_hand(TEXTS["go"])
    assert not is_written_by_hand(f"{line}\n{TEXTS['go']}")


def test_gaps_of_human_eval_are_those_of_the_published_benchmark() -> None:
    found = list(human_eval.tasks([PROBLEM]))
    kinds = {kind: [each for each in found if each.kind == kind] for kind in KINDS}
    # 4 lines that are not blank, and the 4 + 3 + 2 + 1 runs of lines that begin and end with one.
    assert {kind: len(of) for kind, of in kinds.items()} == {SINGLE: 4, MULTI: 10, SPAN: 10}
    whole = PROBLEM["prompt"] + PROBLEM["canonical_solution"]
    assert all(each.prompt + each.canonical_solution + each.suffix == whole for each in found)
    assert kinds[SINGLE][1].task_id == "SingleLineInfilling/HumanEval/0/L2"
    assert passes(kinds[SINGLE][1], kinds[SINGLE][1].canonical_solution)
    assert not passes(kinds[SINGLE][1], "    for value in values[1:]:")


def test_a_set_is_made_of_the_problems_of_human_eval(tmp_path: Path) -> None:
    path = tmp_path / "HumanEval.jsonl"
    path.write_text(json.dumps(PROBLEM) + "\n")
    found = tasks_of([path], (), [SINGLE, SPAN], 2, 1, print)
    assert [each.kind for each in found] == [SINGLE, SINGLE, SPAN, SPAN]


def test_functions_with_examples_are_tested_by_them(tmp_path: Path) -> None:
    found = list(doctests.tasks(Path("a.py"), PYTHON, SINGLE, random.Random(1)))
    assert {each.entry_point for each in found} == {"area", "perimeter"}
    for each in found:
        assert passes(each, each.canonical_solution)
        assert not passes(each, "")
    wrong = PYTHON.replace("    10\n", "    11\n")
    assert {each.entry_point for each in doctests.tasks(Path("a.py"), wrong, SINGLE, random.Random(1))} == {"area"}
    foreign = PYTHON.replace("import os", "import numpy")
    assert not list(doctests.tasks(Path("a.py"), foreign, SINGLE, random.Random(1)))


def test_the_same_lines_with_both_cursors() -> None:
    first, second, top, span = task(), task(task_id="b", kind=MULTI), task(canonical_solution="b = 1"), task(kind=SPAN)
    found = placed([first, second, top, span], "both", seed=1)
    starts, behind = (
        [each.task_id for each in found if each.kind != SPAN and each.cursor == cursor]
        for cursor in ("start", "indentation")
    )
    assert starts == behind
    assert len(starts) == 2
    assert behind_indentation(first).prompt == "def f(a):\n    "
    assert behind_indentation(first).canonical_solution == "b = a + 1"
    assert len(placed([first, second, top, span], "indentation", seed=1)) == 3


@pytest.mark.parametrize(
    ("kind", "prompt", "suffix", "text", "expected"),
    [
        (SINGLE, "", "\n", "a = 1\nb = 2", "a = 1"),
        (SPAN, "f(", ")\n", "a, b) + c", "a, b"),
        (SPAN, "f(", ")\n", "a, b", "a, b"),
        (MULTI, "", "\n    return b\n", "    a = 1\n    b = 2\n    return b\n", "    a = 1\n    b = 2"),
        (MULTI, "    ", "\n    return b\n", "a = 1\n\ndef g():\n", "a = 1"),
        (MULTI, "", "\n    return b\n", "    return b\n    c\n", ""),
        (MULTI, "", "\n    return b\n", "    a = 1\n    retu", "    a = 1\n    retu"),
    ],
)
def test_where_a_text_without_an_end_is_ended(kind: str, prompt: str, suffix: str, text: str, expected: str) -> None:
    assert until_suffix(task(kind=kind, prompt=prompt, suffix=suffix), text) == expected


def test_outcomes_of_answers() -> None:
    judge = judge_of(by_id("python"))
    tested = task(entry_point="f", test="def check(candidate):\n    assert candidate(1) == 2\n")

    def judged(text: str, of: Task = tested) -> tuple[bool, bool | None, bool | None, bool | None]:
        found = outcome(of, Answer(text, 1.0), judge)
        return found.exact, found.parses, found.passes, found.first_line_passes

    assert judged("    b = a + 1") == (True, True, True, True)
    assert judged("    b = a + 1  \n    b = 0") == (True, True, False, True)
    assert judged("    b = 1 + a") == (False, True, True, True)
    assert judged("    b = (a") == (False, False, False, False)
    assert judged("\n") == (False, False, False, False)
    assert judged("    b = a + 1", task()) == (True, True, None, None)
    assert judged("    b = a + 1\n    c", task(kind=MULTI))[0] is False
    assert outcome(task(), Answer("x", 1.0), None).parses is None


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("", "", 1), ("a", "", 0), ("abcd", "abed", 0.75), ("ab", "ba", 0), ("abc", "bc", 2 / 3)],
)
def test_similarity_is_one_less_the_distance_per_character(one: str, other: str, expected: float) -> None:
    assert similarity(one, other) == pytest.approx(expected)


def test_figures_count_only_what_was_judged() -> None:
    outcomes = [
        outcome(task(), Answer("    b = a + 1", 10.0), None),
        outcome(task(kind=MULTI), Answer("", 30.0), None),
        outcome(task(language="go"), Answer("    b", 20.0), lambda _text, _path: []),
    ]
    found = figures(outcomes)
    assert (found["exact"], found["empty"], found["median_ms"]) == (0.3333, 0.3333, 20.0)
    assert (found["parses"], found["passes"], found["tested"]) == (1.0, None, 0)
    assert list(groups(outcomes)) == [
        ("go", SINGLE, "start"),
        ("python", MULTI, "start"),
        ("python", SINGLE, "start"),
        ("all", SINGLE, "start"),
        ("all", MULTI, "start"),
        ("all", "all", ""),
    ]


@pytest.mark.parametrize(
    ("program", "seconds", "expected"),
    [
        ("import math\nassert math.pi > 3\nopen('a', 'w').write('x')\n", 60, True),
        ("assert False", 60, False),
        ("import time; time.sleep(600)", 2, False),
        ("text = 'a' * (1 << 31)", 60, False),
        ("open('a', 'w').write('a' * (2 << 20))", 60, False),
    ],
)
def test_programs_run_within_limits(program: str, seconds: float, expected: bool) -> None:
    assert runs(program, seconds=seconds) is expected


def test_a_set_of_ones_own_code(tmp_path: Path) -> None:
    for number in range(4):
        text = (
            PYTHON.replace("area", f"area{number}").replace("result", f"result{number}").replace("total", f"t{number}")
        )
        folder = tmp_path / f"package{number}"
        folder.mkdir()
        (folder / "a.py").write_text(text)
        (folder / "test_a.py").write_text(text.replace("width", "w"))
    found = list(made([tmp_path], ["python"], KINDS, 3, 1, print))
    assert {kind: sum(each.kind == kind for each in found) for kind in KINDS} == dict.fromkeys(KINDS, 3)
    assert {each.path for each in found} == {"a.py"}
    assert len({each.package for each in found}) > 1
    assert len({(each.kind, each.canonical_solution.strip()) for each in found}) == len(found)
    assert found == list(made([tmp_path], ["python"], KINDS, 3, 1, print))
    assert len(sample(found, 1, seed=1)) == 3


def test_no_package_of_our_sets_was_learnt() -> None:
    learnt = {
        each["package"].lower()
        for name in ("manifest", "edit-manifest")
        for each in json.loads(gzip.decompress((EMBEDDED / f"{name}.json.gz").read_bytes()))
    }
    for package in recipe():
        kind = "" if package.registry.startswith("pypi") else f"{package.registry}/"
        assert f"{kind}{package.name}".lower() not in learnt
        assert len(package.sha256) == 64


def test_settings_are_a_new_users_with_what_is_given() -> None:
    config = settings("", 0, ["max_tokens=16", "context.enabled=false", "grammar=none", "gate = off"])
    assert (config.time_budget_ms, config.max_tokens, config.context.enabled) == (0, 16, False)
    assert (config.grammar, config.gate) == ("none", "off")
    assert settings("", None, []).time_budget_ms == 2000
    for wrong in ("max_tokens", "max_token=1", "max_tokens=many", "a b=1"):
        with pytest.raises(CodespecError, match="--settings"):
            settings("", None, [wrong])


def test_a_run_fills_in_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "set.jsonl"
    write(path, [task(task_id=str(number), prompt=f"x = {number}\ndef f(a):\n") for number in range(2)])
    plan = Plan([path], ("codespec", "read before", "plain"), cursor="both", out=tmp_path, show=1)
    assert run(plan, settings("", 0, ["max_tokens=8"]), lambda _text: None) == 0
    report = json.loads((tmp_path / "infill.json").read_text())
    for arm in plan.arms:
        outcomes = report["arms"][arm]["outcomes"]
        assert [each["cursor"] for each in outcomes] == ["start"] * 2 + ["indentation"] * 2
        assert any(each["text"].strip() for each in outcomes)
        assert all(each["parses"] is not None and each["passes"] is None for each in outcomes)
    texts = [[each["text"] for each in report["arms"][arm]["outcomes"]] for arm in ("codespec", "read before")]
    assert texts[0] == texts[1]
    assert "| plain | python | single-line | indentation | 2 |" in capsys.readouterr().out


def test_a_target_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CODESPEC_DATA", str(tmp_path / "data"))
    models_folder().mkdir(parents=True)
    (models_folder() / "mine.gguf").symlink_to(EMBEDDED_TARGET)
    write(tmp_path / "set.jsonl", [task()])
    assert main(["infill", str(tmp_path / "set.jsonl"), "--target", "mine", "--settings", "max_tokens=2"]) == 0
    assert "target mine.gguf, 2000 ms for an answer, seed 1" in capsys.readouterr().out
    assert main(["infill", str(tmp_path / "set.jsonl"), "--target", "yours"]) != 0
    assert "no target model 'yours'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [([], "--fetch DIR"), (["nowhere"], "no tasks in nowhere"), (["a.jsonl", "--arms", "fast"], "no arm 'fast'")],
)
def test_what_is_wrong_is_said(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["infill", *arguments]) != 0
    assert words in capsys.readouterr().err
