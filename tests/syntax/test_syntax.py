"""tree-sitter's view of a document: errors, where they come from, where a text can be read on its own."""

import pytest

from codespec.languages import LANGUAGES, Language, by_id
from codespec.syntax.tree import NO_PROBLEMS, Problems, _parser, syntax_tree, well_formed

CORE = ("python", "json", "javascript", "typescript", "typescriptreact", "go", "c")
PYTHON = """import os


def first(a):
    if a:
        return [
            1,
        ]
    return a


def second(b):
    return b
"""
GO = "package main\n\nfunc f() {\n\tif x {\n\t\ty := 1\n\t}\n}\n\nfunc g() {\n\treturn\n}\n"


def tree_of(language, text):
    tree = syntax_tree(by_id(language), text)
    assert tree is not None
    return tree


@pytest.mark.parametrize("language", CORE)
def test_core_languages_have_a_parser(language):
    assert tree_of(language, "").problems == NO_PROBLEMS


def test_a_language_without_a_parser_has_no_tree():
    assert syntax_tree(Language("klingon", (), parser="tree_sitter_klingon"), "") is None
    assert syntax_tree(by_id("markdown"), "") is None


def test_parsers_are_named_once_each():
    for language in LANGUAGES.values():
        assert not language.parser or language.parser.startswith("tree_sitter_")


@pytest.mark.parametrize(
    ("language", "text", "errors"),
    [
        ("json", '{"a": [1, 2]}', 0),
        ("json", '{"a": [1, 2}', 1),
        ("python", "def f(:\n    pass\n", 1),
        ("go", GO, 0),
        ("c", "int main(void) { return 0; }", 0),
        ("c", "int main(void) { return 0 }", 1),
    ],
)
def test_errors_are_counted(language, text, errors):
    assert tree_of(language, text).problems.count == errors


@pytest.mark.parametrize("text", ["", "\n", "\ud83d", "a\x00b", "🦙 = (", "\t" * 100])
def test_any_text_can_be_parsed_and_asked(text):
    tree = tree_of("python", text)
    for offset in range(len(text) + 1):
        assert tree.with_text(offset, "x").problems is not None
        assert tree.tokens(offset, 3) is not None
        tree.problems_elsewhere(offset, 10)
        assert list(tree.starts(offset)) is not None


def test_a_text_put_in_leaves_the_tree_as_it_was():
    tree = tree_of("json", '{"a": }')
    before = tree.problems
    assert before.count > 0
    assert tree.with_text(6, "1").problems == NO_PROBLEMS
    assert tree.with_text(6, "]").problems.count > 0
    assert tree.problems == before


def test_an_insertion_before_a_statement_is_seen():
    """tree-sitter's incremental parse keeps the line end before ``while``, and finds no error."""
    before = "def f(number):\n    sym = 1\n"
    tree = tree_of("python", before + "    while number:\n        pass\n")
    assert tree.problems == NO_PROBLEMS
    assert tree.with_text(len(before), "    return number,").problems.count == 1


def test_errors_of_other_parts_of_a_file_are_told_from_those_at_the_cursor():
    broken = PYTHON.replace("return b", "return )")
    offset = broken.index("        ]")
    tree = tree_of("python", broken[:offset] + broken[offset:].replace("        ]\n", "", 1))
    assert tree.problems_elsewhere(offset, 1000).count == 1
    assert tree_of("python", PYTHON.replace("        ]\n", "", 1)).problems_elsewhere(offset, 1000) == NO_PROBLEMS


def test_errors_beyond_the_window_are_none_of_the_cursors_unless_an_open_bracket_explains_them():
    text = '{"a": 1,\n' + '"b": 2,\n' * 20 + '"c": ?,\n"d": 3}'
    tree = tree_of("json", text)
    assert tree.problems.count == 1
    assert tree.problems_elsewhere(7, 100).count == 1
    assert tree.problems_elsewhere(7, 1000).count == 0
    assert tree_of("json", text.replace("?", "4") + "}").problems_elsewhere(7, 100).count == 0
    assert tree_of("json", text.replace("?", "4")[:-1]).problems_elsewhere(7, 100).count == 0


