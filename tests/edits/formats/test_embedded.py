"""The embedded model's layout: what is said of the lines of a window is what is read of it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespec.edits.formats import WindowPrompt, as_text
from codespec.edits.formats.embedded import Embedded, written
from codespec.edits.formats.marks import lines_of
from codespec.edits.request import RecentEdit as Change

PROMPT = WindowPrompt("src/a.py", "python", "total = 0\n\nprint(count)\n", 5)


def test_recent_edits_that_are_short_and_the_labelled_window():
    recent = (
        Change("src/a.py", 0, "x\n" * 20, ""),
        Change("lib/b.py", 0, "a", "b", "above\n", "below\n"),
        Change("src/a.py", 0, "count = 0\n", "total = 0\n"),
    )
    assert (
        as_text(Embedded().prompt(replace(PROMPT, recent=recent)))
        == """\
<|file_sep|>b.py.diff
original:
a
updated:
b
:
a
b
<|file_sep|>a.py.diff
original:
count = 0
updated:
total = 0
:
count
total
<|file_sep|>current/a.py
total = 0 A
 B
print(count) C*
<|file_sep|>updated/a.py
"""
    )


@pytest.mark.parametrize(
    ("answer", "window"),
    [
        (" A\n B\n C:\ncount\ntotal\n", "total = 0\n\nprint(total)\n"),
        (" C:\ncount\ntotal\n<|endoftext|> A!\n", "total = 0\n\nprint(total)\n"),
        (" A!\n B!\n C\n", "print(count)\n"),
        (" A\n B+\ncount = 1\n B\n C\n", "total = 0\ncount = 1\n\nprint(count)\n"),
        (" C\n D+\nreturn\n", "total = 0\n\nprint(count)\nreturn\n"),
        (" C:\ncount\ntotal", None),
        (" B!\n C:\ncount\n", "total = 0\nprint(count)\n"),
        (" C(\nprint\nend\n", "total = 0\n\nprint(count, end)\n"),
        (" A(\nprint\nend\n", None),
        (" A(\nprint\nend\n C:\ncount\ntotal\n", "total = 0\n\nprint(total)\n"),
        ("", None),
        (" A\n B\n C\n", None),
        (" C:\ncoun\ntotal\n", None),
        (" C!\n B!\n", None),
        (" D!\n", None),
        (" E+\nx\n", None),
        ("A!\n", None),
        (" A!\n B!\n C!\n", None),
    ],
    ids=repr,
)
def test_reading(answer, window):
    assert Embedded().read(answer, PROMPT) == window


LINES = ["a\n", "b(a, b)\n", "  c = a.a\n", "\n", "aa = a\n"]
NEW = ["a\n", "b(a, c)\n", "  c = aa.aa\n", " A!\n", "b(a,  b)\n", "\n"]


@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=8), st.lists(st.tuples(
    st.integers(0, 8), st.sampled_from(["put", "drop", "swap"]), st.sampled_from(NEW)), max_size=4)
)  # fmt: skip
def test_what_is_written_is_read(old, edits):
    new = list(old)
    for at, how, line in edits:
        new[at : at + (how != "put")] = [] if how == "drop" else [line]
    updated = "".join(new)
    wanted = updated if updated.strip() and new != old else None
    assert Embedded().read(written(old, new), replace(PROMPT, window="".join(old))) == wanted


def test_a_window_without_an_end_of_line():
    prompt = replace(PROMPT, window="a = b\nc = a")
    assert Embedded().read(written(lines_of("a = b\nc = a"), lines_of("a = b\nc = d")), prompt) == "a = b\nc = d"
