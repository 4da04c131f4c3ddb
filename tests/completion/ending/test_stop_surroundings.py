"""What a place in a document is inside of."""

import pytest

from codespec.completion.ending.stop_rule import StopRule, syntax_context
from codespec.languages import by_id
from codespec.syntax.tree import syntax_tree


def at(language, document):
    """What the parser says of the place of █, then what is made of it."""
    prefix, _, suffix = document.partition("█")
    tree = syntax_tree(by_id(language), prefix + suffix)
    assert tree is not None
    found = tree.context_at(len(prefix))
    return found, syntax_context(prefix, suffix, by_id(language), found)


@pytest.mark.parametrize(
    ("language", "document", "kind", "before", "after"),
    [
        ("python", "x = 'ab█cd'\n", "string", "'ab", "cd'"),
        ("python", "x = 'abcd'█\n", "code", "", ""),
        ("python", "x = █'abcd'\n", "code", "", ""),
        ("python", "x = f'a{b█}c'\n", "code", "", ""),
        ("python", "x = f'a█{b}c'\n", "string", "f'a", "{b}c'"),
        ("python", "x = 1  # no█te\n", "comment", "# no", "te"),
        ("python", "x = 1  # note█\n", "comment", "# note", ""),
        ("python", "x = 1█  # note\n", "code", "", ""),
        ("python", "é = 'ü█'\n", "string", "'ü", "'"),
        ("c", "/* a█ */ int b;\n", "comment", "/* a", " */"),
        ("c", "/* a */█ int b;\n", "code", "", ""),
        ("javascript", "f(`a${b█}`)\n", "code", "", ""),
        ("javascript", "f(`a█${b}`)\n", "string", "`a", "${b}`"),
        ("go", "package a\nvar b = `c█\n`\n", "string", "`c", "\n`"),
        ("json", '{"a█": 1}', "string", '"a', '"'),
    ],
)
def test_the_parser_tells(language, document, kind, before, after):
    found, around = at(language, document)
    assert found == around
    assert (found.kind, found.before, found.after) == (kind, before, after)


@pytest.mark.parametrize(
    ("language", "document", "kind", "before"),
    [
        ("python", "x = 'ab█\ny = 1\n", "string", "'ab"),
        ("python", "def f():\n    '''Some█\n", "string", "'''Some"),
        ("javascript", 'f("a█\n', "string", '"a'),
        ("c", "/* a█\n", "comment", "/* a"),
        ("go", "package a\n\nfunc f( {\n\tg(█\n}\n", "code", ""),
    ],
)
def test_where_an_error_is_in_the_way_the_signs_tell(language, document, kind, before):
    _, around = at(language, document)
    assert (around.kind, around.before) == (kind, before)


@pytest.mark.parametrize(
    ("language", "document", "expected"),
    [
        ("python", "█\nx = 1\n", True),
        ("python", "class A:\n    x = 1\n    █\n", True),
        ("python", "def f():\n    x = 1\n    █\n    return x\n", False),
        ("go", "package a\n\n█\n\nfunc f() {}\n", True),
        ("typescript", "class A {\n  a = 1;\n  █\n}\n", True),
        ("typescript", "function f() {\n  g();\n  █\n}\n", False),
    ],
)
def test_where_definitions_stand_side_by_side(language, document, expected):
    _, around = at(language, document)
    assert around.definitions == expected


@pytest.mark.parametrize(
    ("document", "extent", "closer", "closed"),
    [
        ("x = '█'\n", "text", "'", True),
        ("x = '█\n", "line", "", True),
        ("'''Some█\n'''\n", "text", "'''", True),
        ("# █\n", "line", "", True),
    ],
)
def test_the_rule_that_follows(document, extent, closer, closed):
    prefix, _, suffix = document.partition("█")
    found, _ = at("python", document)
    rule = StopRule.at(prefix, suffix, by_id("python"), found)
    assert (rule.extent, rule.closer, rule.closed) == (extent, closer, closed)
