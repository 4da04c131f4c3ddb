"""What is known of a language stands in its row, or in its folder, which the row names; nothing else knows which
languages there are."""

from __future__ import annotations

import ast
from dataclasses import fields, replace
from pathlib import Path

import pytest

from codespec.completion.ending.tidy import balanced
from codespec.early_errors.walk import Handler, Node, Walk
from codespec.languages import LANGUAGES, Language, by_id, by_path, load
from codespec.languages.python.scopes import PythonReader
from codespec.syntax.names import Definition, Outline, Outliner
from codespec.syntax.scopes.inventions import Inventions
from codespec.syntax.scopes.renaming import still_called
from codespec.syntax.tree import syntax_tree, well_formed
from tests.test_imports import FILES, PACKAGE, imports_of

OWN = PACKAGE / "languages"
NO_LANGUAGES = {
    "child_progress.py": "`json`: the form of what a child tells",
    "cli/complete.py": "`json`: the notation of a JSON Schema",
    "cli/options.py": "`json`: the notation of a JSON Schema",
    "grammar": "notations, dialects of regular expressions, Lark's files, letters: it knows of languages by their rows",
    "http/apis/constraints.py": "`json`: the notation of a JSON Schema, and a field of requests",
    "privacy/assignments.py": "`json`: a suffix, in a layer below the rows",
    "remote/streaming/streamers.py": "`json`: the notation of a JSON Schema, and a field of requests",
    "train/corpus.py": "`python`: how the folder of CPython's library begins",
}
"""Files and folders in which the same letters mean something else."""


def identifiers(source: str) -> list[str]:
    """The language identifiers among the texts of a module, apart from what documents it."""
    nodes = list(ast.walk(ast.parse(source)))
    documents = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    texts = (node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in documents)
    return [text for text in texts if isinstance(text, str) and text in LANGUAGES]


def may_name_languages(path: Path) -> bool:
    return OWN in path.parents or any(PACKAGE / name in (path, *path.parents) for name in NO_LANGUAGES)


def test_no_language_is_named_elsewhere() -> None:
    found = {str(path): identifiers(path.read_text("utf-8")) for path in FILES if not may_name_languages(path)}
    assert {path: named for path, named in found.items() if named} == {}


@pytest.mark.parametrize("name", NO_LANGUAGES)
def test_exceptions_are_needed(name: str) -> None:
    files = [PACKAGE / name] if name.endswith(".py") else (PACKAGE / name).rglob("*.py")
    assert any(identifiers(path.read_text("utf-8")) for path in files)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("if language.id == 'go': pass", ["go"]),
        ("SHARES = {'rust': 1, 'x': 2}", ["rust"]),
        ("def f(language: str = 'python'): '''python'''", ["python"]),
        ("'''go'''\nX = 1\n'''go'''", []),
        ("x = 'going'", []),
    ],
)
def test_a_language_that_is_named_is_found(source: str, found: list[str]) -> None:
    assert identifiers(source) == found


def test_a_folder_of_a_language_is_reached_by_its_row_alone() -> None:
    for folder in {path.parent for path in OWN.glob("*/*.py")}:
        name = f"codespec.languages.{folder.name}"
        others = (path for path in FILES if path.parent != folder)
        assert [path for path in others if any(f"{each}.".startswith(f"{name}.") for each in imports_of(path))] == []


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
def test_what_a_row_names_is_there(language: Language) -> None:
    named = [getattr(language, field.name) for field in fields(language) if field.name != "parser"]
    for name in {each for each in named if isinstance(each, str) and (each.startswith("codespec.") or ":" in each)}:
        assert load(name) is not None


class ToyReader(PythonReader):
    """The names of a toy, which has ``magic`` built in."""

    def known(self, name: bytes) -> bool:
        return name == b"magic"


HANDLERS: dict[str, Handler] = {"lambda": lambda walk, node, *_: walk.report("a lambda", node)}


def check(walk: Walk, root: Node, path: str) -> None:
    walk.visit(root, None)


def outline(root: Node) -> Outline:
    return Outline((), tuple(Definition((each.type,), "toy") for each in root.children))


def refuse(text: str) -> None:
    if "refused" in text:
        raise ValueError


TOY = Language(
    "toy",
    (".toy",),
    brackets="always",
    parser="tree_sitter_python",
    own_parser=f"{__name__}:refuse",
    checker=f"{__name__}:check",
    scopes=f"{__name__}:ToyReader",
    outline=f"{__name__}:outline",
)


def test_a_new_language_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LANGUAGES, TOY.id, TOY)
    assert by_path("a.toy") is TOY
    assert by_id("toy") is TOY
    assert balanced("f(", ")", TOY)
    assert well_formed(TOY, "x")
    assert not well_formed(TOY, "refused")
    assert [each.names for each in Outliner().read("x\n", TOY).definitions] == [("expression_statement",)]
    assert Inventions(TOY, "magic(", ")\n").first("print") is not None
    assert Inventions(TOY, "magic(", ")\n").first("magic") is None
    assert [use.start for use in still_called(TOY, "new = 1\nf(old)\n", [0], "old", "new").same] == [10]
    tree = syntax_tree(TOY, "x = \n")
    assert tree is not None
    errors = tree.with_text(4, "lambda: 1").early_errors_added(tree.early_errors(TOY, 4, "a.toy"))
    assert [each.kind for each in errors] == ["a lambda"]


def test_rows_that_are_equal_have_one_hash() -> None:
    assert hash(TOY) == hash(replace(TOY))
    assert replace(TOY, data=True) != TOY
