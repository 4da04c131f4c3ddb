"""``codespec grammar convert``: the language stays."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codespec.cli.main import main
from codespec.errors import CodespecError
from codespec.grammar import Grammar, GrammarError
from codespec.grammar.check import accepts_text
from codespec.grammar.convert import convert


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def same(first: Grammar, second: Grammar, texts: list[str]) -> None:
    taken = [accepts_text(first, text).accepted for text in texts]
    assert taken == [accepts_text(second, text).accepted for text in texts]
    assert any(taken)
    assert not all(taken)


def test_gbnf_to_lark(tmp_path: Path) -> None:
    path = write(tmp_path, "g.gbnf", 'root ::= "a" "b" "c" | [ab]+ "d" | item{2}\nitem ::= "é"\n')
    text, warnings = convert(path, "lark")
    assert warnings == []
    same(Grammar.load(path), Grammar.from_lark(text), ["abc", "abd", "éé", "é", "ab", ""])


def test_lark_to_gbnf(tmp_path: Path) -> None:
    source = 'start: NAME ("," NAME)*\nNAME: /[a-z_][\\w]*/i | "\\"" /[^"\\n]/ "\\""\n%ignore / +/\n'
    path = write(tmp_path, "g.lark", source)
    text, warnings = convert(path, "gbnf")
    assert len(warnings) == 3
    same(Grammar.load(path), Grammar.from_gbnf(text, strict=True), ["a,b", "A1 , _b", '"x"', "1", "a b", '"\n"', ""])


def test_json_schema_to_lark(tmp_path: Path) -> None:
    path = write(tmp_path, "s.json", '{"type": "array", "items": {"not": {"type": "null"}}, "uniqueItems": true}')
    with pytest.raises(GrammarError, match="uniqueItems"):
        convert(path, "lark")
    text, warnings = convert(path, "lark", lenient=True)
    assert len(warnings) == 1
    same(Grammar.load(path, lenient=True), Grammar.from_lark(text), ["[1]", "[]", "[null]", "{}"])


def test_lark_expanded(tmp_path: Path) -> None:
    path = write(tmp_path, "g.lark", 'start: t{"a"}\nt{x}: x x\n')
    text, _ = convert(path, "lark")
    assert "{" not in text
    same(Grammar.load(path), Grammar.from_lark(text), ["aa", "a"])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("start: A\nA: /a/ & ~/b/", "2:8: GBNF has nothing like '&'"),
        ('start: %json {"type": "null"}', "1:8: GBNF has nothing like '%json"),
        ("start: x\nx[lazy]: /a/", "2:2: GBNF has nothing like '['"),
        ("start: A::0\nA: /a/", "GBNF has nothing like '::0'"),
        ("%llguidance {}\nstart: /[[:alpha:]--[a]]\\p{L}/", "2:8: this regular expression cannot be converted"),
    ],
)
@pytest.mark.filterwarnings("ignore:Possible:FutureWarning")
def test_what_gbnf_does_not_have(tmp_path: Path, source: str, message: str) -> None:
    with pytest.raises(GrammarError) as caught:
        convert(write(tmp_path, "g.lark", source), "gbnf")
    assert message in str(caught.value)


def test_no_way(tmp_path: Path) -> None:
    with pytest.raises(CodespecError, match=r"no conversion from \.json to gbnf"):
        convert(write(tmp_path, "s.json", "{}"), "gbnf")


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "g.lark", "start: A\nA: /ab?/\n")
    assert main(["grammar", "convert", str(path), "--to", "gbnf"]) == 0
    done = capsys.readouterr()
    assert done.out.startswith("root ::= A\n")
    assert "the language may be larger" in done.err
    schema = write(tmp_path, "s.json", '{"contains": {"const": 1}}')
    assert main(["grammar", "check", str(schema)]) == 1
    assert "/contains: contains cannot be enforced" in capsys.readouterr().out
    assert main(["grammar", "accepts", str(schema), str(schema), "--lenient"]) == 0
    assert "ignored" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("regex", "texts"),
    [
        ("/k/i", "kK\u212aj"),
        ("/[i-t]/i", "KkSs\u017f\u212aau"),
        ("/[^s]/i", "sS\u017fa"),
        ("/\\d/", "07\u0663a\u00b2"),
        ("/\\D/", "07\u0663a\u00b2"),
        ("/\\s/", " \t\n\u00a0\u2003a\x1c"),
        ("/[^\\S]/", " \t\u00a0a"),
        ("/(?i)ab|a/", "aAb"),
        ("/a b/x", "ab"),
        ("/./s", "a\n"),
    ],
)
def test_a_converted_expression_takes_the_same(tmp_path, regex, texts):
    path = tmp_path / "g.lark"
    path.write_text(f"start: {regex}\n", "utf-8")
    converted = Grammar.from_gbnf(convert(path, "gbnf")[0])
    original = Grammar.from_lark(path.read_text("utf-8"))
    for text in (*texts, "ab", "AB", "a b"):
        assert accepts_text(converted, text, "t").accepted == accepts_text(original, text, "t").accepted, text


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ('"straße"i', "the cases of 'ß' cannot be converted"),
        ("/[à-ü]/i", "a range beyond ASCII cannot be converted with the flag i"),
        ("/(?i:a)b/", "flags inside the expression cannot be converted"),
        ("/(?s:.)b/", "flags inside the expression cannot be converted"),
    ],
)
def test_what_has_no_equal_is_an_error(tmp_path, source, cause):
    path = tmp_path / "g.lark"
    path.write_text(f"start: {source}\n", "utf-8")
    with pytest.raises(GrammarError, match=re.escape(cause)):
        convert(path, "gbnf")


def test_word_classes_are_told(tmp_path):
    path = tmp_path / "g.lark"
    path.write_text("start: /\\w+/\n", "utf-8")
    assert any("\\w became" in warning for warning in convert(path, "gbnf")[1])
