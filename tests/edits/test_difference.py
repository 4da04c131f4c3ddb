"""Changes make the one text of the other, and are as small as can be."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.edits.difference import Hunk, hunks, words_of

TEXTS = st.text(alphabet="ab_1 .(),\n\té", max_size=60)


def applied(text, changes):
    for change in reversed(changes):
        text = text[: change.start] + change.text + text[change.end :]
    return text


@settings(max_examples=300, deadline=None)
@given(TEXTS, TEXTS)
def test_any_two_texts(old, new):
    found = hunks(old, new)
    assert applied(old, found) == new
    assert all(one.end <= two.start for one, two in pairwise(found))
    assert all(each.end > each.start or each.text for each in found)
    for each in found:
        gone, come = words_of(old[each.start : each.end]), words_of(each.text)
        assert not (gone and come and (gone[0] == come[0] or gone[-1] == come[-1]))


@given(TEXTS)
def test_words_are_the_text(text):
    assert "".join(words_of(text)) == text


def test_a_rename_is_the_names():
    old = "x = size + 1\ny = 2\nprint(size, size)\n"
    assert hunks(old, old.replace("size", "total")) == [
        Hunk(4, 8, "total"),
        Hunk(25, 29, "total"),
        Hunk(31, 35, "total"),
    ]


def test_lines_that_stay_are_in_no_change():
    assert hunks("a\nb\nc\n", "a\nnew\nb\nc\n") == [Hunk(2, 2, "new\n")]
    assert hunks("a\nb\nc\n", "a\nc\n") == [Hunk(2, 4, "")]


def test_words_become_longer_or_shorter():
    assert hunks("data = 1\n", "datas = 1\n") == [Hunk(4, 4, "s")]
    assert hunks("my_data = 1\n", "data = 1\n") == [Hunk(0, 3, "")]
    assert hunks("int_val\n", "inet_int_val\n") == [Hunk(0, 0, "inet_")]
    assert hunks("localAddr\n", "load\n") == [Hunk(0, 9, "load")]


def test_two_changes_of_a_line_with_thousands_of_words_are_one():
    """To compare them word by word would take seconds, while completions wait."""
    words = ["[", *["0", ",", " ", "1", ",", " "] * 400, "]"]
    old, new = "".join(words), "".join(words).replace("[0", "[2").replace("1, ]", "3, ]")
    assert hunks(old, new) == [Hunk(1, len(old) - 3, new[1:-3])]
    assert hunks(old, old.replace("1, ]", "3, ]")) == [Hunk(len(old) - 4, len(old) - 3, "3")]
