"""What is offered of a rename, what may be meant, and what is never touched."""

import re

import pytest

from codespec.languages import by_id
from codespec.syntax.scopes.renaming import LARGEST, still_called
from tests.syntax.scopes.marked import check, uses


def others(language: str, marked: str) -> None:
    """The uses in angle brackets are other ones, or in doubt; those in ‹› may be meant, or are the same."""
    text = marked.replace("<old>", "old").replace("‹old›", "old")
    wanted, shift = [], 0
    for match in re.finditer(r"<old>|‹old›", marked):
        wanted += [match.start() - shift] if match[0][0] == "<" else []
        shift += 2
    assert list(uses(language, text, "old", "new1").other) == wanted


def test_a_name_that_is_known_there_is_another_thing():
    text = "def f(old, total):\n    x = total\n    return old\n"
    found = still_called(by_id("python"), text, [text.index("= total") + 2], "old", "total")
    assert (found.same, found.other) == ((), (6,))  # a parameter of the new name would be there twice


def test_shorthands_keep_the_property():
    text = "const { a, new1 = 1 } = b; use({ old, c: { old } }); ({ old } = d)"
    assert {each.form for each in uses("javascript", text, "old", "new1").same} == {"shorthand"}


def test_exports_keep_their_name():
    found = uses("javascript", "const new1 = 1; export { old }; use(old)", "old", "new1")
    assert [each.form for each in found.same] == ["export", ""]


OTHERS = [
    # A variable: attributes, keys, keywords and variables of others are other things.
    ("python",
     "def f(new1):\n    return ‹old›.<old>, g(<old>=‹old›)\n\ndef g(<old>):\n"
     "    return <old>, 'old'  # old\n"),
    ("javascript",
     "function f(new1) { return ‹old›.<old> + { <old>: ‹old› } }\n"
     "function g(<old>) { <old>: for (;;); }"),
    ("go", "package p\nfunc f(new1 int) { g(‹old›.<old>, T{<old>: ‹old›}) }\nfunc g(<old> int) { <old>++ }"),
    # An attribute: those of the same object, as its text tells.
    ("python",
     "class A:\n    def f(self, <old>):\n        self.new1 = <old>\n"
     "        return self.‹old›, x.<old>\n\nclass B:\n    def f(self):\n        return self.<old>\n"),
    ("python",
     "def f(a, b):\n    a.new1 = <old>\n    return a.‹old›, b.<old>, f(<old>=1)\n\ndef g(a):\n"
     "    return a.<old>\n"),
    ("python", "class A:\n    def new1(self):\n        return self.‹old›()\n\ndef <old>():\n    return x.<old>()\n"),
    ("javascript", "class A { m(<old>) { this.new1 = <old>; this.‹old›() } }\nclass B { m() { this.<old>() } }"),
    ("javascript", "class A { new1() { this.‹old›() } }\nx.<old>(); let <old>"),
    ("go", "package p\nfunc f(a, b T) { a.new1 = <old>; a.‹old›(); b.<old>() }\nfunc g(a T) { a.<old>() }"),
    # What is bound nowhere is one thing everywhere.
    ("python", "print(new1, ‹old›)\ndef f(<old>):\n    return <old>.<old>\n"),
    ("go", "package p\nfunc f() { new1(‹old›) }\nfunc g(<old> int) { use(<old>) }"),
    # In doubt: what may be meant is no more than the places of the variable itself.
    ("python", "def f(new1):\n    return '{old}'.format(**locals()) + ‹old›\n\ndef g(<old>):\n    return <old>\n"),
    ("python", "from m import <old>\n\ndef f():\n    return new1 + ‹old›\n\ndef g(<old>):\n    return <old>\n"),
    ("javascript", "import { <old> } from 'x'; new1(‹old›); function g(<old>) { return <old> }"),
    ("python", "def f(a, new1):\n    new1 = 1\n\ndef broken(:\n    pass\n\ndef g(<old>):\n    return <old>\n"),
    ("python", "broken(\n\nnew1 = 1\nprint(<old>)\n"),
    ("python",
     "def f(a):\n    for new1 in a:\n        pass\n\ndef g(a):\n    for new1 in a:\n"
     "        print(‹old›)\n\ndef h():\n    <old> = 1\n"),
    # Of other languages: nothing outside of the function, and no attribute.
    ("rust", "fn f(new1: i32) -> i32 { ‹old› + x.<old> }\nfn g(<old>: i32) -> i32 { <old> }"),
    ("c", "int new1;\nint f(int <old>) { return <old>; }\n"),
    ("ruby", "new1 = 1\nprint <old>\n"),
    ("plaintext", "new1 <old>\n"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "marked"), OTHERS)
def test_uses_of_other_names_are_left_alone(language, marked):
    others(language, marked)


def test_a_document_that_is_too_large_has_no_uses():
    text = "def f(new1):\n    return old\n" + "#" * LARGEST
    found = uses("python", text, "old", "new1")
    assert (found.same, found.other) == ((), (text.index("old"),))


@pytest.mark.parametrize(
    ("language", "opens", "closes"),
    [("python", "lambda: ", ""), ("javascript", "() => ", ""), ("typescript", "{", "}"), ("go", "func() {", "}")],
)
def test_what_is_nested_too_deep_is_in_doubt(language, opens, closes):
    before = "package p\nvar new1 = 1\nvar x = " if language == "go" else "x = " if opens[-1] == " " else ""
    deep = opens * 20_000 + "old" + closes * 20_000
    found = uses(language, f"{before}{deep}\n", "old", "new1")
    assert found.same == ()


@pytest.mark.parametrize(
    ("language", "text", "keyword"),
    [
        ("python", "def f(NEW):\n    return old\n", "class"),
        ("python", "def f(NEW):\n    return old\n", "None"),
        ("go", "package p\nfunc f(NEW int) int { return old }", "nil"),
        ("go", "package p\nfunc f(NEW int) int { return old }", "range"),
        ("javascript", "function f(NEW) { return old }", "new"),
        ("javascript", "function f(NEW) { return old }", "undefined"),
        ("typescript", "type NEW = 1; let x: old", "string"),
        ("typescript", "function f<NEW>(x: old): any {}", "any"),
    ],
)
def test_what_has_a_meaning_of_its_own_is_no_name(language, text, keyword):
    assert uses(language, text.replace("NEW", keyword), "old", keyword).same == ()
    assert uses(language, text.replace("NEW", "new1"), "old", "new1").same


def test_places_are_in_characters():
    check("python", "def f(new):\n    return 'ä🙂', <old>, 'ö' + <old>\n", "old", "new")
    check("python", "def f(größe):\n    return 'ä🙂', <größte>, 'ö' + <größte>\n", "größte", "größe")
    check("javascript", "function f(new1) { return '𝒳' + <old> }", "old", "new1")
