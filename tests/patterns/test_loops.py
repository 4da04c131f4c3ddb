"""Work on documents, lines and edits that is no regular expression: its time for parts of one text, over and over."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from codespec.completion.ending import brackets, ending, json_spacing, lexical, repetition, stop_rule, tidy
from codespec.completion.lead import lead_of
from codespec.draft.window import line_analogy, repeated_changes
from codespec.edits import difference
from codespec.edits.formats import replaced
from codespec.edits.history import EditHistory
from codespec.grammar import indentation
from codespec.languages import by_id
from codespec.syntax import macros
from codespec.text_difference import changes

SIZE = 16_000
LIMIT_S = 5.0
"""Processor time; what takes the square of the length takes minutes, and what is linear some hundredths."""

PARTS = (
    "a", "a ", "x1 ", "é", "a,", "a.", "(", "()", "f(", "f()", "f(f)", '("', "{", "}", "{}", "[", "<", "a<b>",
    "\n", " \n", "\t", "\r", "\r\n", "    a\n", "a = b\n", "def f():\n", "a: b\n", "- a\n", ")\n", "a;\n", ";",
    "'", '"', '"""', "`", "`${", "\\", '\\"', "/*", "*/", "//", "#", "#if a\n", "#define A 1\n", "A(", 'A(("\\', "_A_ ",
    '"a": 1, ', '{"a":',
)  # fmt: skip
_PYTHON, _C, _JAVASCRIPT = map(by_id, ("python", "c", "javascript"))


def _other(text: str) -> str:
    return "x" + text[1:-1] + "y"


def _history(text: str) -> None:
    history = EditHistory()
    history.opened("a.py", text)
    history.changed("a.py", text[::-1], 1.0)
    history.changed("a.py", _other(text), 2.0)


WORK: dict[str, Callable[[str], object]] = {
    "brackets of Python": lambda text: brackets.scan(text, _PYTHON),
    "brackets of JavaScript": lambda text: brackets.scan(text, _JAVASCRIPT),
    "lexical state of C": lambda text: lexical.read(text, _C, lexical.State(), len(text)),
    "extent": lambda text: stop_rule.extent(text, text, _PYTHON),
    "line before and behind": lambda text: (stop_rule.next_line(text), stop_rule.previous_line(text)),
    "ends of lines": ending.line_ends,
    "places to cut": ending.places,
    "similar lines": lambda text: repetition.similar(text, text + "x"),
    "overlap": lambda text: tidy.trim_suffix_overlap(text, text + "x"),
    "balanced": lambda text: tidy.balanced(text, text, _PYTHON),
    "position in JSON": json_spacing.position_after,
    "spacing of JSON": lambda text: json_spacing.Spacing(text, text),
    "indentations": indentation.detect,
    "lead": lead_of,
    "macros": lambda text: macros.search(text.encode(), _one_error, _one_error(text.encode())),
    "conditionals": lambda text: list(macros.conditionals(text.encode())),
    "changes of words": lambda text: difference.hunks(text, text[::-1]),
    "changes of parts": lambda text: changes(text[:500], text[:500][::-1]),
    "what replaces which": lambda text: replaced.difference(text, _other(text)),
    "an argument more": lambda text: replaced.added(text + ")", text + ", x)"),
    "arguments": lambda text: replaced.arguments(text, "f"),
    "history": _history,
    "repeated changes": lambda text: repeated_changes.changes_between(text.encode(), _other(text).encode()),
    "lines like a changed one": lambda text: list(line_analogy.changed_lines(text.encode(), text[::-1].encode())),
}


def _one_error(data: bytes) -> list[macros.Error]:
    return [macros.Error(0, len(data), False)]


@pytest.mark.parametrize("name", WORK)
def test_time_is_bounded(name: str) -> None:
    for part in PARTS:
        text = part * (SIZE // len(part))
        began = time.thread_time()
        WORK[name](text)
        assert time.thread_time() - began < LIMIT_S, f"{part!r} again and again"


def test_changes_of_what_is_hard_to_compare_are_changes() -> None:
    old, new = list("f()" * 160), list(")(f" * 160)
    made = old[:]
    for start, end, first, last in reversed(changes(old, new)):
        made[start:end] = new[first:last]
    assert made == new


def test_the_arguments_of_calls_in_calls() -> None:
    line = "f(f(a), g(b)) + f(c"
    assert [line[start:end] for start, end in replaced.arguments(line, "f")] == ["f(a), g(b)", "a"]


def test_the_ends_of_lines_without_the_blanks_before_them() -> None:
    text = "a  \n\n   \n b\t\n\nc \n d"
    assert ending.line_ends(text) == [15, 11, 1]
    assert [text[:end][-1] for end in (15, 11, 1)] == ["c", "b", "a"]
