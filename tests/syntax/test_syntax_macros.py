"""What is blanked in C so that its parser understands it."""

import random
from types import SimpleNamespace

import pytest

from codespec.completion.ending.tree_check import TreeCheck
from codespec.completion.open_documents import OpenDocuments
from codespec.completion.trees import Trees, find_blanking
from codespec.languages import by_id
from codespec.syntax.macros import MOST_BYTES, Blanking, Error, conditionals, default, search
from codespec.syntax.tree import syntax_tree
from tests.fakes import FakeVocabulary
from tests.present import present

C = by_id("c")

pytestmark = pytest.mark.skipif(syntax_tree(C, "") is None, reason="no parser of C")

DOCUMENTS = {
    "a specifier": "API int f(int a);\nAPI char *g(void);\nint h(void) { return f(1); }\n",
    "a specifier in small letters": "public int a;\npublic char *b;\npublic void\nf(void)\n{\n}\n",
    "behind stars": "char * __cdecl f(void);\nvoid * __cdecl g(int a);\n",
    "before a block": "void f(int a) {\n    FOR_ALL(a, b)\n    {\n        a++;\n    }\n}\n",
    "a statement": "void f(int a) {\n    NEED((unsigned)a)\n    a++;\n    NEED((unsigned)a)\n    a--;\n}\n",
    "arguments that are types": "int f(int a) { return PICK(int *, 2); }\nint g(int a) { return PICK(char *, a); }\n",
    "lists in brackets": "char *f PARAMS((char *a, int b));\nint g PARAMS((int));\n",
    "attributes": "FORMAT(printf, 1, 2)\nvoid f(const char *a, ...);\n\nFORMAT(printf, 2, 3)\nvoid g(int a);\n",
    "C++": "#ifdef __cplusplus\nextern \"C\" {\n#endif\nint a;\n#ifdef __cplusplus\n} // the end\n#endif\n",
    "addresses of labels": "void f(int i) {\n    static void *all[] = { &&a, &&b };\n    void *p = &&b;\n"
    "    goto *all[i];\na:\n    goto *p;\nb:\n    return;\n}\n",
    "words that the parser lacks": "_Thread_local int a;\n_Complex double b;\n__extension__ struct s { int c; };\n",
    "half a statement": "void f(int a) {\n#ifdef A\n    if (a) {\n#else\n    if (!a) {\n#endif\n        a++;\n    }\n}",
    "chains": "void f(int a) {\n#ifdef A\n    if (a)\n        a++;\n    else\n#endif\n#ifdef B\n    if (!a)\n"
    "        a--;\n    else\n#endif\n        a = 0;\n}\n",
}  # fmt: skip


def tree_at(text, offset, trees=None):
    return present((trees or Trees()).at("a.c", C, text, offset))


def errors(text):
    tree = present(syntax_tree(C, text))
    return [Error(*each) for each in tree.errors_in(text.encode())]


@pytest.mark.parametrize("text", DOCUMENTS.values(), ids=DOCUMENTS)
def test_no_errors_are_left(text):
    assert errors(text), "nothing to do"
    blanked = find_blanking(C, text)(text.encode())
    assert not errors(blanked.decode())
    assert len(blanked) == len(text)
    assert [at for at, sign in enumerate(blanked) if sign == 10] == [at for at, sign in enumerate(text) if sign == "\n"]


