"""Lines that are changed as a line like them was."""

from __future__ import annotations

import pytest

from codespec.draft.window.line_analogy import LEAST_ALIKE, LONGEST_LINE, ChangedLine, changed_lines


def changed(old: str, new: str, line: str) -> str | None:
    found = ChangedLine(old.encode(), new.encode()).analogy(line.encode())
    if found is None:
        return None
    alike, replacements = found
    assert LEAST_ALIKE <= alike <= 1.0
    data, end = line.encode(), None
    for each in reversed(replacements):
        assert each.start <= each.end
        assert end is None or each.end <= end
        data, end = data[: each.start] + each.new + data[each.end :], each.start
    return data.decode()


@pytest.mark.parametrize(
    ("old", "new", "line", "expected"),
    [
        ("a.drop(Text)", "a.drop(Text).kept()", "a.drop(TextLonger)", "a.drop(TextLonger).kept()"),
        ("one  = uint32(0x70)", "one  = uint32(0x70, nil)", "other = uint32(0x80)", "other = uint32(0x80, nil)"),
        ("x = S(\"a.b\");", "x = list(S(\"a.b\"));", "y = S(\"a.c\");", "y = list(S(\"a.c\"));"),
        ("  self.a = a", "  self.a = int(a)", "  self.b = b", "  self.b = int(b)"),
        ("log.warn(one)", "log.warning(one)", "log.warn(two)", "log.warning(two)"),
        ("    f(x, y)", "    f(x)", "    f(z, y)", "    f(z)"),
        ("show(item)", "show(item, width)", "show(total)", "show(total, width)"),
    ],
)  # fmt: skip
def test_a_line_is_changed_as_one_like_it_was(old: str, new: str, line: str, expected: str) -> None:
    assert changed(old, new, line) == expected
    assert changed(old, new, old) == new


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("show(item)", "show(item, width)", "return None"),  # another line
        ("show(item)", "show(item, width)", "first = second(third) + fourth(fifth)"),  # little in common
        ("show(item)", "show(item, width)", "show(total, width)"),  # it was changed already
        ("log.warn(one)", "log.warning(one)", "log.info(one)"),  # what was replaced is not there
        ("show(item)", "show(item, width)", "show(item) " + "+ item " * LONGEST_LINE),
    ],
)
def test_other_lines_are_left_alone(old: str, new: str, line: str) -> None:
    assert changed(old, new, line) is None


def test_lines_that_stand_for_each_other() -> None:
    assert list(changed_lines(b"a\nb\nc\n", b"a\nx\nc\n")) == [(b"b", b"x")]
    assert list(changed_lines(b"a\nb\n", b"a\nb\nc\n")) == []  # a line that was added is like none
    assert list(changed_lines(b"a\nb\nc", b"x\ny\nc")) == [(b"a", b"x"), (b"b", b"y")]
    assert list(changed_lines(b"", b"")) == []
    long = b"0, " * LONGEST_LINE
    assert list(changed_lines(b"a\n" + long, b"b\n" + long + b"1")) == [(b"a", b"b")]
