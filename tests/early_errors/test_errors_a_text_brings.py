"""What texts put in at one position bring with them."""

import pytest

from codespec.completion.ending.tree_check import TreeCheck
from codespec.early_errors import EarlyErrors, early_errors
from codespec.languages import by_id
from codespec.syntax.parsing import new_parser
from codespec.syntax.tree import syntax_tree
from tests.present import present

AWAIT = "await outside an async function"
COMMONJS = "import or export in a CommonJS module"


def added(language, before, text, after, strict=True, path=""):
    """The kinds of errors that ``text`` brings between ``before`` and ``after``."""
    tree = present(syntax_tree(by_id(language), before + after))
    new = tree.with_text(len(before), text)
    assert not new.problems.count
    early = tree.early_errors(by_id(language), len(before), path)
    return sorted({error.kind for error in new.early_errors_added(early, strict)})


@pytest.mark.parametrize(
    ("language", "before", "text", "after", "expected"),
    [
        # A partner before the text, behind it, and within it.
        ("javascript", "let a;\n", "let a;", "\n", ["redeclared"]),
        ("javascript", "{\n  ", "let a;", "\n  f();\n  const a = 1;\n}", ["redeclared"]),
        ("javascript", "", "let a; let a;", "\n", ["redeclared"]),
        ("javascript", "let a; function f() {\n  ", "let a;", "\n}", []),
        # The text moves what follows to another function.
        ("javascript", "async function f() {\n", "}\nfunction g() {\n", "  await b;\n}", [AWAIT]),
        ("javascript", "async function f() {\n", "}\nasync function g() {\n", "  await b;\n}", []),
        # What a file is decides what may come to it.
        ("javascript", "", "import a from 'a';\n", "const b = require('b');\n", [COMMONJS]),
        ("javascript", "exports.a = 1;\n", "export const b = 2;", "\n", [COMMONJS]),
        ("javascript", "", "import a from 'a';\n", "import b from 'b';\nconst c = require('c');\n", []),
        ("javascript", "", "import a from 'a';\n", "let b;\n", []),
        # What is unfinished at the position has to be finished.
        ("javascript", "const a", " = 1;", "\n", []),
        ("javascript", "const a", "bc;", "\n", ["declared without a value"]),
        # Errors elsewhere are not the text's.
        ("javascript", "let b; let b;\nfunction f() {\n  ", "g();", "\n}\nlet c; let c;", []),
        ("javascript", "function f() { break; }\n", "g();", "\n", []),
        # The file's name, or what else is in the file, decides.
        ("javascript", "", "await a;", "\nrequire('b');", [AWAIT]),
        ("javascript", "import 'b';\n", "return;", "\n", ["return outside a function"]),
        ("javascript", "require('b');\n", "return;", "\n", []),
        # A macro of nothing removes the uses of its name.
        ("c", "", "#define LESS\n", "int f(LESS a);\n", ["macro of nothing that the file uses"]),
        # What was a number before is no name.
        ("c", "#define B (A + 1)\nenum {\n  ", "B,", "\n  C,\n};\n", ["macro as an enumerator"]),
        ("c", "#define B 2\nenum {\n  A,\n  ", "B,", "\n};\n", ["macro as an enumerator"]),
        ("c", "#define B (1)\nenum {\n  ", "A = B,", "\n  C,\n};\n", []),
        ("c", "#define B (1)\n#undef B\nenum {\n  ", "B,", "\n  C,\n};\n", []),
        ("c", "#ifdef A\n#define B 1\n#else\nenum {\n  ", "B,", "\n  C,\n};\n#endif\n", []),
        ("c", "#define B B\nenum {\n  ", "B,", "\n  C,\n};\n#define C (A + 1)\n", []),
        ("c", "#ifndef LESS\n", "#define LESS\n", "#endif\nint a;\n", []),
        ("c", "", "#define LESS int\n", "int f(LESS a);\n", []),
    ],
)  # fmt: skip
def test_a_text_answers_for_the_errors_that_it_brings(language, before, text, after, expected):
    assert added(language, before, text, after) == expected


