"""Which lines use the name that an edit replaced."""

import pytest

from codespec.edits.formats import WindowPrompt
from codespec.edits.formats.marks import marks, told_by
from codespec.edits.request import RecentEdit as Change


def shown(text, change, language="python"):
    prompt = WindowPrompt("a.py", language, text, 0, recent=(change,))
    return "".join(mark or "." for mark in marks(prompt, told_by(change)))


SCOPES = """\
def f(total):
    # count
    x.count("count")
    return count
def g(count):
    return count
"""


def test_a_parameter_is_one_name_in_its_function_alone():
    assert shown(SCOPES, Change("a.py", 0, "def f(count):\n", "def f(total):\n")) == ".." + "~*" + "~~"


def test_an_edit_of_another_document_may_mean_any():
    assert shown(SCOPES, Change("b.py", 9, "count = 1\n", "total = 1\n")) == "..****"


@pytest.mark.parametrize(
    ("text", "before", "after", "marked"),
    [
        ("def g():\n    return f()\ndef h(f): return f\nx = f()\n", "def f():\n", "def g():\n", ".***"),
        ("self.total = count\nself.count += 1\nf(count=2)\n", "self.count = count\n", "self.total = count\n", "~**"),
        ("f(a, x)\ng(a)\ny = f(b)\ndef f(c): pass\nf\n# f(a)\n", "f(a)\n", "f(a, x)\n", "..**.."),
        ("f(a).b\ng(a)\ny = f(b)\n", "f(a)\n", "f(a).b\n", "..*"),
        ("# total x\ncount = 1\n# count y\n", "# count x\n", "# total x\n", "..*"),
        ("é = total(\nif é: count +\n", "é = count(\n", "é = total(\n", ".*"),
    ],
    ids=["function", "attribute", "argument", "behind a call", "word of a comment", "errors and other characters"],
)
def test_what_stands_for_the_same(text, before, after, marked):
    assert shown(text, Change("a.py", 0, before, after)) == marked


def test_without_a_parser_every_word_counts():
    assert shown("total\n-- count\ncounts\n", Change("a.py", 0, "count\n", "total\n"), "plaintext") == ".*."


@pytest.mark.parametrize("line", [-1, 7, 10**9])
def test_a_line_that_is_not_there(line):
    assert len(shown("total\ncount\n", Change("a.py", line, "count\n", "total\n"))) == 2
