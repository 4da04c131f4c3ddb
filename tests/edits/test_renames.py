"""Renames that were begun: what finishes them, and which changes of a model go on with them elsewhere."""

import re
from dataclasses import replace

import pytest

from codespec.edits.difference import Hunk, applied, hunks
from codespec.edits.history import EditHistory
from codespec.edits.renames import renames_another, rest_of_rename
from codespec.edits.request import EditRequest
from codespec.edits.windows import Window

GLOBAL = """total = 0

def add(n):
    global total
    total += n

def other(total):
    return total

def third():
    for total in x:
        pass
"""
IMPORT = """import config

def load():
    return config.path

def other(config):
    return config

def third():
    config = 1
    return config
"""
SHADOWED = """package p

func other(total int) int { return total }

type total int

func third(x total) { for total := range x { use(total) } }
"""


def request(path: str, before: str, *afters: str) -> EditRequest:
    """What is asked after a document was edited."""
    history = EditHistory()
    history.opened(path, before)
    for index, after in enumerate(afters):
        history.changed(path, after, now=1000.0 * (index + 1))
    suffix = path.rpartition(".")[2]
    language = {"py": "python", "js": "javascript", "go": "go", "rs": "rust"}[suffix]
    return EditRequest(path, language, afters[-1], 0, history.recent())


def renamed(text: str, line: int, old: str, new: str) -> str:
    """A text with one line's names replaced."""
    lines = text.split("\n")
    lines[line] = re.sub(rf"\b{old}\b", new, lines[line])
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("path", "text", "line", "old", "new", "lines"),
    [
        ("a.py", GLOBAL, 0, "total", "grand_total", [0, 3, 4]),
        ("a.py", GLOBAL, 6, "total", "grand_total", [6, 7]),
        ("a.py", GLOBAL, 4, "total", "grand_total", [0, 3, 4]),
        ("a.py", IMPORT, 0, "config", "settings", [0, 3]),
        ("a.py", IMPORT, 3, "config", "settings", [3]),
        ("a.py", IMPORT, 9, "config", "settings", [9, 10]),
        ("a.go", SHADOWED, 4, "total", "sum", [4, 6]),
        ("a.go", SHADOWED, 2, "total", "sum", [2]),
    ],
)
def test_the_rest_of_a_rename_is_of_one_variable(path, text, line, old, new, lines):
    asked = request(path, text, renamed(text, line, old, new))
    after = applied(asked.text, rest_of_rename(asked))
    changed = [
        row for row, (one, two) in enumerate(zip(text.split("\n"), after.split("\n"), strict=True)) if one != two
    ]
    assert changed == lines
    if path == "a.go" and line == 4:
        assert "func third(x sum) { for total := range x { use(total) } }" in after


@pytest.mark.parametrize(
    ("before", "after", "finished"),
    [
        ("const { old } = a; use(old)", "const { new1 } = a; use(old)", "const { new1 } = a; use(new1)"),
        ("let old; ({ old } = a); use({ old })", "let new1; ({ old } = a); use({ old })",
         "let new1; ({ old: new1 } = a); use({ old: new1 })"),
        ("let old = 1; export { old }", "let new1 = 1; export { old }", "let new1 = 1; export { new1 as old }"),
    ],
)  # fmt: skip
def test_properties_and_exports_keep_their_name(before, after, finished):
    asked = request("a.js", before, after)
    assert applied(after, rest_of_rename(asked)) == finished


def places(text: str, word: str) -> list[int]:
    return [match.start() for match in re.finditer(rf"\b{word}\b", text)]


