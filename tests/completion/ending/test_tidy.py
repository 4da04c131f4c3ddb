"""Trimming what the text after the cursor repeats: before and after."""

import pytest

from codespec.completion.ending.tidy import trim_suffix_overlap, unmatched_closers


@pytest.mark.parametrize(
    ("text", "suffix", "expected"),
    [
        ("a, b)", ")\n", "a, b"),
        ("bar()", ")\n", "bar()"),
        ("bar())", ")\n", "bar()"),
        ("x]", "]", "x"),
        ("a', 'b'", "'\n", "a', 'b"),
        ("'a'", "'\n", "'a'"),
        ("return total", " total\n", "return"),
        ("return total", "total\n", "return "),
        ("value = 1\n", "\nother", "value = 1\n"),
        ("x = 1\n    y = 2", "\n    y = 2\n", "x = 1"),
        ("abc", "", "abc"),
        ("", ")", ""),
        ("a", "a", "a"),
        ("f(x):", ":\n", "f(x)"),
    ],
)
def test_what_the_suffix_repeats_is_left_out(text, suffix, expected):
    assert trim_suffix_overlap(text, suffix) == expected


@pytest.mark.parametrize(("text", "expected"), [("", 0), ("()", 0), (")", 1), ("(]", 1), ("a)b(c)]", 2), ("{[()]}", 0)])
def test_closers_that_nothing_opened_are_counted(text, expected):
    assert unmatched_closers(text) == expected