def test_the_name_of_a_file_tells_what_may_stand_at_its_top_level():
    assert added("javascript", "", "await a;", "\n", path="a.cjs") == [AWAIT]
    assert added("javascript", "", "return;", "\n", path="a.mjs") == ["return outside a function"]


def test_where_a_document_is_broken_only_what_a_text_touches_counts():
    before, after = "function g() {\n  ", "\n  break;\n}\n\n@@ ) (\n"
    tree = present(syntax_tree(by_id("javascript"), before + after))
    assert tree.problems.count
    for text, expected in (("h();", False), ("continue;", True)):
        new = tree.with_text(len(before), text)
        found = new.early_errors_added(tree.early_errors(by_id("javascript"), len(before), ""))
        assert bool(found) == expected


def test_less_strict_than_that_errors_that_were_there_do_not_count():
    before, after = "let a;\nlet a", ";\n"
    assert added("javascript", before, " = 1", after) == ["redeclared"]
    assert added("javascript", before, " = 1", after, strict=False) == []


def test_a_language_that_nothing_is_known_of_has_none():
    root = present(new_parser("tree_sitter_json")).parse(b"[1]").root_node
    assert early_errors(by_id("json"), root, b"[1]") == set()
    assert EarlyErrors(by_id("json"), root, b"[1]", 1).added(root, b"[1]") == []


@pytest.mark.parametrize(
    ("language", "before", "after", "wrong"),
    [("javascript", "x = ", ";", "break;"), ("c", "int f(void) { return ", "; }", "break;")],
)
def test_deep_nesting_is_no_error_and_hides_none(language, before, after, wrong):
    nested = before + "(" * 3000 + "1" + ")" * 3000 + after
    for text, expected in ((nested, False), (nested + wrong, True)):
        root = present(new_parser(by_id(language).parser)).parse(text.encode()).root_node
        assert not root.has_error
        assert bool(early_errors(by_id(language), root, text.encode())) == expected


def test_the_gate_asks():
    before, after = "let a;\n", "\nf();\n"
    language = by_id("javascript")
    tree = present(syntax_tree(language, before + after))
    early = tree.early_errors(language, len(before), "")
    check = TreeCheck(tree, len(before), "", 100, early=early)
    assert check("let b;")
    assert not check("let a;")
    assert TreeCheck(tree, len(before), "", 100)("let a;")


@pytest.mark.parametrize(
    ("language", "text", "behind", "refused", "taken"),
    [
        (
            "javascript",
            "function f() {\n  const a = 1;\n}\n\n@@ ) (\n",
            "  const a = 1;\n",
            "  const a = 2;\n",
            "  b();\n",
        ),
        ("c", "int a;\n\nint b;\n\nint d;\n@@ ) (\n", "int a;\n", "f(-1);\n", "int c;\n"),
    ],
    ids=["in a part without errors", "between such parts"],
)
def test_beside_an_error_of_the_parser_a_text_is_judged(language, text, behind, refused, taken):
    tree = present(syntax_tree(by_id(language), text))
    assert tree.problems.count
    place = text.index(behind) + len(behind)
    for added, found in ((refused, True), (taken, False)):
        early = tree.early_errors(by_id(language), place, "")
        assert bool(tree.with_text(place, added).early_errors_added(early)) == found


@pytest.mark.parametrize("text", ["import os", '"""A."""', "x = 1", "from __future__ import division", "# c", ""])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# a\n", '\n# b\n\n"""Doc."""\n\nfrom __future__ import annotations\n\nx = 1\n'),
        ("# a\n", "\n# b\n\nfrom __future__ import annotations\n\nx = 1\n"),
        ("", '\n"a"\nfrom __future__ import annotations\nfrom __future__ import division\n'),
        ('"a"\n', "\n\nfrom __future__ import annotations\n"),
        ('"a"\nfrom __future__ import annotations\n', "\n\nfrom __future__ import generators\n"),
    ],
)
def test_before_future_imports_stands_what_python_takes_there(before, after, text):
    try:
        compile(before + text + after, "a.py", "exec")
        expected = False
    except SyntaxError:
        expected = True
    assert bool(added("python", before, text, after)) == expected
