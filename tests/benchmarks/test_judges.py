"""The judges of ``bench gate``: what is well formed, what is not, and what says nothing of it."""

from __future__ import annotations

import gzip
import json
import random
import re
from importlib.resources import files
from pathlib import Path

import pytest

from benchmarks.quality.bare_target import is_there
from benchmarks.quality.gate import KINDS, Outcome, figures, position_in, positions, table
from benchmarks.quality.judges import JUDGED, judge_of
from benchmarks.quality.roles import changed, roles_of
from codespec.languages import by_id
from codespec.protocols import CodespecError

# What is good though names, types and headers are nowhere to be found; and several things that are not.
FILES = {
    "python": ("x: Missing = call()\n", ["return 1\n", "x = (\n", "def f(a, a): pass\n", "print x\n"]),
    "json": ('{"a": [1]}', ['{"a": }', "{'a': 1}"]),
    "javascript": (
        "const a = require('a');\nif (a) return;\n",
        ["const a;\n", "let a = 1;\nlet a = 2;\n", "function f() { await a; }\n", "class A { foo bar }\n"],
    ),
    "typescript": (
        "import { a } from './a';\nexport const b: Missing = a as any;\n",
        ["const a: number;\n", "let a = 1;\nlet a = 2;\n", "interface A { a: 1; a: 2 }\n", "let a: = 1;\n"],
    ),
    "go": ("package a\n\nfunc f() { missing() }\n", ["package a\n\na := 1\n", "package a\n\nfunc f() { a( }\n"]),
    "rust": ("mod other;\nfn f() -> Missing { call!(1) }\n", ["fn f() { let = 1; }\n", "fn f() { a b }\n"]),
    "c": (
        "#include <nowhere.h>\nmissing_t f(other *a) { return g(a, (cast)b); }\n",
        [
            "int f(void) { return (1; }\n",
            "int f(void) { int a }\n",
            "/* open\n",
            "int f(void) { case 1: ; }\n",
            '#include <nowhere.h>\n#include "../nowhere.h"\nint f( { ) = ;\n',
            "missing_t a b c;\n",
            "int f(void) {\n  ) missing;\n}\n",
            "int f(void) {\n  int a = (missing;\n}\n",
            "int f(void) {\n  missing = ;\n}\n",
        ],
    ),
    "cpp": ("int f() { return missing<1>(); }\n", ["int f() { return (1; }\n", "class A { int a }\n"]),
    "java": ("class A { Missing f() { return g; } }\n", ["class A { int f() { return } }\n", "class A {\n"]),
    "shellscript": ("if a; then b; fi\n", ["if a; then b\n", "echo 'a\n"]),
    "toml": ("a = 1\n", ["a =\n", "a = 1\na = 2\n"]),
    "yaml": ("a: [1]\n", ["a: [1\n", "a: 1\n b: 2\n"]),
    "sql": ("SELECT a FROM b;\n", ["SELECT FROM WHERE (;\n"]),
}


@pytest.mark.parametrize(
    "language", [pytest.param(each, marks=[pytest.mark.tools] * (each == "typescript")) for each in sorted(FILES)]
)
def test_well_formed_files_are_told_from_others(language: str) -> None:
    try:
        judge = judge_of(by_id(language))
    except CodespecError as error:
        pytest.skip(str(error))
    good, bad = FILES[language]
    assert judge(good, Path("good")) == []
    for number, text in enumerate(bad):
        assert judge(text, Path(f"bad{number}")), text
    assert judge(good, Path("good")) == []


def test_a_file_of_the_same_name_may_be_a_module_or_a_script() -> None:
    try:
        judge = judge_of(by_id("javascript"))
    except CodespecError as error:
        pytest.skip(str(error))
    assert judge("with (a) b();\n", Path("a/index.js")) == []
    assert judge("import a from 'b';\n", Path("c/index.js")) == []
    assert judge("with (a) b();\n", Path("c/index.js"))


def test_no_file_is_written_for_a_header_outside_the_folder_of_headers(tmp_path: Path) -> None:
    try:
        judge = judge_of(by_id("c"))
    except CodespecError as error:
        pytest.skip(str(error))
    for name in (tmp_path / "a.h", Path("../../../../../../../..") / tmp_path.relative_to("/") / "a.h"):
        assert judge(f'#include "{name}"\n', Path("a.c"))
    assert not list(tmp_path.iterdir())


def test_every_judge_has_files() -> None:
    assert set(FILES) | {"javascriptreact", "typescriptreact"} == JUDGED
    with pytest.raises(CodespecError, match="nothing judges markdown"):
        judge_of(by_id("markdown"))


