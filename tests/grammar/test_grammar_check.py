"""``codespec grammar check`` and ``accepts``, at the level of functions; and the grammars that are shipped."""

from __future__ import annotations

import ast
import textwrap
import time
from pathlib import Path

import pytest

from codespec.grammar import Grammar, shipped
from codespec.grammar.check import FileMatch, accepts, accepts_text, check
from codespec.grammar.errors import Diagnostic
from codespec.protocols import CodespecError

PYTHON = Grammar.load("python")


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("name", shipped())
def test_shipped_grammars_are_clean(name: str) -> None:
    assert check(name) == []


def test_grammars_of_json_and_python_are_shipped() -> None:
    assert {"json", "python"} <= set(shipped())


def test_check_reports(tmp_path: Path) -> None:
    text = 'root ::= a\na ::= "x"\na ::= "y" | b\nb ::= [z-a]\nunused ::= "u"\n'
    path = write(tmp_path, "g.gbnf", text)
    assert check(path) == [
        Diagnostic(str(path), 2, 1, "warning", "rule 'a' is defined again below; the last definition counts"),
        Diagnostic(str(path), 4, 1, "warning", "rule 'b' matches no text"),
        Diagnostic(str(path), 4, 7, "warning", "the range 'z' to 'a' holds no character; swap its ends"),
        Diagnostic(str(path), 5, 1, "warning", "rule 'unused' is never used"),
    ]
    path = write(tmp_path, "bad.gbnf", 'root ::= "a" tail\n')
    (found,) = check(path)
    assert str(found) == f"{path}:1:14: error: rule 'tail' is not defined; add: tail ::= ..."
    assert check(write(tmp_path, "tokens.gbnf", 'root ::= <think> "a"')) == []
    assert check(write(tmp_path, "bom.gbnf", '\ufeffroot ::= "a"\r\n')) == []
    assert check(write(tmp_path, "schema.json", '{"type": "object"}')) == []
    assert [d.severity for d in check(write(tmp_path, "schema.json", '{"type": 1}'))] == ["error"]
    assert [d.line for d in check(write(tmp_path, "g.lark", 'start: "a"\nfoo "b"'))] == [2]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("jsn", "jsn: no such grammar; did you mean 'json'?, or give a file"),
        ("zzz", f"zzz: no such grammar; shipped: {', '.join(shipped())}, or give a file"),
        ("FOLDER/none.gbnf", f"FOLDER/none.gbnf: no such grammar; shipped: {', '.join(shipped())}, or give a file"),
        ("FOLDER/g.txt", "FOLDER/g.txt: unknown kind of grammar; name it .gbnf, .lark, .json (a JSON Schema)"),
        ("FOLDER/latin.gbnf", "FOLDER/latin.gbnf:2:3: not UTF-8; save the file as UTF-8"),
        ("FOLDER", "FOLDER: no such grammar"),
    ],
)
def test_load_errors(tmp_path: Path, name: str, message: str) -> None:
    write(tmp_path, "g.txt", 'root ::= "a"')
    write(tmp_path, "latin.gbnf", b'root ::= "a"\n# \xe9')
    with pytest.raises(CodespecError) as caught:
        Grammar.load(name.replace("FOLDER", str(tmp_path)))
    assert str(caught.value).startswith(message.replace("FOLDER", str(tmp_path)))


@pytest.mark.parametrize(
    ("source", "text", "line", "column", "expected"),
    [
        ('"ab" | "ac"', "ad", 1, 2, "'b' or 'c'"),
        ('"ab"', "", 1, 1, "'ab'"),
        ('"ab"', "abc", 1, 3, "the end of the text"),
        ('"a"+', "aab", 1, 3, "'a' or the end of the text"),
        ('("é" | "\n")* "x"', "é\néé", 2, 3, "'x' or '\\n' or a character beyond ASCII"),
        ('"é" | "è"', "ê", 1, 1, "a character beyond ASCII"),
        ("[a-z0-9]", "A", 1, 1, "'0'…'9' or 'a'…'z'"),
        ("[^é]", "é", 1, 1, "almost any character"),
        ("[acegikmoqsuwy]", "b", 1, 1, "'a' or 'c' or 'e' or 'g' or 'i' or 'k' or 'm' or 'o' or …"),
    ],
)
def test_where_a_text_is_refused(source: str, text: str, line: int, column: int, expected: str) -> None:
    grammar = Grammar.from_gbnf(f"root ::= {source}")
    assert accepts_text(grammar, text, "t") == FileMatch("t", False, line, column, expected)