def test_what_comes_after_one_bracket_too_many_is_an_error_of_the_cursors():
    inner = '"b": {"c": [1, 2]},\n' * 20
    text = '{"a": {"x": {\n' + inner + '"d": 3}},\n"e": {"f": 4}}\n'
    assert tree_of("json", text).problems == NO_PROBLEMS
    hole = text.replace('"x": {', "")
    assert tree_of("json", hole).problems.count > 0
    assert tree_of("json", hole).problems_elsewhere(7, 100) == NO_PROBLEMS


def test_what_encloses_the_whole_file_is_no_error_elsewhere():
    text = "#ifndef A_H\n#define A_H\n\nint f(void) {\n  return 0;\n}\n\nint g(void);\n\n#endif\n"
    assert tree_of("c", text).problems == NO_PROBLEMS
    hole = text.replace("#endif\n", "")
    assert tree_of("c", hole).problems_elsewhere(len(hole), 1000) == NO_PROBLEMS
    hole = text.replace("  return 0;\n}\n", "")
    assert tree_of("c", hole).problems_elsewhere(hole.index("{") + 2, 1000) == NO_PROBLEMS


def test_problems_compare_by_number_and_extent():
    assert Problems(1, 10).no_worse_than(Problems(1, 10))
    assert Problems(1, 12).no_worse_than(Problems(1, 10), added=2)
    assert not Problems(1, 12).no_worse_than(Problems(1, 10))
    assert not Problems(2, 5).no_worse_than(Problems(1, 10))


@pytest.mark.parametrize(
    ("language", "text", "marker", "expected"),
    [
        ("python", PYTHON, "1,", ["def first", "    if a:", "        return ["]),
        ("python", PYTHON, "return b", ["def second", "    return b"]),
        ("go", GO, ":= 1", ["func f", "\tif x", "\t\ty :="]),
        ("javascript", "let a;\nfunction f() {\n  if (a) {\n    b();\n  }\n}\n", "b();", ["function f", "  if (a)"]),
        ("c", "int a;\nint f() {\n  if (a) {\n    b();\n  }\n}\n", "b();", ["int f", "  if (a)"]),
    ],
)
def test_enclosing_statements_are_found_outermost_first(language, text, marker, expected):
    offset = text.index(marker) + 1
    starts = list(tree_of(language, text).starts(offset))
    assert [start.offset for start in starts] == sorted(start.offset for start in starts)
    found = [text[start.offset : start.offset + 20].split("\n")[0] for start in starts]
    for beginning in expected:
        assert any(line.startswith(beginning) for line in found), (beginning, found)
    assert starts[0].top_level
    assert not starts[-1].top_level


def test_too_large_a_document_is_left_alone(monkeypatch):
    monkeypatch.setattr("codespec.syntax.tree.LARGEST", 10)
    assert syntax_tree(by_id("python"), "x = 1\n" * 10) is None
    assert syntax_tree(by_id("python"), "x = 1\n") is not None


def test_parsers_are_shared():
    assert _parser("tree_sitter_python") is _parser("tree_sitter_python")


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("python", "for x in y:\n    pass\n", True),
        # tree-sitter takes a block with nothing in it.
        ("python", "for x in y:\nz = 1\n", False),
        ("python", "def f(a=1, b): pass\n", False),
        ("python", "a\0", False),
        ("python", "(" * 5000, False),
        ("json", "[1]", True),
        ("json", "[1] // one", False),
        ("json", "[" * 100_000, False),
        ("go", "anything", True),
    ],
)
def test_the_parsers_of_the_makers(language, text, expected):
    assert well_formed(by_id(language), text) == expected


def test_what_begins_right_behind_the_cursor_may_lack_its_beginning():
    text = "int a;\n\nf(int x)\n{\n}\nint b = ;\n"
    tree = tree_of("c", text)
    # f's missing type makes two errors, "int b = ;" one.
    assert tree.problems.count == 3
    assert tree.problems_elsewhere(text.index("\nf("), 1000).count == 1
    assert tree.problems_elsewhere(text.index("int b") + 4, 1000).count == 2
