"""Python's own compiler judges what a text brings into a document, whatever else is wrong with that."""

import random
import sys

import pytest

from codespec.early_errors import EarlyErrors, python_compiler
from codespec.early_errors.python_excerpt import Cut, newer_syntax, without
from codespec.languages import by_id
from codespec.syntax.tree import syntax_tree
from tests.early_errors import compilers, samples
from tests.present import present

PYTHON = by_id("python")


def refused(before, text, after, strict=True, path=""):
    tree = present(syntax_tree(PYTHON, before + after))
    early = tree.early_errors(PYTHON, len(before), path)
    return bool(tree.with_text(len(before), text).early_errors_added(early, strict))


STARRED = "def f(xs):\n    for x in xs:\n        try:\n            g()\n        except* ValueError as e:\n            "


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        (STARRED, "return 1", "\n            raise RuntimeError from e\n"),
        (STARRED, "break", "\n"),
        (STARRED, "if x:\n                continue", "\n"),
        ("match v:\n    case Point(x=x, ", "y=x", "):\n        pass\n"),
        ("match v:\n    case Point(x=y, ", "x=z", "):\n        pass\n"),
        ("match v:\n    case [first, *rest, ", "*others", "]:\n        pass\n"),
        ("match v:\n    case {'a': b, ", "'a': c", "}:\n        pass\n"),
        ("match v:\n    case [a, ", "a", "]:\n        pass\n"),
        ("match v:\n    case [a] | ", "[b]", ":\n        pass\n"),
        ("match v:\n    case {**rest, ", "'a': b", "}:\n        pass\n"),
        ("x = [i for i in ", "(y := z)", "]\n"),
        ("x = [", "(i := 1)", " for i in z]\n"),
        ("class A:\n    x = [", "(j := i)", " for i in z]\n"),
        ("async def f():\n    yield 1\n    ", "return 2", "\n"),
        ("async def f():\n    return 2\n    ", "yield 1", "\n"),
        ("async def f():\n    async def g(a=1):\n        ", "yield a\n        return a", "\n    return 2\n"),
        ("def f(a=", "await g()", "):\n    pass\n"),
        ("def f(a):\n    ", "a: int = 1\n    global a", "\n"),
        ("def f():\n    ", "__debug__ = 1", "\n"),
        ("def f():\n    ", "del (yield)", "\n"),
        ("async def f():\n    await a\n", "def g():\n    pass\n", "    await b\n"),
        ("if a:\n    ", "# nothing", "\nb = 1\n"),
        ("'''doc'''\n", "x = 1\n", "from __future__ import annotations\n"),
        ("x = 1\n", "from __future__ import annotations", "\n"),
        ("def f():\n    x = 1\n    def g():\n        ", "nonlocal y", "\n"),
        ("class A:\n    ", "return 1", "\n    def f(self):\n        return 2\n"),
        ("x = (1 +\n     2)\n", "await a", "\n"),
    ],
)
def test_what_the_compiler_refuses(before, text, after):
    assert compilers.python(before + text + after)
    assert refused(before, text, after)


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        (STARRED, "while x: break", "\n"),
        (STARRED, "def g(): return 1", "\n"),
        ("match v:\n    case Point(x=x, ", "y=y", "):\n        pass\n"),
        ("match v:\n    case [a] | ", "(a,)", ":\n        pass\n"),
        ("def f():\n    x = [", "(j := i)", " for i in z]\n"),
        ("async def f():\n    yield 1\n    ", "return", "\n"),
        ("async def f():\n    async def g():\n        return 1\n    ", "yield 2", "\n"),
        ("'''doc'''\n", "from __future__ import division\n", "from __future__ import annotations\n"),
        ("if a:\n    ", "c()", "\nb = 1\n"),
        ("def f():\n    x = 1\n    def g():\n        ", "nonlocal x", "\n        def h():\n            nonlocal x\n"),
        ("def f(\n    a,\n    ", "b=1,", "\n):\n    pass\n"),
        ("x = 'é'; y = '𝒳'; z = [", "'ü', ", "1]\n"),
        ("def f():\r\n    ", "return 1", "\r\n\r\nclass A:\r\n    def g(self):\r\n        pass\r\n"),
    ],
)
def test_what_it_takes(before, text, after):
    assert compilers.python(before + text + after) is None
    assert not refused(before, text, after)


