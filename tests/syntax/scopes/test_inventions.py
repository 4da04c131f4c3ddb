"""Names that a text uses and nothing defines; the judge of false alarms is what authors wrote."""

import ast
import builtins
import random
import symtable
from pathlib import Path

import pytest

from codespec.languages import by_id
from codespec.syntax.scopes.inventions import Inventions

ROOT = Path(__file__).parents[3]


def first(document, language="python"):
    """What is found in the text between two ``█``."""
    before, text, after = document.split("█")
    found = Inventions(by_id(language), before, after).first(text)
    return None if found is None else (found.name, found.start)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("area = 1\n█print(arr)█\n", ("arr", 6)),
        ("area = 1\n█print(area)█\n", None),
        ("def f(a):\n    return a\n\ndef g(b):\n    █return a + b█\n", ("a", 7)),
        ("def g(b):\n    █return later(b)█\n\ndef later(b):\n    return b\n", None),
        ("█for row in rows:\n    print(row)█\n", ("rows", 11)),
        ("█total = 1\nprint(total, totals)█\n", ("totals", 23)),
        ("import os\n█os.remove(os.path.join('a', 'b'))█\n", None),
        ("█x = [y for y in range(3)]█\n", None),
        ("class A:\n    def f(self):\n        █return self.anything█\n", None),
        ("from a import *\n█print(anything)█\n", None),
        ("print(undefined)\n█print(undefined)█\n", None),
        ("from .a import b\n█from .c import d█\n", None),
        ("myloop = [1]\nmy█loops[0]█\n", ("myloops", 0)),
        ("myloop = [1]\nmy█loop[0]█\n", None),
        ("printf█er = 1█\n", None),
        ("x = 1\n█print(x█\n", None),
        ("äöü = 'äöü'\n█print(äöü, ö)█\n", ("ö", 11)),
        ("█if (n := 3) > 2: print(n, __file__)█\n", None),
        ("match 1:\n    case a:\n        █print(a, b)█\n", ("b", 9)),
        ("try: pass\nexcept E as error:\n    █raise error█\n", None),
    ],
)
def test_python(document, expected):
    assert first(document) == expected


@pytest.mark.parametrize(
    ("document", "language", "expected"),
    [
        ("import a from 'a';\n█console.log(a, document, Buffer);█\n", "javascript", None),
        ("import a from 'a';\n█console.log(b);█\n", "javascript", ("b", 12)),
        ("const a = require('a');\n█a(missing)█\n", "javascript", ("missing", 2)),
        ("█console.log(fromAnotherScript);█\n", "javascript", None),
        ("export const a = 1;\n█const b: Partial<Missing> = { a };█\n", "typescript", ("Missing", 17)),
        ("export const a = 1;\n█const b: Record<string, HTMLElement> = {};█\n", "typescript", None),
        ("export class A {\n  █f() { return this.anything; }█\n}\n", "typescript", None),
        ("export const a = 1;\n█hoisted();█\nfunction hoisted() {}\n", "javascript", None),
    ],
)
def test_modules_of_javascript(document, language, expected):
    assert first(document, language) == expected


def test_what_other_files_may_define_is_let_pass():
    assert first("package a\n\nfunc f() {\n\t█g(h)█\n}\n", "go") is None
    assert first("int f() { █return g(h);█ }\n", "c") is None


PYTHON_2 = {"basestring", "long", "raw_input", "reduce", "unichr", "unicode", "xrange"}
"""Names of Python 2 that count as known: files for both use them."""


def unbound(source):
    """Names that a module uses and neither binds nor has built in, by Python's own symbol tables."""
    source = source.replace("from __future__ import annotations", "")  # with it they are not looked at
    found, waiting = set(), [symtable.symtable(source, "a.py", "exec")]
    top = {each.get_name() for each in waiting[0].get_symbols() if each.is_assigned() or each.is_imported()}
    top |= {each.get_name() for each in waiting[0].get_symbols() if each.is_namespace()}
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        for each in table.get_symbols():
            bound = (
                each.is_assigned() or each.is_imported() or each.is_parameter() or each.is_free() or each.is_namespace()
            )
            if (
                each.is_referenced()
                and not bound
                and each.get_name() not in top
                and not hasattr(builtins, each.get_name())
            ):
                found.add(each.get_name())
    return found - {"__file__", "__path__", "__class__"} - PYTHON_2


def test_as_pythons_symbol_tables_say():
    """In lines of real files: nothing that the author wrote; then a name in place of another one is found."""
    chooser = random.Random(4)
    changed = 0
    for path in sorted((ROOT / "codespec").rglob("*.py"))[::6]:
        text = path.read_text("utf-8")
        lines = text.splitlines(keepends=True)
        uses = [
            each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
        ]
        for each in chooser.sample(uses, min(6, len(uses))):
            before, line = "".join(lines[: each.lineno - 1]), lines[each.lineno - 1]
            after = "".join(lines[each.lineno :])
            column = len(line.encode()[: each.col_offset].decode())
            inventions = Inventions(by_id("python"), before, after)
            assert inventions.first(line) is None, (path, line)
            other = chooser.choice(uses).id
            wrong = line[:column] + other + line[column + len(each.id) :]
            found = inventions.first(wrong)
            try:
                expected = other in unbound(before + wrong + after)
            except SyntaxError:
                continue
            assert (found is not None and found.name == other) == expected, (path, wrong)
            changed += expected
    assert changed > 20


def test_what_is_too_long_is_not_read():
    assert first("a = 1\n" * 20_000 + "█print(b)█") is None
