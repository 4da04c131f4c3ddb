"""The typist: what is typed, what is thought of what is shown, and that files hold what was typed."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.latency.typing import key_presses
from benchmarks.typing.passages import Passage, passages
from benchmarks.typing.typing import table
from benchmarks.typing.typist import Typist
from benchmarks.typing.verdicts import is_flicker, verdict
from codespec.protocols import CodespecError

ROOT = Path(__file__).parents[2]
PASSAGE = Passage(Path("a.py"), "python", "import os\n\n", "def f(a):\n    b = g(a, 1)\n    return b", "\n\nf(2)\n")


class Fake:
    """A window that shows ``show(document, cursor)``."""

    def __init__(self, show):
        self._show, self.accepted = show, 0

    def open(self, name, passage):
        self.name, self._left, self._right = name, passage.before, passage.after or "\n"

    def type(self, text):
        self._left += text

    def erase(self):
        self._left = self._left[:-1]

    def accept(self, text):
        self.accepted += 1
        self._left += text
        return True

    def ghost(self):
        return self._show(self._left)

    def why(self):
        return "nothing to add"

    def save(self):
        return self._left + self._right


def the_line(left):
    """The rest of the author's line."""
    whole = PASSAGE.before + PASSAGE.typed
    return whole[len(left) :].split("\n")[0] if whole.startswith(left) else ""


def typed(show, seed=3):
    window = Fake(show)
    typist = Typist(window, seed, 2, lambda text: None)
    while not typist.done:
        typist.type(PASSAGE, "a.py")
    return typist.record, window


def test_what_is_right_is_taken():
    record, window = typed(the_line)
    assert {each.verdict for each in record.pauses} == {"good"}
    assert window.accepted == 2
    assert record.saved > 5
    assert record.keys < len(PASSAGE.typed) * 2
    assert (record.wrong, record.flicker) == ([], [])


def test_nothing_and_nonsense_are_told_apart():
    record, window = typed(lambda left: "")
    assert {(each.verdict, each.why, each.after_ms) for each in record.pauses} == {("nothing", "nothing to add", None)}
    record, window = typed(lambda left: "while True: pass")
    assert {each.verdict for each in record.pauses} == {"useless"}
    assert all(each.after_ms < 200 for each in record.pauses)
    assert (window.accepted, record.wrong) == (0, [])


def test_a_text_that_comes_and_goes_is_counted():
    texts = iter(["def", ""] * 10_000)
    shown = {}

    def show(left):
        shown[left] = next(texts)
        return shown[left] and the_line(left)

    record, _ = typed(show)
    assert record.flicker
    assert "good |" in table({"python": record})


def test_a_file_that_came_out_wrong_is_told():
    window: Any = Fake(the_line)
    window.accept = lambda text: True  # as if the key were lost
    typist = Typist(window, 3, 2, lambda text: None)
    while not typist.done:
        typist.type(PASSAGE, "a.py")
    assert any(line.startswith("a.py: ") for line in typist.record.wrong)


@pytest.mark.parametrize(
    ("shown", "wanted", "expected"),
    [
        ("", "x = 1\n", "nothing"),
        ("\n  ", "x = 1\n", "nothing"),
        ("x = 1", "x = 1\ny = 2\n", "good"),
        ("x  =  1\nz = 3", "x = 1\ny = 2\n", "good"),
        ("x = f(", "x = f(1)\n", "good"),
        ("x = 2", "x = 1\n", "acceptable"),
        ("self.radius = 1", "self.radius = radius\n", "acceptable"),
        ("total_of = all", "total_off = al\n", "acceptable"),
        ("print(x)", "x = 1\n", "useless"),
        (")", "):\n    pass", "useless"),
        ("\n    return a", "\n    return a\n", "good"),
    ],
)
def test_what_a_person_thinks_of_a_text(shown, wanted, expected):
    assert verdict(shown, wanted) == expected


@pytest.mark.parametrize(
    ("before", "typed", "now", "expected"),
    [
        ("abc", "a", "bc", False),
        ("abc", "a", "", True),
        ("abc", "a", "xy", True),
        ("abc", "x", "", False),
        ("abc", "abc", "", False),
        ("abc", "", "abcd\ne", False),
        ("", "", "abc", False),
        ("abc", "", "", True),
        ("\n    a b", "\n    ", "a b", False),
        (": x", " ", "", False),
        ("), 1", ")", "", True),
    ],
)
def test_what_a_person_calls_flicker(before, typed, now, expected):
    assert is_flicker(before, typed, now) is expected


def test_passages_come_from_files_and_go_back_into_them():
    found = [each for each, _ in zip(passages([ROOT / "codespec"], "python", 5), range(20), strict=False)]
    assert len({each.path for each in found}) == 20
    for each in found:
        text = each.path.read_text("utf-8")
        assert text.startswith(each.before + each.typed)
        assert text == each.before + each.typed + each.after or not each.after
        assert "".join(key_presses(each.typed)) == each.typed
        assert each.before.endswith("\n")
    assert {bool(each.after) for each in found} == {True, False}
    assert found[:3] == [each for each, _ in zip(passages([ROOT / "codespec"], "python", 5), range(3), strict=False)]


def test_a_folder_without_such_files_is_named(tmp_path):
    with pytest.raises(CodespecError, match="no files of go in"):
        next(passages([tmp_path], "go", 1))
    with pytest.raises(CodespecError, match=r"no such file or folder: .*nowhere"):
        next(passages([tmp_path / "nowhere"], "go", 1))