def test_accepts_files(tmp_path: Path) -> None:
    json = Grammar.load("json")
    good = write(tmp_path, "good.json", '{"a": [1, 2]}\n')
    assert accepts(json, good) == FileMatch(str(good), True)
    assert accepts(json, str(write(tmp_path, "bad.json", '{"a":\n  tru}'))).line == 2
    for name, content, message in [
        ("latin.json", b'"\xe9"', "not UTF-8"),
        ("missing.json", None, "no such file"),
    ]:
        if content is not None:
            write(tmp_path, name, content)
        with pytest.raises(CodespecError, match=message):
            accepts(json, tmp_path / name)
    with pytest.raises(CodespecError, match="cannot be read"):
        accepts(json, tmp_path)


def test_accepts_is_fast_enough() -> None:
    text = "[" + ",\n".join(f'{{"name": "é {i}", "n": {i}, "x": [1.5, null]}}' for i in range(2000)) + "]"
    begin = time.process_time()
    assert accepts_text(Grammar.load("json"), text).accepted
    refused = accepts_text(Grammar.load("json"), text[:-1] + "}")
    assert (refused.line, refused.column) == (2000, len(text.splitlines()[-1]))
    assert time.process_time() - begin < 15


LINES = [
    "x = 3", "x: int = 3", "a = b = c, *d = 1, 2", "x += 1; y = 2", "x = yield", "x = (yield)",
    "x[1:2, ...] = {'a': 1, **b}", "import os.path as p, sys", "from . import (a as b,\n  c,)",
    "from ..x.y import *", "global a, b", "print('a', *b, end='', **c)", "f(x)(y).z[0] @ w", "lambda x, *y, z=1: x",
    "x = a if b else c", "x = not y is not None", "x = [i for i in range(3) if i]", "x = {k: v\n for k, v in z}",
    "f(x for x in y)", "while x := f(): pass", "(x := 1)", "if not x and y is not None: return",
    "elif x in y or x not in z:", "else:", "for i, (a, b) in enumerate(xs):",
    "async def f(a, /, *b, c: int = 3, **d) -> None: await g()", "@dec(3)\n@other\ndef f(): pass",
    "class A(B, metaclass=C):", "with open(f) as g, h as (i, j):", "try:", "except (A, B) as e:", "finally:",
    "raise X from e", "assert x, 'm'", "del x, y[0]", "x = 1e-3 + 0x1F - .5j * 1_000 // 0b1 ** 0o7",
    's = rb\'\\d\' + b\'a\\n\' + f\'{x}\' \'b\' "\\u00e9"', 'x = """a\n"b" c"""', "x = ''''a'\n'''",
    "returned = classy.is_ + imported", "x  # comment", "# comment", "", "    return", "pass", "_ = ~-x",
    "x = {1, 2}", "x = ()", "x = a,", "f(\n    a,\n    b=1,  # why\n)", "print(x, file=y)",
]  # fmt: skip
MISTAKES = [
    "x = = 3", "def (:", "def f(:", "(1, 2", "x = ]", "class = 3", "return = 1", "None = 1", "if x", "x = 3 4",
    "f(a=)", "1 +", "import 3", "x..y", '"abc', "for x y:", "f(x) = 3", "x + 1 = 2", "x = not", "a b", "else if x:",
    "x = (1,,2)", "0x", "1.real", "f(x=1, 2)", "lambda: return", "x = '\\x4'", "x = b'é'", "del", "raise from x",
    "from import x", "@", "x = {1: }", "x = [1 2]",
]  # fmt: skip


def programs(line: str) -> list[str]:
    """What Python's parser takes of the line in some surroundings."""
    line = textwrap.dedent(line)
    body = line + (" pass" if line.endswith(":") else "")
    found = []
    for around in (
        "{}",
        "async def f():\n {}",
        "def f():\n {}",
        "if x: pass\n{}",
        "try: pass\n{}",
        "while 1:\n {}",
        "{}\nfinally: pass",
    ):
        try:
            ast.parse(around.format(body))
        except SyntaxError:
            continue
        found.append(around.format(body))
    return found


@pytest.mark.parametrize("line", LINES)
def test_python_lines(line: str) -> None:
    assert programs(line)
    grammar = Grammar.load("python", levels=("", " ", "  ", "    "))
    for text in programs(line):
        assert accepts_text(grammar, text).accepted
        assert accepts_text(grammar, f"x = 1\n{text}\n").accepted


@pytest.mark.parametrize("line", MISTAKES)
def test_python_mistakes(line: str) -> None:
    assert not programs(line)
    assert not accepts_text(PYTHON, line).accepted
    assert not accepts_text(PYTHON, line + "\n").accepted


@pytest.mark.parametrize("module", ["protocols.py", "languages/table.py", "grammar/state.py"])
def test_python_accepts_our_own_files(module: str) -> None:
    assert accepts(PYTHON, Path(__file__).parents[2] / "codespec" / module).accepted
