"""Short texts that the compilers of the languages take or refuse.

Each file has one text a line, with what is said of it: ``+`` everybody takes it, ``-`` the compiler refuses it and
codespec (or its parser) does, ``~`` the compiler refuses it, and codespec does not know.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codespec.early_errors import early_errors
from codespec.languages import by_id
from codespec.syntax.parsing import new_parser
from tests.early_errors import compilers

LANGUAGES = ("javascript", "typescript", "python", "c")


def cases(language: str) -> Iterator[tuple[str, str]]:
    for line in (Path(__file__).parent / f"{language}.txt").read_text("utf-8").splitlines():
        text = line[2:].replace("\\\\", "\0").replace("\\n", "\n").replace("\\t", "\t").replace("\0", "\\")
        yield line[0], text + "\n"


def kinds(language: str, text: str) -> list[str] | None:
    """The errors of a text; None where the parser finds some, too."""
    parser = new_parser(by_id(language).parser)
    if parser is None:
        pytest.skip(f"no parser for {language}")
    data = text.encode()
    root = parser.parse(data).root_node
    path = "text.mjs" if language == "javascript" and compilers.MODULE.search(text) else ""
    return None if root.has_error else [error.kind for error in early_errors(by_id(language), root, data, path)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_verdicts(language):
    wrong = []
    for mark, text in cases(language):
        found = kinds(language, text)
        if (mark == "-") != (found is None or bool(found)):
            wrong.append((mark, text, found))
    assert wrong == []


@pytest.fixture
def compiler(request, tmp_path):
    language = request.param
    if language == "python":
        if sys.version_info[:2] != (3, 11):
            pytest.skip("the verdicts are those of Python 3.11")
        yield compilers.python
        return
    program = {"javascript": "node", "typescript": "node", "c": "gcc"}[language]
    if shutil.which(program) is None:
        pytest.skip(f"no {program}")
    if language == "c":
        yield compilers.c(tmp_path)
        return
    folder = compilers.typescript_folder() if language == "typescript" else None
    if language == "typescript" and folder is None:
        pytest.skip("npm has no typescript")
    node = compilers.Node(f"{language}_errors.js", {"NODE_PATH": str(folder)} if folder else None)
    yield node.javascript if language == "javascript" else node.ask
    node.close()


@pytest.mark.parametrize(
    ("compiler", "language"),
    [pytest.param(each, each, marks=[pytest.mark.tools] * (each == "typescript")) for each in LANGUAGES],
    indirect=["compiler"],
)
def test_the_compiler_says_the_same(compiler, language):
    wrong = []
    for mark, text in cases(language):
        found = compiler(text)
        if (mark == "+") != (found is None):
            wrong.append((mark, text, found))
    assert wrong == []