@pytest.mark.parametrize("text", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_text_is_judged_strictly(text):
    """Beside what the parser did not understand it refused nothing: a completion of half a statement passed."""
    text = "int first;\n" + text
    tree = tree_at(text, 0)
    assert not tree.problems.count
    check = TreeCheck(tree, 0, "", 1000)
    assert check("")
    assert not check("int b c d = ;\n")


def test_a_goto_to_an_address_that_a_text_brings_is_taken():
    text = "void f(int i) {\n    static void *all[] = { &&a, &&b };\na:\n    \nb:\n    return;\n}\n"
    place = text.index("\nb:")
    tree = tree_at(text, place)
    check = TreeCheck(tree, place, "", 1000, early=tree.early_errors(C, place, ""))
    assert check("goto *all[i];")
    assert check("goto b;")
    assert not check("goto c;")


def test_a_sound_document_is_left_alone():
    assert not find_blanking(C, "int f(int a) { return a; }\n")
    assert not find_blanking(by_id("python"), "def f(:\n")


def test_functions_of_the_old_style_are_read_as_such():
    """Where they return a pointer, the parser finds no error and a block that belongs to nothing."""
    text = "char *f(a, b)\nint a; char *b;\n{\n    return b;\n}\n"
    assert not errors(text)
    assert (
        "compound_statement" in str(present(syntax_tree(C, text))._root).split("translation_unit")[1].split("body")[0]
    )
    tree = tree_at(text, 0)
    assert tree._root.children[0].type == "function_definition"
    # Where the declarations are being written they are judged.
    inside = text.index("char *b")
    assert Blanking(old_style=True)(text.encode(), inside) == text.encode()


def test_the_cursors_branch_is_read():
    text = "#ifdef A\nint a\n#else\nint b\n#endif\n;\n"
    blanking = Blanking(conditions={b"A": False})
    assert b"int a" not in blanking(text.encode())
    assert b"int b" in blanking(text.encode())
    assert b"int a" in blanking(text.encode(), text.index("int a"))


def test_conditions_are_known_by_what_they_ask():
    text = b"#if defined(A) /* a */\n#elif !defined B\n#elif X  >  1\n#else\n#endif\n#ifndef A\n#endif\n"
    found = [[(each.condition, each.wanted) for each in chain] for chain, _ in conditionals(text)]
    assert found == [[(b"A", True), (b"B", False), (b"X > 1", True), (None, True)], [(b"A", False)]]


def test_the_cursors_line_says_nothing():
    """What is being typed looks like a macro, and is none."""
    text = "int a;\nint IT_IS b;\nint c;\n"
    assert not find_blanking(C, text, text.index("b;"))
    assert find_blanking(C, text)


def test_strings_and_directives_keep_their_names():
    text = b'#define API\nAPI int f(void);\nconst char *a = "(", *b = API("a)b", 1);\nint MYAPI, API_;\n'
    blanked = Blanking({b"API": "call"})(text)
    assert blanked == text.replace(b'API("a)b", 1)', b" " * 13)
    assert Blanking({b"API": "name"})(text).count(b"API") == 3


def test_before_the_first_include_no_macro_is_known():
    blanking, text = Blanking({b"API": "name"}), b"API int a;\n#include <a.h>\nAPI int b;\n"
    assert blanking(text) == b"API int a;\n#include <a.h>\n    int b;\n"
    assert blanking(text[:11]) == b"    int a;\n"


def test_a_search_is_bounded():
    """Errors everywhere, and each name looks like a macro."""
    chooser = random.Random(1)
    words = ["".join(chooser.choices("ABCDEFGH_", k=6)) for _ in range(400)]
    text = "\n".join(" ".join(chooser.choices([*words, "(", ")", "int", "{", ";"], k=9)) for _ in range(1500)).encode()
    read = []

    def parse(data):
        read.append(len(data))
        return [Error(*each) for each in tree.errors_in(data)]

    tree = present(syntax_tree(C, ""))
    search(text, parse, parse(default(text)(text)))
    assert sum(read) <= MOST_BYTES + 2 * len(text)


def test_what_was_found_is_remembered():
    trees = Trees()
    text = DOCUMENTS["a specifier"] + "int x;\n"
    assert not tree_at(text, len(text), trees).problems.count
    found = trees._found["a.c", "c"]
    typed = text + "int y"
    assert tree_at(typed, len(typed), trees).problems.count == 1
    assert trees._found["a.c", "c"] is found
    assert not tree_at(typed + ";\nAPI int z;\n", len(typed), trees).problems.count
    # A document that has become much longer is searched again.
    longer = text + "OTHER int y(void);\n" * 60
    assert not tree_at(longer, 0, trees).problems.count


def test_a_document_that_is_being_written_is_not_searched():
    """A bracket that is missing makes errors in which anything looks like a macro."""
    trees, text = Trees(), DOCUMENTS["a specifier"]
    assert tree_at(f"{text}int x(void) {{\n", 0, trees).problems.count
    assert not trees._found
    assert not tree_at(f"{text}int x(void) {{\n}}\n", 0, trees).problems.count


def test_texts_are_blanked_like_the_document():
    text = "public int a;\npublic char *b;\npublic int c;\nint é;\n"
    tree = tree_at(text, len(text))
    assert not tree.with_text(len(text), "public int *d;\n").problems.count
    assert tree.with_text(len(text), "private int *d;\n").problems.count


@pytest.mark.parametrize(
    ("before", "after", "closed"), [("int a;\n", "\nint b;\n", None), ("void f(void) {\n    ", "\n}\n", "int c;")]
)
def test_between_declarations_nothing_is_closed_by_trying(before, after, closed):
    documents = OpenDocuments(SimpleNamespace(vocabulary=FakeVocabulary()))
    spot = documents.context_at("a.c", C, "none", before + after, len(before), "window")
    assert present(spot.gate).close("int c") == closed
