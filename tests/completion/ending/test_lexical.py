"""What stands behind a text keeps its place by its signs alone."""

import pytest

from codespec.completion.ending.lexical import LexicalCheck
from codespec.completion.ending.tree_check import TreeCheck
from codespec.languages import by_id
from codespec.syntax.tree import syntax_tree

MACROS = "BEGIN(a) static INLINE b c\n"
"""What no parser of C takes without the macros."""


def check_at(text, language="c", closes=False):
    prefix, suffix = text.split("|")
    return LexicalCheck(prefix, suffix, by_id(language), closes)


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        # brackets
        ("f() {\n|\n}\n", ["a();", "if (b) { c(); }"], ["a(;", "{", "}", "a(];"]),
        ("f(|);\n", ["a", "g(a)"], ["g(a", "a)"]),
        ("f(|\n}\n", ["a);", "a"], ["(a", "a))"]),
        # comments and quotes
        ("/* a | */\nb;\n", ["c", "c\n * d"], ["c */ d"]),
        ("b;\n|c;\n", ["/* d */\n"], ["/* d", "// d", '"d']),
        ('f("a|b");\n', ["c", 'c", "d'], ['c"', "c\n"]),
        ("// a|\nb;\n", [" c", "\nd;"], ["\n/* d"]),
        # conditionals of the preprocessor
        ("#if A\n|\n#endif\n", ["#if B\n#endif", "#else", "#elif B", "a;"], ["#if B", "#endif"]),
        ("#if A\na;\n#else\n|\n#endif\n", ["#ifdef B\n#else\n#endif"], ["#else", "#elif B", "#ifdef B"]),
        ("#if A\nif (a) {\n#else\n|\n#endif\n}\n", ["if (b) {"], ["if (c) { { {", "}"]),
        ("#if A\n|", ["a;\n#endif"], ["#endif\n#endif"]),
        # directives
        ("|#define A\n", ["#define B\n", "int b;\n"], ["#define B ", "int b; "]),
        ("a;\n|b;\n", ["#pragma once\n"], ["#pragma once "]),
        ("#define A \\\n| b\nc;\n", ["d", "d \\\n"], ["d\n"]),
        ("#define A|\nb;\n", [" {", " (c)", "\n#define B"], [" \\"]),
        # statements and values
        ("a;\n|\nb;\n", ["c;", "if (d) { e(); }", "// f"], ["c", "c *", "c,", "(int)", "c::"]),
        ("a;\n|b;\n", ["c;\n"], ["c *\n", "static "]),
        ("f(a,\n|\nb);\n", ["c,"], ["c", "c +"]),
        ("int a[] = {\n|\n};\n", ["1,", "1, 2,"], ["1 +"]),
        ("if (a)\nb();\n|\nelse\nc();\n", ["// d"], ["d();"]),
        ("struct a|\n{\nint b;\n};\n", [" /* c */"], [" c;", " {\nint d;\n} c;"]),
        ("int si|ze;\n", ["z", "z, fi"], ["ze; "]),
    ],
)
def test_floor(text, good, bad):
    check = check_at(text)
    assert [each for each in good if not check(each)] == []
    assert [each for each in bad if check(each)] == []


def test_a_comment_that_nothing_closes_may_be_closed():
    assert check_at("/* a |\nb;\n", closes=True)("c */")


def test_statements_need_no_sign_at_their_end_in_other_languages():
    assert check_at("a\n|\nb\n", "javascript")("c")
    assert not check_at("a\n|\nb\n", "javascript")("c(")


def test_a_name_behind_a_single_quote_is_no_text():
    assert check_at("fn f(x: &|> str) {}\n", "rust")("'a")


@pytest.mark.parametrize(
    ("text", "sound"),
    [("a;\n|\nb;\n", True), ("f(|);\n", True), ("a\n|\nb;\n", False), ("f(|;\n", False), ("#if A\n|", False)],
)
def test_where_something_is_missing_already_is_not_sound(text, sound):
    assert check_at(text).sound == sound
    assert not check_at(text, "javascript").sound


@pytest.mark.parametrize(
    ("text", "fits"), [("d;", True), ("d", False), ("d(;", False), ("#endif", False), ("/* d", False)]
)
def test_beside_macros(text, fits):
    before, after = f"{MACROS}int a;\n", f"\n{MACROS}int e;\n"
    tree = syntax_tree(by_id("c"), before + after)
    if tree is None:
        pytest.skip("no parser of C")
    assert tree.problems.count
    check = LexicalCheck(before, after, by_id("c"))
    assert TreeCheck(tree, len(before), "", len(after), lexical=check)(text, strict=False) == fits