def refused(asked: EditRequest, old: str, new: str, other: str = "") -> list[int]:
    """The lines, of another document or the same, in which a model's change that goes on with a rename is refused."""
    text = other or asked.text
    window = Window("b.py" if other else asked.path, asked.language, text, 0, 0, len(text))
    found = {
        text.count("\n", 0, at)
        for at in places(text, old)
        if renames_another(asked, window, [Hunk(at, at + len(old), new)])
    }
    shortest = {  # as a model's changes come, where a name only becomes longer
        text.count("\n", 0, at)
        for at in places(text, old)
        if renames_another(asked, window, hunks(text, text[:at] + new + text[at + len(old) :]))
    }
    assert shortest == found
    return sorted(found)


@pytest.mark.parametrize(
    ("path", "text", "line", "old", "new", "lines"),
    [
        ("a.py", GLOBAL, 0, "total", "grand_total", [6, 7, 10]),
        ("a.py", IMPORT, 0, "config", "settings", [5, 6, 9, 10]),
        ("a.py", "broken(\n\n" + GLOBAL, 2, "total", "grand_total", [5, 6, 8, 9, 12]),
        ("a.go", SHADOWED, 4, "total", "sum", [2, 6]),
        (
            "a.rs",
            "fn f(old: i32) -> i32 {\n    old\n}\nfn g(old: i32) -> i32 {\n    old\n}\n",
            0,
            "old",
            "fresh",
            [3, 4],
        ),
    ],
)
def test_a_model_does_not_rename_others(path, text, line, old, new, lines):
    asked = request(path, text, renamed(text, line, old, new))
    assert refused(asked, old, new) == lines


def test_a_rename_among_other_changes_counts():
    """A value that was changed as well, and an edit after it, do not switch the check off."""
    begun = GLOBAL.replace("total = 0", "grand_total = 1")
    assert refused(request("a.py", GLOBAL, begun), "total", "grand_total") == [6, 7, 10]
    further = begun.replace("pass", "print(n)")
    assert refused(request("a.py", GLOBAL, begun, further), "total", "grand_total") == [6, 7, 10]


def test_a_rename_whose_lines_are_gone_counts():
    """What it renamed cannot be told any more: nothing goes on with it."""
    begun = GLOBAL.replace("total = 0", "grand_total = 0")
    asked = request("a.py", GLOBAL, begun)
    asked = replace(asked, text=asked.text.replace("grand_total = 0", "grand_total = 1"))
    assert refused(asked, "total", "grand_total") == [3, 4, 6, 7, 10]


def test_other_changes_of_a_model_stand():
    asked = request("a.py", GLOBAL, renamed(GLOBAL, 0, "total", "grand_total"))
    at = asked.text.index("return total")
    window = Window("a.py", "python", asked.text, 0, 0, len(asked.text))
    assert not renames_another(asked, window, [Hunk(at, at + len("return total"), "return total + 1")])
    assert not renames_another(asked, window, [Hunk(at, at + len("return total"), "return None")])


OTHER = """from a import total, config
import a

print(total, a.total)
print(b.total)

def f(total):
    return total
"""


@pytest.mark.parametrize(
    ("line", "other", "lines"),
    [
        (0, OTHER, [4, 6, 7]),
        (6, OTHER, [0, 3, 4, 6, 7]),  # a parameter is known nowhere else
        (0, "total = 1\nprint(total)\n", [0, 1]),
        (0, "from a import *\nprint(total)\n", []),
        (0, "import a\na.total = (\n", [1]),  # beside errors nothing is known
    ],
)
def test_other_documents(line, other, lines):
    asked = request("a.py", GLOBAL, renamed(GLOBAL, line, "total", "grand_total"))
    assert refused(asked, "total", "grand_total", other) == lines


def test_a_rename_goes_on_after_a_part_of_it():
    text = "def f(size):\n    a = size\n    b = 1\n    c = 2\n    print(size)\n    return size\n"
    text += "\ndef g(size):\n    return size\n"
    first = renamed(text, 0, "size", "total")
    asked = request("a.py", text, first, renamed(first, 4, "size", "total"))
    assert applied(asked.text, rest_of_rename(asked)) == text.replace("size", "total", 4)
