"""The uses of a name that stand for the same thing: what a language server would rename."""

import re

import pytest

from codespec.languages import by_id
from codespec.syntax.scopes import still_called

# The name `new` has come where it stands; every `old` in brackets is one that stands for the same thing.
PYTHON = [
    "def f(new):\n    return <old> + <old>.old + g(old=<old>)\n\ndef g(old):\n    return old\n",
    "def f():\n    new = 1\n    print(<old>)\n    for x in <old>:\n        pass\n    return [<old> for y in x]\n",
    "def f(old):\n    return [new for new in old]\n",
    "def f(old):\n    return [<old> for new in old]\n",
    "def f(new):\n    def g(old):\n        return old\n    return lambda: <old>\n",
    "def f(<old>):\n    return new\n",
    "x = lambda <old>: new.y\n",
    "for new in range(3):\n    print(<old>)\n",
    "def new():\n    pass\n\n<old>()\n",
    "def f(new, *, other=1):\n    return new\n",
    "import old\ndef f():\n    return new\n",
    "def f(x, new: int = 3, *args):\n    return f'{<old>}' + 'old'  # old\n",
    "class A:\n    def m(self, new):\n        self.old = <old>\n",
    "with open(x) as new:\n    <old>.read()\n",
    "old = 1\nclass A:\n    new = 2\n    def m(self):\n        return old\n",
    "class A(old):\n    new = 2\n    x = <old>\n    def m(self):\n        return old\n",
    "def f(new: old = old) -> old:\n    return <old>\n",
    "for new in x:\n    f(lambda old=<old>: old)\n",
    "def f():\n    new = 0\n    def g():\n        nonlocal old\n        old = 5\n    return old\n",
]
JAVASCRIPT = [
    "function f(new1, b) { return <old> + b.old + {old: <old>} }\nfunction g(old) { return old }",
    "const f = (new1) => { const x = 1; return <old>(x) }",
    "const f = new1 => <old> + 1",
    "{ let new1 = 1; use(<old>) }\n{ let old = 2; use(old) }",
    "function f(new1) { return { <old>, other: <old> } }",
    "for (const new1 of list) { use(<old>); [].map(old => old) }",
    "class A { m(new1) { return this.old(<old>) } }",
    "try { a() } catch (new1) { log(<old>) }",
    "import { old } from 'x'; function f() { return new1 }",
    "function f({ a, b: new1 }, ...rest) { return <old> }",
    "function f() { if (x) { var new1 = 1; { let old = 2 } } return <old> }",
]
GO = [
    "func f(new int) int { return <old> + x.old }",
    "func f() { new, err := g(); use(<old>, err) }",
    "func f() { if new := g(); <old> != nil { use(<old>) }; old := 1; use(old) }",
    "func f() { for i, new := range xs { use(<old>, i) } }",
    "func f(new int) T { return T{old: <old>} }",
    "func (t *T) m(a, new string) { func() { <old>() }(); func(old int) { old() }(1) }",
    "func f() { var new = 1; <old>++ }\nfunc g() { var old = 1; old++ }",
    "func f() { for _, new := range xs { old := <old>; use(old) } }",
    "func f() { for _, old := range xs { new := old; use(<old>) } }",
    "func f() { new, a := g(); <old>, b := h(<old>, a); use(<old>, b) }",
]
CASES = [
    *(("python", text) for text in PYTHON),
    *(("javascript", text) for text in JAVASCRIPT),
    *(("typescript", text) for text in JAVASCRIPT[:6]),
    *(("go", "package p\n" + text) for text in GO),
]


@pytest.mark.parametrize(("language", "marked"), CASES)
def test_uses(language, marked):
    new = "new1" if "script" in language else "new"
    text = marked.replace("<old>", "old")
    wanted, shift = [], 0
    for match in re.finditer(r"<old>", marked):
        wanted.append(match.start() - shift)
        shift += 2
    places = [match.start() for match in re.finditer(rf"\b{new}\b", text)]
    uses = still_called(by_id(language), text, places, "old", new)
    found = uses.same if uses is not None else ()
    assert [each.start for each in found] == wanted
    assert [each.shorthand for each in found] == [
        "script" in language and text[each.start - 2 : each.start] == "{ " for each in found
    ]


def test_a_name_that_is_known_there_is_another_thing():
    text = "def f(old, total):\n    x = total\n    return old\n"
    assert not still_called(by_id("python"), text, [text.index("= total") + 2], "old", "total")


def test_attributes_and_the_names_of_others_are_told_apart():
    text = "def f(new):\n    return old.old\n\ndef g(old):\n    return 'old'\n"
    uses = still_called(by_id("python"), text, [6], "old", "new")
    first = text.index("old")
    assert ([each.start for each in uses.same], uses.other) == ([first], (first + 4, text.index("old)")))


def test_other_languages_are_left_alone():
    assert not still_called(by_id("rust"), "fn f(new: i32) { old }", [5], "old", "new")