@pytest.mark.parametrize(
    ("language", "before", "text", "after", "expected"),
    [
        ("python", "", "# a", "x = 1\n", True),
        ("python", "", "# a\n", "x = 1\n", False),
        ("python", "x = ", "'a", "b + 1\n", True),
        ("python", "x = '", "a", "b'\n", False),
        ("python", "x = '", "a' + '", "b'\n", False),
        ("python", "x = '", "a'", "c'\n", True),
        ("python", "# a ", "b", " c\n", False),
        ("python", "# a ", "\nb", " c\n", True),
        ("python", "", "return", "x = 1\n", True),
        ("python", "r", "eturn ", "x = 1\n", False),
        ("python", "f(", '"""a', "\n)\ny = 1\n", True),
        ("javascript", "f(", "/* a", ");\ng(/* b */);\n", True),
        ("javascript", "f(", "/* a */ 1", ");\n", False),
        ("javascript", "a = ", "`${b", "};\nc = 2;\n", True),
        ("c", "int a;\n", "/* b\n", "int c; /* d */\n", True),
        ("c", "int a;\n", "// b \\\n", "int c;\n", True),
        ("c", "int a;\n", "int b;\n", "int c;\n", False),
        ("go", "a := ", "`b", "\nc := `1`\n", True),
        ("rust", "let a = ", 'r#"b', "\nlet c = 1;\n", True),
        ("shellscript", "", "cat <<EOF\n", "echo a\nEOF\n", True),
    ],
)
def test_roles(language: str, before: str, text: str, after: str, expected: bool) -> None:
    assert changed(roles_of(by_id(language)), before, text, after) is expected


def test_positions_of_every_kind() -> None:
    text = "def f(a):\n    if a:\n        return 1\n\n    return 2\n"
    seen = {kind: [position_in(Path("a.py"), text, kind, random.Random(seed)) for seed in range(40)] for kind in KINDS}
    for kind, found in seen.items():
        for position in found:
            assert position is not None
            line = position.prefix.rpartition("\n")[2]
            rest = position.suffix.partition("\n")[0]
            if kind != "new line":
                assert position.prefix + position.suffix == text
            assert {
                "start": line == "" and rest.strip() != "",
                "indentation": line.isspace() and rest[:1].strip() != "",
                "middle": line.strip() != "" and rest != "",
                "end": line.strip() != "" and rest == "",
                "new line": line.strip() == "" and rest == "",
            }[kind], (kind, position)
    assert any(position.prefix.endswith("if a:\n        ") for position in seen["new line"] if position)


def test_positions_are_in_files_that_are_well_formed(tmp_path: Path) -> None:
    good, bad = tmp_path / "a.py", tmp_path / "b.py"
    good.write_text("def f(a):\n    return a\n")
    bad.write_text("def f(:\n    return a\n")
    judge = judge_of(by_id("python"))
    found = list(positions([good, bad], judge, 4, random.Random(1)))
    assert {each.path for each in found} == {good}
    assert sorted(each.kind for each in found) == sorted(4 * KINDS)
    with pytest.raises(CodespecError, match="well formed"):
        list(positions([bad], judge, 1, random.Random(1)))


@pytest.mark.parametrize(
    ("prefix", "line", "suffix", "expected"),
    [
        ("", "ber);", "ber);\n", True),
        ("    ret", "urn b", "urn a\n", True),
        ("    ret", "urns b", "urn a\n", False),
        ("    ", "return b", "return a\n", False),
        ("f(", "ab", "a)\n", False),
        ("", "return a", "\n\n    return a + b\n", True),
        ("", "return a + b + c", "\n    return a + b\n", True),
        ("", "return b", "\n    return a\n", False),
        ("", "x", "", False),
    ],
)
def test_what_stands_there_already_is_nothing_new(prefix: str, line: str, suffix: str, expected: bool) -> None:
    assert is_there(line, suffix, prefix) is expected


def test_no_package_that_the_gate_is_measured_on_was_trained_on() -> None:
    script = Path(__file__).with_name("gate_corpus.sh").read_text()
    named = {name: words.split() for name, words in re.findall(r"^(\w+)=\((.*)\)$", script, re.MULTILINE)}
    folders = {"python": "", "javascript": "npm/", "typescript": "npm/", "json": "npm/"}
    measured = {
        folders.get(language, "debian/") + re.sub(r"(==|(?<!^)@).*", "", package).lower()
        for language, packages in named.items()
        for package in packages
    }
    manifest = Path(str(files("codespec") / "data" / "manifest.json.gz"))
    trained = {each["package"].lower() for each in json.loads(gzip.decompress(manifest.read_bytes()))}
    assert {"npm/hexo", "npm/@grpc/grpc-js", "debian/nano", "beets"} <= measured
    assert {"npm/mocha", "debian/tmux"} <= trained
    assert measured & trained == set()


def test_figures_count_what_was_judged() -> None:
    plain = Outcome("a.py", "end", 1, "", "x", "", "x", False, True, (), False, "stop", "passed", "python", 2.0, 1.0)
    outcomes = [
        plain,
        Outcome(**{**vars(plain), "errors": ["no"]}),
        Outcome(**{**vars(plain), "changed": True, "kind": "start"}),
        Outcome(**{**vars(plain), "text": " "}),
        Outcome(**{**vars(plain), "text": "", "new": False}),
        Outcome(**{**vars(plain), "text": "", "raw": "", "new": False}),
    ]
    found = figures(outcomes)
    assert (found["positions"], found["shown"], found["worse"], found["changed"]) == (6, 3, 1, 1)
    assert (found["target_has_text"], found["target_has_new_text"]) == (5, 4)
    assert (found["shown_where_target_has_new_text"], found["worse_share"]) == (0.75, 0.3333)
    assert "| python | all | 6 | 0 | 3 | 75.0 % | 1 | 33.33 % | 1 |" in table({"python": outcomes})
