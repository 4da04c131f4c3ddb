"""What a file imports from its workspace is shown by its signatures, and nothing else is."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from codespec.completion.prompt import imports
from codespec.completion.prompt.imports import ImportedSignatures
from codespec.languages import by_id
from codespec.syntax.names import Outliner


@pytest.fixture
def work(tmp_path):
    return Path(os.path.realpath(tmp_path))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def shown(work: Path, text: str, name: str = "main.py", language: str = "python", may_show=None) -> dict[str, str]:
    found = ImportedSignatures(may_show or (lambda path, folder: True)).snippets(text, language, work / name, work)
    return {each.path: each.text for each in found}


SHAPES = '''"""Shapes."""
import math
from dataclasses import dataclass

UNIT = 1.0
_hidden = 2


@dataclass(frozen=True)
class Circle(Shape):
    """A round one.

    Long.
    """

    radius: float = 1.0
    _cache: int = 0

    def __init__(self, radius: float) -> None:
        self.radius = radius

    @property
    def area(self) -> float:
        """Of it."""
        return math.pi * self.radius ** 2

    def _private(self): ...


def scaled(
    shape: Shape,
    factor: float = UNIT,
) -> Shape:
    r\'\'\'Ruled by a factor.

    More.\'\'\'
    return shape


async def load(path):
    return 1
'''
CIRCLE = '''@dataclass(frozen=True)
class Circle(Shape):
    """A round one."""
    radius: float = 1.0
    def __init__(self, radius: float) -> None: ...
    @property
    def area(self) -> float: ...
'''
SCALED = '''def scaled(
    shape: Shape,
    factor: float = UNIT,
) -> Shape:
    """Ruled by a factor."""
'''


def test_classes_functions_and_constants_of_python(work):
    write(work / "shapes.py", SHAPES)
    assert shown(work, "from shapes import Circle as C, scaled") == {"shapes.py": CIRCLE + SCALED}
    assert shown(work, "if x:\n    from shapes import (\n        load, UNIT, nothing)\n") == {
        "shapes.py": "async def load(path): ...\nUNIT = 1.0\n"
    }


def test_of_a_module_what_is_used_of_it(work):
    write(work / "shapes.py", SHAPES)
    write(work / "pkg" / "__init__.py", "")
    write(work / "pkg" / "shapes.py", "def other(): pass\ndef more(): pass")
    assert shown(work, "import shapes\nx = shapes.scaled(my.shapes.Circle)") == {"shapes.py": SCALED}
    assert shown(work, "import pkg.shapes as s\ns.other()") == {"pkg/shapes.py": "def other(): ...\n"}
    assert shown(work, "import pkg.shapes\npkg.shapes.more()") == {"pkg/shapes.py": "def more(): ...\n"}
    assert shown(work, "from pkg import shapes\nshapes.other") == {"pkg/shapes.py": "def other(): ...\n"}
    assert shown(work, "from shapes import *\nload(1)") == {"shapes.py": "async def load(path): ...\n"}
    assert shown(work, "import shapes") == {}


@pytest.mark.parametrize(
    ("name", "statement", "file"),
    [
        ("a/b/main.py", "from .near import f", "a/b/near.py"),
        ("a/b/main.py", "from . import near\nnear.f()", "a/b/near.py"),
        ("a/b/main.py", "from ..up import f", "a/up.py"),
        ("a/b/main.py", "from beside import f", "a/b/beside.py"),
        ("a/main.py", "from lib.x import f", "src/lib/x.py"),
        ("a/main.py", "from lib import f", "lib/__init__.py"),
        ("a/main.py", "from stubs import f", "stubs.pyi"),
    ],
)
def test_where_modules_of_python_are(work, name, statement, file):
    write(work / file, "def f(): pass")
    assert shown(work, statement, name) == {file: "def f(): ...\n"}


def test_what_a_package_passes_on_is_found_where_it_is_defined(work):
    write(work / "pkg" / "__init__.py", "from pkg.inner import f as g\nfrom .other import *\n")
    write(work / "pkg" / "inner.py", "def f(a): pass\ndef h(): pass")
    write(work / "pkg" / "other.py", "from pkg import g, k\ndef k(b): pass")
    assert shown(work, "from pkg import g, k, nothing") == {
        "pkg/inner.py": "def f(a): ...\n",
        "pkg/other.py": "def k(b): ...\n",
    }


def test_modules_of_typescript(work):
    write(
        work / "lib" / "shapes.ts",
        """export default class Circle<T> extends Shape {
  private hidden = 1;
  radius: number = 1;
  constructor(radius: number) { super(); }
  get area(): number { return 1; }
  #secret() {}
}
export const scale = async (a: number): Promise<void> => {
};
export function load(path: string): void {}
export interface Point { x: number }
export type Name = string | number;
""",
    )
    write(work / "lib" / "index.ts", 'export { load as read } from "./shapes";\nexport * from "./more.js";\n')
    write(
        work / "lib" / "more.tsx",
        "function View(props: Props) {\n  return 1\n}\nexport default View\nexport { View }\n",
    )
    text = 'import Circle, { scale, type Point, type Name } from "./lib/shapes";\nimport react from "react"\n'
    assert shown(work, text, "main.ts", "typescript") == {
        "lib/shapes.ts": """export default class Circle<T> extends Shape {
  radius: number = 1;
  constructor(radius: number);
  get area(): number;
}
export const scale = async (a: number): Promise<void> =>
export interface Point { x: number }
export type Name = string | number;
"""
    }
    assert shown(work, "import * as lib from '../lib';\nlib.read(lib.View)", "src/main.tsx", "typescriptreact") == {
        "lib/shapes.ts": "export function load(path: string): void\n",
        "lib/more.tsx": "function View(props: Props)\n",
    }
    assert shown(work, "import V from './lib/more'", "main.ts", "typescript") == {
        "lib/more.tsx": "function View(props: Props)\n"
    }


def test_modules_of_javascript(work):
    write(work / "lib.js", "function f(a) { return 1 }\nclass K { m(b) { } }\nmodule.exports = { f, K }\n")
    text = "const { f, K: L } = require('./lib.js'), fs = require('fs')\n"
    assert shown(work, text, "main.js", "javascript") == {"lib.js": "function f(a)\nclass K {\n  m(b);\n}\n"}
    assert shown(work, "const lib = require('./lib')\nlib.f()", "main.cjs", "javascript") == {
        "lib.js": "function f(a)\n"
    }


def test_nothing_from_outside_the_workspace_or_that_may_not_be_shown(work):
    inner = work / "inner"
    write(work / "up.py", "def f(): pass")
    write(inner / "near.py", "def f(): pass")
    with contextlib.suppress(OSError):  # not everybody may, on Windows
        (inner / "link.py").symlink_to(work / "up.py")
    assert shown(inner, "from ..up import f\nfrom link import f", "a/main.py") == {}
    assert list(shown(inner, "from near import f")) == ["near.py"]
    assert shown(inner, "from near import f", may_show=lambda path, folder: path.name != "near.py") == {}


def test_a_module_with_a_secret_shows_nothing(work):
    write(work / "conf.py", "TOKEN = 'ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5" + "'\ndef f(): pass")
    assert shown(work, "from conf import TOKEN, f") == {}
    write(work / "other.py", "def connect(user='app', password='tall dim otter bends'): pass\ndef f(): pass")
    assert shown(work, "from other import connect, f") == {}


VALUES = {
    "a.py": """