def test_in_a_notebook_await_may_stand_anywhere():
    assert refused("", "await a", "\n", path="a.py")
    assert not refused("", "await a", "\n", path="a.ipynb.py")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("print 'old'\n\ndef f():\n    print 'older'\n    ", "\n    print 'oldest'\n"),
        ("class A:\n    return 1\n\n    def f(self):\n        ", "\n        return 2\n"),
        ("def f():\n    try:\n        g()\n    except A, e:\n        ", "\n"),
        ("def f():\n    exec 'a' in b\n    if 1:\n        ", "\n    raise E, 'old'\n"),
        ("def f(a):\n    x = 0777\n    while a:\n        ", "\n"),
    ],
)
def test_errors_elsewhere_are_not_the_texts(before, after):
    """Files of Python 2, or with an error that was there: what is wrong with the text itself is found all the same."""
    assert compilers.python(before + "pass" + after)
    for text in ("x = 1", "g(a, b=1)", "if x:\n            pass"):
        assert not refused(before, text, after), text
        assert not refused(before, text, after, strict=False), text
    for text in ("f() = 1", "x = [(y := 1) for y in z]", "g(a=1, a=2)", "nonlocal q"):
        assert refused(before, text, after), text


def test_where_the_head_of_the_function_is_wrong_texts_are_taken():
    assert not refused("def f(a, a):\n    ", "x = 1", "\n    return a\n")
    assert refused("def f(a, a):\n    ", "f() = 1", "\n    return a\n")


@pytest.mark.parametrize(
    "text",
    [
        "type X = int", "type X[T] = list[T]", "def g[T](x: T) -> T: return x", "class A[T: int, *Ts, **P]: pass",
        "x = f\"{a[\"b\"]}\"", "x = f'{'\\n'.join(a)}'", "x = f'''{a # why\n}'''", "x = t'{a}'", "x = f'{f'{a}'}'",
    ],
)  # fmt: skip
def test_syntax_of_a_newer_python_is_taken(text):
    assert not refused("def f(a):\n    ", text, "\n    return a\n")
    assert not refused("def f(a):\n    " + text + "\n    ", "return 1", "\n    return a\n")
    assert refused("class A:\n    " + text + "\n    ", "return 1", "\n    b = 1\n")


def test_of_newer_syntax_only_that_is_left_out():
    data = b"type X = int\nx = f'{a['b']}' + f'{a}' + t'{a}'\ndef g[T](): pass\n"
    root = present(syntax_tree(PYTHON, data.decode()))._root
    found = {version: len(newer_syntax([root], data, version)) for version in ((3, 11), (3, 12), (3, 14))}
    assert found == {(3, 11): 6, (3, 12): 2, (3, 14): 0}
    left = without(data, 0, len(data), newer_syntax([root], data, (3, 11)))
    assert left.count(b"\n") == data.count(b"\n")
    assert compilers.python(left.decode()) is None


def test_a_text_that_ends_the_compiler_is_refused_and_the_next_one_judged():
    before, after = "def f():\n    return [a ", "]\n\ndef g():\n    pass\n"
    assert refused(before, "for a in b " * 100_000, after)
    assert not refused(before, "for a in b", after)


def test_where_nothing_answers_a_text_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    python_compiler.shared.close()
    assert refused("", "x = 1", "\n")


@pytest.mark.parametrize("size", [2000, 4000])
def test_what_is_compiled_does_not_grow_with_the_file(size):
    method = "    def f{}(self):\n        x = 1\n        return [x,\n                2]\n\n"
    text = "class A:\n" + "".join(map(method.format, range(size))) + "\nX = [\n" + "    'element',\n" * size + "]\n"
    tree = present(syntax_tree(PYTHON, text))
    places = [text.index("x = 1", len(text) // 3), text.index("'element'", len(text) - 10 * size)]
    lengths = [len(Cut(tree._root, tree._data, place, place).excerpt().text.replace(b"\n", b"")) for place in places]
    assert lengths[0] < size * len(method) // 2
    assert lengths[1] < 5 * size


def test_pieces_of_real_files_are_taken_where_they_were():
    chooser = random.Random(5)
    judged = 0
    for path, text in samples.files("python", 25, chooser):
        if compilers.python(text) is not None:
            continue
        lines = text.splitlines(keepends=True)
        for _ in range(8):
            row = chooser.randrange(len(lines))
            line = lines[row].rstrip("\r\n")
            begin = chooser.randrange(len(line) + 1)
            end = chooser.choice((len(line), chooser.randrange(begin, len(line) + 1)))
            place = sum(map(len, lines[:row])) + begin
            before, piece, after = text[:place], line[begin:end], text[place + end - begin :]
            judged += 1
            assert not refused(before, piece, after), (path, row, piece)
            assert not refused(before, piece, after, strict=False), (path, row, piece)
    assert judged > 100


def test_a_tree_without_statements_has_no_errors():
    tree = present(syntax_tree(PYTHON, "# a\n"))
    assert EarlyErrors(PYTHON, tree._root, b"# a\n", 2).added(tree._root, b"# a\n") == []
