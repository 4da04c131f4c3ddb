"""Texts that go round in circles, and how alike two lines are."""

import random

import pytest

from codespec.completion.ending.repetition import Repetition, similar, within
from tests.present import present


def levenshtein(one, other):
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        last, row = row, [i]
        for j, b in enumerate(other, 1):
            row.append(min(row[-1] + 1, last[j] + 1, last[j - 1] + (a != b)))
    return row[-1]


def test_a_limited_distance_is_the_distance():
    chooser = random.Random(4)
    for _ in range(500):
        one = "".join(chooser.choices("ab", k=chooser.randrange(12)))
        other = "".join(chooser.choices("abc", k=chooser.randrange(12)))
        for limit in range(8):
            assert within(one, other, limit) == (levenshtein(one, other) <= limit), (one, other, limit)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("", "", False), ("a", "a", True), ("a", "b", False), ("x = get(1)", "x = get(2)", True), ("}", "", False)],
)
def test_lines_that_are_similar(one, other, expected):
    assert similar(one, other) == expected


@pytest.mark.parametrize("text", ["ab" * 40, "x\n" + "value = 1;\n" * 9, "a(b);\nc(d);\n" * 6, "0" * 60, '" + ' * 20])
def test_where_a_repetition_shows_does_not_depend_on_the_steps(text):
    whole = Repetition().follow(text)
    assert whole is not None
    shown, kept = whole
    assert kept < shown <= len(text)
    for size in (1, 3, 50):
        follower = Repetition()
        for end in range(size, len(text) + size, size):
            follower.follow(text[:end])
        assert follower.found == whole
    assert Repetition().follow(text[: shown - 1]) is None


@pytest.mark.parametrize(
    "text",
    ["", "\n" * 40, "-" * 80, "0, " * 40, "a\n" * 4, "}\n" * 4, "ab" * 6, "one\ntwo\none\ntwo\n", '"", ' * 9],
)
def test_what_is_no_repetition(text):
    assert Repetition().follow(text) is None


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("x = 1\n# Create a new one\ny = 2\n# Create a new one\n", "x = 1\n# Create a new one\ny = 2"),
        ("# (1, 2) gives 3\n# (2, 3) gives 5\n# (3, 4) gives 7\n", "# (1, 2) gives 3"),
    ],
)
def test_comments_that_say_the_same_again_are_not_written(text, kept):
    shown, end = present(Repetition(comment="#").follow(text))
    assert text[:end] == kept
    assert shown == len(text) - 1
    assert Repetition(comment="#").follow(text[:shown]) is None
    assert Repetition().follow(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "# --------\n# Shapes\n# --------\n",
        "# first\n# (1, 2) gives 3\n# (2, 3) gives 5\n",
        "# ok\nx = 1\n# ok\n",
        "add(1, 2)\nadd(1, 2)\n",
    ],
)
def test_comments_that_may_come_twice(text):
    assert Repetition(comment="#").follow(text) is None
