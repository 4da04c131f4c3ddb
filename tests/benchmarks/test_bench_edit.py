"""Cases are read, offers are judged by what shares nothing with what makes them, and counted."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.edit import judging, report
from benchmarks.edit.case import Case, read_cases
from benchmarks.edit.git_cases import git_cases
from benchmarks.edit.replay import chosen, outcome
from benchmarks.quality.judges import judge_of
from codespec.edits.formats.sweep import SweepV1
from codespec.edits.predictor import EditPredictor
from codespec.edits.request import Edit, RecentEdit
from codespec.languages import by_id
from codespec.protocols import CodespecError
from tests.edits.scripted import scripted_engine

TEXT = "def f(a):\n    total = a\n    print(size)\n    return size\n"
RENAMED = TEXT.replace("size", "total")
CASE = Case(
    "rename", "p", "a.py", "python", TEXT, 19, (RecentEdit("a.py", 1, "    size = a\n", "    total = a\n"),), RENAMED
)


def edit(old, new, text=TEXT):
    at = text.index(old)
    return Edit("a.py", at, at + len(old), new)


def test_cases_are_read(tmp_path):
    data = {
        "kind": "rename", "package": "p", "path": "a.py", "language": "python", "text": TEXT, "offset": 19,
        "recent": [{"path": "a.py", "line": 1, "before": "    size = a\n", "after": "    total = a\n",
                    "context_before": "", "context_after": ""}],
        "updated": RENAMED,
    }  # fmt: skip
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(data) + "\n", "utf-8")
    assert list(read_cases(path)) == [CASE]
    path.write_text(json.dumps({**data, "text": "# \u2028\n"}, ensure_ascii=False) + "\n", "utf-8")
    assert [each.text for each in read_cases(path)] == ["# \u2028\n"]
    path.write_text(json.dumps(data) + "\n{}\n", "utf-8")
    with pytest.raises(CodespecError, match=r"cases\.jsonl:2: no case"):
        list(read_cases(path))


def test_a_form_feed_ends_no_line():
    """As in editors, and in the lines that edits are told by."""
    case = replace(CASE, text="# \f\n" + TEXT, recent=(replace(CASE.recent[0], line=2),))
    start = case.text.index("total")
    assert judging.undone(case, [Edit("a.py", start, start + len("total"), "size")])


def test_right_and_wrong_offers():
    right = outcome(
        EditPredictor(scripted_engine(RENAMED), SweepV1(), renames=False), CASE, 60_000, judge_of(by_id("python"))
    )
    assert (right.exact, right.part, right.raw, right.right == right.wanted == right.made) == (
        True,
        True,
        "exact",
        True,
    )
    part = outcome(
        EditPredictor(scripted_engine(TEXT.replace("size", "total", 1)), SweepV1(), renames=False), CASE, 60_000, None
    )
    assert (part.exact, part.part, part.right, part.wanted) == (False, True, 9, 18)
    none = outcome(EditPredictor(scripted_engine(TEXT), SweepV1(), renames=False), CASE, 60_000, None)
    assert (none.shown, none.exact, none.raw, none.why) == (False, False, "none", "no edit")
    kept = outcome(
        EditPredictor(scripted_engine(RENAMED.replace("(total)", "(total")), SweepV1(), renames=False),
        CASE,
        60_000,
        None,
    )
    assert (kept.shown, kept.raw, kept.refused) == (False, "wrong", "parses worse")
    found = report.figures([right, part, none, kept])
    assert (found["cases"], found["shown"], found["exact"], found["part"]) == (4, 2, 1, 1)
    assert (found["recall"], found["precision"]) == (37.5, 100.0)
    assert "rename python" in report.table([right, part])


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([edit("total", "size")], True),
        ([edit("    total = a\n", "")], True),
        ([edit("total = a", "total = a + 1")], False),
        ([edit("print(size)", "print(total)")], False),
    ],
)
def test_what_undoes(edits, expected):
    assert judging.undone(CASE, edits) is expected


def test_deleted_lines_that_come_back():
    case = Case("none", "p", "a.py", "python", "a\nc\n", 2, (RecentEdit("a.py", 1, "b\n", ""),), "a\nc\n")
    assert judging.undone(case, [Edit("a.py", 2, 2, "b\n")])
    assert not judging.undone(case, [Edit("a.py", 4, 4, "d\n")])


def test_other_harm():
    assert judging.worse(judge_of(by_id("python")), CASE, TEXT + "(")
    assert not judging.worse(judge_of(by_id("python")), CASE, RENAMED)
    assert judging.larger_than_needed(CASE, [edit("print(size)", "print(total)")])
    assert not judging.larger_than_needed(CASE, [edit("size", "total")])
    assert judging.only_space(CASE, TEXT + "\n")
    assert judging.outside(CASE, [edit("def", "x"), edit("return", "y")], 2)
    assert not judging.outside(CASE, [edit("def", "x"), edit("return", "y")], 3)


def test_so_many_of_each_kind():
    cases = [CASE] * 5 + [Case("none", "p", "b.py", "python", "a\n", 0, (), "a\n")] * 2
    assert sorted(each.kind for each in chosen(cases, 2, 1)) == ["none", "none", "rename", "rename"]
    assert len(chosen(cases, 0, 1)) == 7


def test_commits_are_cases(tmp_path):
    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True
        )

    before = "".join(f"x{n} = old(1)\n" if n in (3, 8) else f"x{n} = {n}\n" for n in range(30))
    git("init", "-q")
    for text in (before, before.replace("old", "new")):
        Path(tmp_path / "a.py").write_text(text, "utf-8")
        git("add", "a.py")
        git("commit", "-qm", "a")
    (case,) = git_cases(tmp_path)
    assert case.updated == before.replace("old", "new")
    assert case.text == before.replace("old", "new", 1)
    assert [(each.line, each.before, each.after) for each in case.recent] == [(3, "x3 = old(1)\n", "x3 = new(1)\n")]
    assert case.text[: case.offset].endswith("x3 = new(1)")
