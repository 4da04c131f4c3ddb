"""The smallest replacement that makes one line of another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespec.edits.formats.replaced import Added, Replaced, added, difference, replace, with_argument


@pytest.mark.parametrize(
    ("old", "new", "pair"),
    [
        ("foo(a)", "foo(a, x)", (")", ", x)")),
        ("foo(a, b)", "foo(a)", (", b", "")),
        ("foo()", "await foo()", ("foo", "await foo")),
        ("i = i + 1", "j = j + 1", ("i", "j")),
        ("fs.fs", "ft.fs", ("fs.", "ft.")),
        ("f(count, count)", "f(total, count)", ("count,", "total,")),
        ("log.info(x)", "log.debug(x)", ("info", "debug")),
        ("counts = count", "counts = total", ("count", "total")),
        ("a = 1", "a = 1", None),
    ],
)
def test_the_smallest_replacement_that_makes_a_line_is_found(old, new, pair):
    assert difference(old, new) == pair


LINES = st.text("ab (),=é", max_size=12)


@given(LINES, LINES)
def test_what_is_found_makes_the_line(old, new):
    pair = difference(old, new)
    assert (pair is None) <= (old == new or not old.strip())
    if pair is not None:
        assert replace(old, pair) == new


def test_parts_of_words_stay():
    assert replace("count counts a_count", Replaced("count", "n")) == "n counts a_count"
    assert replace("counts", Replaced("count", "n")) is None


@pytest.mark.parametrize(
    ("old", "new", "more"),
    [
        ("foo(a)", "foo(a, x)", ("foo", "x")),
        ("x.foo()", "x.foo(x=1)", ("foo", "x=1")),
        ("def f(a, b):", "def f(a, b, b):", ("f", "b")),
        ("g(f(a), f(b))", "g(f(a), f(b), c)", ("g", "c")),
        ("f(a) + f(b)", "f(a, c) + f(b)", None),
        ("(a)", "(a, b)", None),
        ("foo(a)", "foo(a))", None),
        ("foo(a)", "foo(b, a)", None),
    ],
)
def test_an_argument_more_is_told_from_other_edits(old, new, more):
    assert added(old, new) == more


def test_every_call_has_an_argument_more():
    assert with_argument("f(a) + f() + ff(a)", Added("f", "b")) == "f(a, b) + f(b) + ff(a)"
    assert with_argument("f(f(a))", Added("f", "b")) is None
    assert with_argument("f(a,", Added("f", "b")) is None