API = "zwei neue eulen"
Mode = Literal["read", "write"]
KEY = bytes([18, 52, 86, 120, 154])
PIN = 482913
LONG = '''zwei neue
eulen'''
DEFAULTS = {"user": "app", "zwei neue eulen": 1}
@retry("zwei neue eulen")
def connect(
    user: "User" = None,  # zwei neue eulen
    noted: Annotated[str, "zwei neue eulen"] = "", asked: list[Query("zwei neue eulen")] = (),
    word: Literal["a-b", "c-d"] = "zwei neue eulen", raw=b"zwei neue eulen",
    template=f"zwei {user} neue eulen", joined="zwei " "neue eulen", count=3, mode="rb", *rest,
):  # zwei neue eulen
    return 1
class Client(Base, key="zwei neue eulen"):
    login: str = "zwei neue eulen"
    def open(self, word="zwei neue eulen"): pass
""",
    "a.ts": """
export const api = "zwei neue eulen", key = [18, 52, 86, 120, 154], pin = 482913;
export const open = (word = "zwei neue eulen", raw = `zwei ${api} neue eulen`) => { };
export function connect(word: "left" | "right" = 'zwei neue eulen', /* zwei neue eulen */ count = 3) { }
export class Client extends Base {
  login = "zwei neue eulen";
  open(word: string = "zwei neue eulen"): void { }
}
export type Side = "left" | "right";
export enum Word { First = "zwei neue eulen" }
""",
}
SHOWN = {
    "a.py": """API = "..."
