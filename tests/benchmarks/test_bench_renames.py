"""Judges of renames tell what is another variable, and renames in files of this repository go on as they say."""

import random
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.renames.judges import GoJudge, Judged, PythonJudge, Rename, TypeScriptJudge
from benchmarks.renames.renames import let_pass, offered, report, run
from codespec.protocols import CodespecError

PYTHON = "total = 0\n\ndef add(n):\n    global total\n    total += n\n\ndef other(total):\n    return total\n"
TYPESCRIPT = "let total = 0;\nfunction add() { return { total } }\nfunction other(total: number) { return total }\n"
GO = "package p\n\nvar total = 0\n\nfunc add() { total++ }\n\nfunc other(total int) int { return total }\n"


def places(text):
    found, at = [], text.find("total")
    while at >= 0:
        found.append(at)
        at = text.find("total", at + 1)
    return found


def judged(judge, rename, which):
    found = places(rename.text)
    return judge.judged(rename, {found[each]: rename.new for each in which})


def checked(judge, name, text, own):
    """``own``: of the places which are the global's; the first one is the one that was renamed."""
    rename = Rename(Path(name), text, places(text)[0], "total", "result")
    assert judge.uses(rename) == len(own)
    assert judge.judged(rename, offered(rename)) == Judged(0, 0)
    others = set(range(1, len(places(text)))) - set(own)
    for each in others:
        assert judged(judge, rename, [each]).wrong == 1
        assert judge.of_others(rename, {places(text)[each]}) == 1
    assert judge.of_others(rename, let_pass(rename, random.Random(1))) == 0
    assert judged(judge, rename, []).missed == len(own)


def test_python():
    checked(PythonJudge(), "a.py", PYTHON, [1, 2])
    text = "total = 1\n\ndef f(a):\n    return a + total\n"
    captured = Rename(Path("a.py"), text, text.index("a)"), "a", "total")
    assert PythonJudge().judged(captured, {text.index("a +"): "total"}) == Judged(0, 0, captured=True)


def test_typescript():
    try:
        judge = TypeScriptJudge()
    except CodespecError as error:
        pytest.skip(str(error))
    with closing(judge):
        checked(judge, "a.ts", TYPESCRIPT, [1])
        rename = Rename(Path("a.ts"), TYPESCRIPT, places(TYPESCRIPT)[0], "total", "result")
        assert judged(judge, rename, [1]).wrong == 1  # `{ result }` is another property


@pytest.mark.skipif(shutil.which("go") is None, reason="go is missing")
def test_go(tmp_path):
    with closing(GoJudge(tmp_path)) as judge:
        checked(judge, str(tmp_path / "a.go"), GO, [1])


def test_renames_in_this_repository(tmp_path, capsys):
    """With the benchmark's own judge; packages of all languages are for the command (docs/next-edit.md)."""
    folder = Path(__file__).parents[2] / "codespec"
    assert run([folder], ["python"], 15, 1, tmp_path / "renames.jsonl", lambda _: None) == 0
    assert "| python | 15 |" in capsys.readouterr().out


def test_what_is_wrong_fails(tmp_path):
    row = {"language": "python", "fresh": True, "due": 2, "offered": 3, "wrong": 1, "missed": 0, "captured": False}
    row |= {"passed": 5, "of_others": 2}
    assert list(report([row]))[-1] == "| python | 1 | 1 | 1 | 0 | 5 | 2 | 1 | 1 | 2 | 2 |"


def test_languages_without_a_judge_are_named(tmp_path):
    with pytest.raises(CodespecError, match="nothing judges renames of rust"):
        run([tmp_path], ["rust"], 1, 1, None, lambda _: None)
