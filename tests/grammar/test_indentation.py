"""The indentations that a document uses."""

from __future__ import annotations

import itertools

import pytest

from codespec.grammar import Grammar
from codespec.grammar.check import accepts_text
from codespec.grammar.indentation import MAX_LEVELS, detect, extend, inside, unit_of


def blanks(*widths: int) -> tuple[str, ...]:
    return tuple(" " * width for width in widths)


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("", (0,)),
        ("x = 1\n", (0,)),
        ("if x:\n  y\n", (0, 2)),
        ("if x:\n  if y:\n        z\n", (0, 2, 8)),
        ("if x:  # why: because\n\n  # comment\n   y\n", (0, 3)),
        ("if x: # it's\n  y\n", (0, 2)),
        ("f(a,\n      b)\nif x:\n  y\n", (0, 2)),
        ("x = {'a':\n         1}\nif y:\n  z\n", (0, 2)),
        ('s = """\nif x:\n       y\n"""\nif x:\n  y\n', (0, 2)),
        ('s = ")" \'"\' # (\nif x:\n  y\n', (0, 2)),
        ("s = '\\''\nif x:\n  y = '(\n      z\n", (0, 2)),
        ("if x:\n  f(a,\n         b\n  def g():\n     h\n", (0, 2, 5)),
        ("if (a and\n        b):\n  y\n", (0, 2)),
        ("if x:\r\n  y\r\n", (0, 2)),
        ("\fif x:\n\f  y\n", (0, 2)),
        ("if x:\n  y\nif z:\n      pas", (0, 2, 6)),
        ("if x:\n  if y:\n  z\n", (0, 2)),
        ("if x: y\n  z\n", (0,)),
    ],
)
def test_indentation_is_read_from_lines_that_open_blocks(text: str, used: tuple[int, ...]) -> None:
    found = detect(text)
    assert found[:-3] == blanks(*used)
    step = unit_of([(" " * b, " " * a) for a, b in itertools.pairwise(used)])
    assert found[-3:] == extend(blanks(*used), step)[-3:]


def test_tabs() -> None:
    assert detect("if x:\n\tif y:\n\t\tz\n") == ("", "\t", "\t\t", "\t\t\t", "\t\t\t\t", "\t\t\t\t\t")
    assert detect("if x:\n    if y:\n\tz\n")[:3] == ("", "    ", "\t")


def test_many_levels_are_cut() -> None:
    text = "".join(" " * i + "if x:\n" for i in range(40))
    assert detect(text) == blanks(*range(MAX_LEVELS))


def test_extend_and_inside() -> None:
    assert extend(blanks(0, 2), "  ", 2) == blanks(0, 2, 4, 6)
    assert extend((), "\t", 1) == ("", "\t")
    assert inside(blanks(0, 4, 8), "    ") == blanks(4, 8)
    assert inside(blanks(0, 4, 8), "     ") == blanks(5, 8)
    assert inside(blanks(0, 4), " " * 9) == blanks(9)


def test_every_beginning_of_a_text() -> None:
    text = (
        'class A:\n    """Doc:\n      x\n    """\n    def f(self, x=(1,\n      2)):\n'
        "        return {\n          1: 2}\n"
    )
    full = detect(text)
    for end in range(len(text)):
        found = detect(text[:end])
        assert found[0] == ""
        assert len(set(found)) == len(found)
        assert set(found) <= set(extend(full))


def test_yaml_has_a_level_for_every_column_of_keys_and_entries() -> None:
    text = "# jobs\njobs:\n  - name: a\n    run: |\n          x y\n    on:\n       - b\n"
    assert detect(text) == blanks(0, 2, 4, 7, 9, 11, 13)
    assert detect("try:\n    x\n")[1] == "    "
    # Comments, and the text of scalars, are no levels.
    assert detect("a:\n    # note here\n  b: 1\n") == blanks(0, 2, 4, 6, 8)


@pytest.mark.parametrize(
    ("start", "text", "accepted"),
    [
        ("statements", "    x = 1\n    if y:\n        z\n    w\n", True),
        ("statements", "\n    # why\n    x\n", True),
        ("statements", "x = 1\n", False),
        ("statements", "    x\n  y\n", False),
        ("statement", "if y:\n        z\n    else:\n        w", True),
        ("statement", "if y:\n    z", False),
    ],
)
def test_python_inside_a_block(start: str, text: str, accepted: bool) -> None:
    found = inside(detect("def f():\n    if x:\n        y\n"), "    ")
    grammar = Grammar.load("python", start=start, levels=found)
    assert accepts_text(grammar, text).accepted == accepted
