"""Python's own parser and the shipped grammar agree on the order of parameters and arguments."""

import ast
from itertools import product

import pytest

from codespec.grammar import Grammar
from codespec.grammar.check import accepts_text

PARAMETERS = ("{}", "{}=1", "*", "*{}", "**{}", "/")
ARGUMENTS = ("{}", "*{}", "{}=1", "**{}")


@pytest.fixture(scope="module")
def grammar():
    return Grammar.load("python")


def lists(kinds):
    for size in range(5):
        for chosen in product(kinds, repeat=size):
            items = ", ".join(kind.format("abcd"[place]) for place, kind in enumerate(chosen))
            yield items
            if items:
                yield items + ","


def parses(text):
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize(
    ("around", "kinds"),
    [("def f({}): 0\n", PARAMETERS), ("f = lambda {}: 0\n", PARAMETERS), ("f({})\n", ARGUMENTS)],
    ids=["def", "lambda", "call"],
)
def test_the_order_is_that_of_pythons_parser(grammar, around, kinds):
    texts = [around.format(items).replace("lambda :", "lambda:") for items in lists(kinds)]
    verdicts = {text: parses(text) for text in texts}
    assert {text: accepts_text(grammar, text, "").accepted for text in texts} == verdicts
    assert len(set(verdicts.values())) == 2


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("def f(a: int, /, b: str = '', *c: *T, d: int, **e: dict) -> int: 0\n", True),
        ("def f(\n    a,  # so\n    *,\n    b=1,\n): 0\n", True),
        ("def f(a: *T): 0\n", False),
        ("def f(a=1, b: int): 0\n", False),
        ("def f[T: int = str, *U, **V](a): 0\n", True),
        ("f(x for x in y)\n", True),
    ],
)
def test_annotations_and_type_parameters(grammar, text, accepted):
    assert accepts_text(grammar, text, "").accepted == accepted
