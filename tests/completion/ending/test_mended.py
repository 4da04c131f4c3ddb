"""What follows the cursor once the brackets of other lines are in pairs."""

from __future__ import annotations

import pytest

from codespec.completion.ending.mended import mended
from codespec.languages import by_id
from codespec.syntax.tree import syntax_tree


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("javascript", "function f() {\n  a;\n  |", "\n}"),
        ("javascript", "function f(a) {\n  return [\n    |\n", "\n\n]}"),
        ("javascript", "f = { a: `${{\n|", "\n}}}"),
        ("javascript", "if (a) {\n  |\n}\nfunction f() {\n", "\n}\nfunction f() {\n\n}"),
        ("javascript", "f([\n|\n  a,\n)\n", "\n  a,\n])\n"),
        ("javascript", "|\n  return a;\n}\n\nfunction g() {\n}\n", "\n  return a;\n"),
        ("javascript", "f = {\n|\n  a: 1\n}\n}\n", "\n  a: 1\n}\n"),
        ("javascript", "a = /[(]/; // (\nif (a) {\n|", "\n}"),
        ("python", "a = f(\n    |\n", "\n\n)"),
        ("c", "int f() {\n  |\n", "\n\n}"),
        # Indentation tells which one is missing.
        ("javascript", "class A {\n  f() {\n    |\n\n  g() {\n  }\n}\n", "\n\n}\n  g() {\n  }\n}\n"),
        ("javascript", "f(() => {\n  a({ b|\n    c;\n  }\n  d;\n});\n", "\n    c;\n\n})"),
        ("go", "func f() {\n\tif a {\n\t\t|\n\treturn\n}\n", "\n}\n\treturn\n}\n"),
        # Nothing to mend, or the text's own to close.
        ("javascript", "function f() {\n  a;\n  |\n}\n", None),
        ("javascript", "f(|\n", None),
        ("javascript", "function f() {|\n", None),
        ("javascript", "if (a) {\n  f(|\n}\n", None),
        ("javascript", "f(\n  [|\n)\n", None),
        # One that closes nothing is near, or before the cursor.
        ("javascript", "|\n}\na;\n", None),
        ("javascript", "a |)\n\n", None),
        ("javascript", "}\nif (a) {\n  |\n", None),
        ("json", '{"a": 1,\n |\n', None),
        ("plaintext", "(\n|\n", None),
    ],
)
def test_brackets_of_other_lines(language: str, text: str, expected: str | None) -> None:
    before, _, after = text.partition("|")
    tree = syntax_tree(by_id(language), before + after)
    brackets = tree.brackets if tree is not None else [(0, "(")]
    assert mended(before + after, len(before), brackets, by_id(language)) == expected


@pytest.mark.parametrize(
    ("text", "closes", "expected"),
    [
        ("f(() => {\n  g(() => {\n    |\n", 0, "\n\n})})"),
        ("f(() => {\n  g(() => {\n    |\n", 2, "\n\n})"),
        ("f(() => {\n  g(() => {\n    |\n", 9, None),
        ("f(() => {\n  g(() => {\n    |\n});\n", 2, None),  # what is left is in order
        ("f(() => {\n  g(() => {\n    |\n});\n", 1, "\n)\n});\n"),
        ("f(() => {\n  g(() => {|\n", 2, "\n\n})"),  # the text's own to close, counted or not
        ("f(() => {\n  g(() => {|\n", 0, "\n\n})"),
    ],
)
def test_brackets_that_a_text_closes(text: str, closes: int, expected: str | None) -> None:
    before, _, after = text.partition("|")
    language = by_id("javascript")
    tree = syntax_tree(language, before + after)
    assert tree is not None
    assert mended(before + after, len(before), tree.brackets, language, closes) == expected


def test_brackets_stand_where_they_do_in_characters() -> None:
    text = 'ä = "(" + f("€") // )\n'
    tree = syntax_tree(by_id("javascript"), text)
    assert tree is not None
    assert [(text[at], sign) for at, sign in tree.brackets] == [("(", "("), (")", ")")]