Mode = Literal["read", "write"]
KEY = bytes([...])
PIN = ...
LONG = "..."
DEFAULTS = {"...": "app", "...": 1}
@retry("...")
def connect(
    user: "User" = None,
    noted: Annotated[str, "..."] = "", asked: list[Query("...")] = (),
    word: Literal["a-b", "c-d"] = "...", raw="...",
    template="...", joined="...", count=3, mode="rb", *rest,
): ...
class Client(Base, key="..."):
    login: str = "..."
    def open(self, word="..."): ...
""",
    "a.ts": """export const api = "...", key = [...], pin = ...;
export const open = (word = "...", raw = "...") =>
export function connect(word: "left" | "right" = "...",  count = 3)
export class Client extends Base {
  login = "...";
  open(word: string = "..."): void;
}
export type Side = "left" | "right";
export enum Word { First = "..." }
""",
}


@pytest.mark.parametrize(
    ("file", "text", "name", "language"),
    [
        ("a.py", "from a import *\nAPI, Mode, KEY, PIN, LONG, DEFAULTS, connect, Client", "main.py", "python"),
        ("a.ts", 'import { api, open, connect, Client, Side, Word } from "./a"', "main.ts", "typescript"),
    ],
)
def test_no_value_of_a_module_is_shown(work, file, text, name, language):
    write(work / file, VALUES[file])
    assert shown(work, text, name, language) == {file: SHOWN[file]}


@pytest.mark.parametrize(
    "value", ['"zwei neue eulen', "[" * 100 + '"zwei neue eulen"' + "]" * 100, "'zwei' neue eulen"]
)
def test_what_the_parser_does_not_understand_is_not_shown(work, value):
    write(work / "a.py", f"def near(): pass\nclass A:\n    key = {value}\ndef f(word={value}): pass\nKEY = {value}\n")
    found = shown(work, "from a import near, A, f, KEY")
    assert "eulen" not in "".join(found.values())


def test_work_is_bounded(work, monkeypatch):
    monkeypatch.setattr(imports, "LARGEST", 2_000)
    for number in range(40):
        write(work / f"m{number}.py", f"def f{number}(): pass\n")
    write(work / "large.py", "def f(): pass\n" + "#\n" * 2_000)
    text = "from large import f\n" + "".join(f"from m{number} import f{number}\n" for number in range(40))
    assert list(shown(work, text)) == [f"m{number}.py" for number in range(imports.MOST_MODULES)]
    assert shown(work, text + "#" * 2_000) == {}
    many = "".join(f"def f{number}(): pass\n" for number in range(100))
    write(work / "many.py", many[: imports.LARGEST - 10])
    write(work / "class.py", "class C:\n" + "    def method(self, argument): pass\n" * 50)
    found = shown(work, "from many import *\n" + " ".join(f"f{number}" for number in range(100)) + "\nimport many")
    assert 0 < len(found["many.py"]) <= imports.MOST_CHARACTERS
    assert (
        sum(len(text) for text in shown(work, "from m1 import f1\nfrom many import *\nf1, f2").values())
        < imports.BUDGET
    )


def test_a_file_is_read_again_when_it_has_changed(work):
    file = write(work / "a.py", "def f(): pass")
    reader = ImportedSignatures(lambda path, folder: True)
    text = "from a import f, other"
    assert [each.text for each in reader.snippets(text, "python", work / "main.py", work)] == ["def f(): ...\n"]
    file.write_text("def other(): pass")
    assert [each.text for each in reader.snippets(text, "python", work / "main.py", work)] == ["def other(): ...\n"]
    file.unlink()
    assert reader.snippets(text, "python", work / "main.py", work) == ()


@pytest.mark.parametrize("language", ["python", "typescript", "javascript", "typescriptreact"])
@pytest.mark.parametrize(
    "text",
    [
        "import", "from . import", "import a.", "from x import (a,", "class", "def f(", "class A:\n", "export",
        "export default", "import {a from './x'", "const {a", "@", "export * from", "\0\ud800",
        "import '../../../../../../../../etc/passwd'",
        "from ........... import a", "import * as from './'", "const x = require('\0')",
    ],
)  # fmt: skip
def test_unfinished_files_do_no_harm(work, language, text):
    Outliner().read(text, by_id(language))
    name = "main.py" if language == "python" else "main.ts"
    assert shown(work, text, name, language) == {}


def test_other_languages_import_nothing(work):
    write(work / "a.py", "def f(): pass")
    assert shown(work, "from a import f", "main.rb", "ruby") == {}
    assert shown(work, '#include "a.h"', "main.c", "c") == {}
