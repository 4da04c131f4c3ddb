"""Diagnostics for the author of a GBNF text: all that names and shapes of rules show, each once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from codespec.grammar.errors import Diagnostic, GrammarError
from codespec.grammar.gbnf import gbnf
from codespec.grammar.gbnf.definition import Written
from codespec.grammar.lower.boundary import WORD_RULE
from codespec.grammar.lower.recursion import left_recursion, productive, repeated_nothing
from codespec.grammar.rules import Boundary

STARTS = ("root", "file", "statement", "statements", "expression")
"""Rules of a grammar with extensions that are meant to be started at, and so need no user. A comment
``# Start symbols: value, member`` names more."""
MOST = 100
"""Errors of one grammar; a missing rule may be used very often."""


def diagnose(
    text: str, name: str, strict: bool = False, extensions: bool = False, start: str | None = None
) -> list[Diagnostic]:
    """Errors and warnings of a GBNF text, by position."""
    try:
        written = gbnf.read(text, name, strict, extensions)
    except GrammarError as error:
        return [_error(error)]
    errors = list(itertools.islice(written.problems(start or "root"), MOST))
    if not errors:
        try:
            written.rules_from(start)
        except GrammarError as error:
            errors.append(error)
    found = [_error(error) for error in errors]
    warnings = _warnings(written, start or "root", not errors)
    found += [Diagnostic(name, line, column, "warning", what) for line, column, what in warnings]
    return sorted(found, key=lambda each: (each.line, each.column))


def _error(error: GrammarError) -> Diagnostic:
    message = error.cause + (f"; {error.remedy}" if error.remedy else "")
    return Diagnostic(error.name, error.line, error.column, "error", message)


def _warnings(written: Written, start: str, sound: bool) -> Iterator[tuple[int, int, str]]:
    for note in written.notes:
        yield note.line, note.column, note.text
    for rule in written.shadowed:
        yield rule.line, rule.column, f"rule {rule.name!r} is defined again below; the last definition counts"
    starts = [start, *(STARTS if written.extensions else ()), *written.starts]
    used = written.used([*starts, WORD_RULE] if written.holding(Boundary) else starts)
    for name, rule in written.rules.items():
        if name not in used:
            yield rule.line, rule.column, f"rule {name!r} is never used"
    if sound:
        yield from _shapes(written, start)


def _shapes(written: Written, start: str) -> Iterator[tuple[int, int, str]]:
    """Warnings about rules whose references are all known."""
    rules = written.expanded(start)
    live = {name.partition("<")[0] for name in productive(rules)}
    for name in dict.fromkeys(name.partition("<")[0] for name in rules.rules):
        if name not in live:
            dead = written.rules[name]
            yield dead.line, dead.column, f"rule {name!r} matches no text"
    if written.extensions:
        return  # llama.cpp does not read these anyway
    for recursive, how in left_recursion(rules):
        what = f"rule {recursive.name!r} is left recursive ({how}), which llama.cpp refuses"
        yield recursive.line, recursive.column, what
    for rule in repeated_nothing(rules):
        what = f"rule {rule.name!r} repeats without limit what may be empty by itself, which llama.cpp refuses"
        yield rule.line, rule.column, what
