"""Lark grammars: against the ``lark`` package, llguidance's extensions, imports, templates, and every diagnosis."""

from __future__ import annotations

import random
import re
from pathlib import Path

import lark
import pytest

from codespec.grammar import Grammar, GrammarError
from codespec.grammar.check import accepts_text

JSON = """
?start: value
?value: dict | list | string | SIGNED_NUMBER -> number | "true" -> true | "null"
list: "[" [value ("," value)*] "]"
dict: "{" [pair ("," pair)*] "}"
pair: string ":" value
string: ESCAPED_STRING
%import common.ESCAPED_STRING
%import common.SIGNED_NUMBER
%import common.WS
%ignore WS
"""

# Grammars that the lark package reads too, and texts to begin with.
STANDARD = [
    ('start: "a" "b"\n%ignore " "', ["ab", "a b", "a  b", ""]),
    (
        'start: expr\n?expr: term (("+"|"-") term)*\n?term: NUMBER | "(" expr ")"\n'
        "%import common (NUMBER, WS)\n%ignore WS",
        ["1+2", "1 + 2", "(1)", "(1+2)-3", "1+", "1.5e3", "()", "1 2"],
    ),
    ('start: "x"~2..3 ["y"]', ["xx", "xxx", "x", "xxy", "xxxx", "y"]),
    ('start: list{NAME, ","}\nlist{x, s}: x (s x)*\nNAME: /[a-z]+/', ["a", "a,b", "a,", "ab,c", ","]),
    ('start: twice{twice{"a"}} twice{"b"}\ntwice{x}: x x', ["aaaabb", "aabb", "aaaab"]),
    ('start: KW | NAME\nKW.2: "if"\nNAME.1: /[a-z]+/', ["if", "iff", "x"]),
    ('start: "IF"i NAME\nNAME: /[a-z]+/\n%ignore " "', ["if a", "IF a", "If", "iF b"]),
    ("start: ESCAPED_STRING\n%import common.ESCAPED_STRING", ['"a"', '""', '"a\\"b"', '"a\\\\"', '"a\\"', '"a"b"']),
    ("start: C_COMMENT+\n%import common.C_COMMENT", ["/**/", "/* a */", "/* a **/", "/* a */ */", "/*/", "/***/"]),
    ('start: "a".."c" "0".."9"', ["a0", "c9", "d0", "a"]),
    ("start: SIGNED_FLOAT\n%import common.SIGNED_FLOAT", ["1.0", "-1.", "+.5", "1", "1e5", "e"]),
    ('start: CNAME ("." CNAME)*\n%import common.CNAME', ["a.b", "_a", "1a", "a.", "a.b.c"]),
    ('start: NEWLINE "x"\n%import common.NEWLINE', ["\nx", "\r\n\nx", "x"]),
    ('start: (a | "b")+\na: "a" -> foo\n  | "aa" -> bar', ["ab", "aaab", "c", ""]),
    ('!start: _x ?y // comment\n_x: "a"\n?y: "b" # comment', ["ab", "a"]),
    ('start: A "\\x41\\n\\u00e9\\""\nA: /\\d\\// | "[" /x y/x "]"', ['1/A\né"', '[xy]A\né"', '1A\né"']),
    ('start: X\nX: /[]a-]/ /\\$/ /\\{/\n', ["]$", "a$", "-${", "]${", "a${"]),
    ("start: A\nA: B~2\nB: DIGIT\n%import common.DIGIT -> DIGIT", ["12", "1", "123"]),
    ('%import common.INT -> N\n%extend N: "x"\nstart: N', ["1", "x", "12", "1x"]),
    ('%import common.INT -> N\n%override N: "x"\nstart: N', ["1", "x"]),
    (JSON, ['{"a": [1, 2.5, "x", null]}', "[]", "{}", "[1,]", '{"a" 1}', "true", "tru"]),
]  # fmt: skip


def near(texts: list[str], seed: int = 1) -> list[str]:
    """The texts and some a character away; not with blanks at their ends, where llguidance ignores nothing."""
    rng = random.Random(seed)
    letters = sorted(set("".join(texts))) or ["a"]
    found = list(texts)
    for text in texts:
        for _ in range(8):
            changed = list(text)
            if changed and rng.random() < 0.6:
                del changed[rng.randrange(len(changed))]
            if rng.random() < 0.7:
                changed.insert(rng.randint(0, len(changed)), rng.choice(letters))
            found.append("".join(changed))
    return [text for text in dict.fromkeys(found) if text == text.strip(" \n") or "\n" not in letters]


def taken_by_lark(parser: lark.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except lark.exceptions.LarkError:
        return False
    return True


@pytest.mark.parametrize(("text", "texts"), STANDARD, ids=lambda value: repr(value)[:40])
def test_the_lark_package_agrees(text: str, texts: list[str]) -> None:
    parser = lark.Lark(text.replace("?y //", "y //"), parser="earley", lexer="dynamic")
    grammar = Grammar.from_lark(text.replace("?y //", "y //"), "g.lark")
    ignores = "%ignore" in text
    for sample in near(texts):
        if not ignores or sample == sample.strip():
            assert accepts_text(grammar, sample).accepted == taken_by_lark(parser, sample), repr(sample)


EXTENSIONS = [
    ('start: %json {"type": "integer"}', ["12"], ["a", "1.5"]),
    ('start: a "!" \na: %json {\n  "oneOf": [{"const": 1}, {"const": 2}]\n}', ["1!", "2!"], ["3!"]),
    ('start: A\nA: %regex {"substring_chars": "abc"}', ["ab", "bc", ""], ["ac"]),
    ("start: A\nA: /[a-z]+/ & ~/if|else/", ["a", "iff"], ["if", "else"]),
    ("start: head tail\nhead[lazy]: /.*;/\ntail: /.*/", ["a;b", ";"], ["ab"]),
    ('start: x\nx[capture="n"]: "a"', ["a"], ["b"]),
    ('start: "a"{2,3}', ["aa", "aaa"], ["a", "aaaa"]),
    ('start: "a"{2} "b"{,1}', ["aa", "aab"], ["a"]),
    ('%llguidance {"no_forcing": true}\nstart: /\\p{Greek}[[:alpha:]&&[^a]]/', ["αb"], ["αa", "ab"]),
    ('start: my-rule\nmy-rule: "x"', ["x"], []),
    ('start: a::0\na::_: "x" a::incr(_) %if lt(_, 2)\n    | ""', ["", "x", "xx"], ["xxx"]),
    ('start: "a" %lark {\n  start: "b" | "c"\n} "d"', ["abd", "acd"], ["ad"]),
]


@pytest.mark.parametrize(("text", "valid", "invalid"), EXTENSIONS, ids=lambda value: repr(value)[:40])
def test_llguidances_extensions(text: str, valid: list[str], invalid: list[str]) -> None:
    grammar = Grammar.from_lark(text)
    for sample in (*valid, *invalid):
        assert accepts_text(grammar, sample).accepted == (sample in valid), sample


def test_special_tokens_need_a_vocabulary() -> None:
    with pytest.raises(GrammarError, match="special"):
        Grammar.from_lark('start: <none-such> "a"').state(__import__("codespec.grammar").grammar.byte_tokenizer())


# (grammar, line, column, part of the message)
REFUSED = [
    ("start: /a(?=b)/", 1, 10, "look-ahead (?=…) is not supported"),
    ("start: A\nA: /(?<!b)a/", 2, 5, "negative look-behind"),
    ('start: /".*?"/', 1, 11, "lazy *? is not supported in a terminal"),
    ("start: /(a)\\/\\1/", 1, 14, "back-reference \\1"),
    ("start: /a\\bc/", 1, 10, "word boundary"),
    ("start: /a$b/", 1, 10, "anchor $ inside"),
    ("start: /a/l", 1, 8, "flag l is not supported"),
    ("start: /[z-a]/", 1, 8, "bad regular expression"),
    ("%declare _INDENT\nstart: _INDENT", 1, 10, "_INDENT is only declared"),
    ("start: nmae\nname: /a/", 1, 8, "rule 'nmae' is not defined; did you mean 'name'?"),
    ("start: NAME", 1, 8, "terminal 'NAME' is not defined; add: NAME: …"),
    ('begin: "a"', 0, 0, "there is no rule 'start'; add: start: begin"),
    ('start: "a"\nstart: "b"', 2, 1, "'start' is defined more than once"),
    ('start: "a"\n__x: "b"', 2, 1, "names that begin with two underscores"),
    ('start: A\nA: b\nb: "x"', 2, 4, "terminal 'A' uses the rule 'b'"),
    ('start: A\nA: "x" B\nB: A', 2, 1, "terminal 'A' refers to itself"),
    ("start: 'a'", 1, 8, "strings stand in double quotes"),
    ('start: "a', 1, 8, "the string is not closed"),
    ("start: /a", 1, 8, "the regular expression is not closed"),
    ('start: "\\q"', 1, 8, "unknown escape in the string"),
    ('start: "\\ud800"', 1, 8, "half of a surrogate pair"),
    ("start: a$", 1, 9, "unexpected character '$'"),
    ('Start: "a"', 1, 1, "mixes small letters and capitals"),
    ('start "a"', 1, 7, "before the colon of 'start'"),
    ("start", 1, 1, "no colon after 'start'"),
    ('start: "a"\n= "b"', 2, 1, "begins no statement"),
    ("%improt common.WS", 1, 1, "begins no statement; did you mean '%import'?"),
    ("%import WS\nstart: WS", 1, 1, "an import needs a file and a name"),
    ("%import none.WS\nstart: WS", 1, 9, "there is no library grammar 'none'"),
    ("%import common.NUMBR\nstart: NUMBR", 1, 16, "defines no NUMBR; did you mean 'NUMBER'?"),
    ("%import .other.x\nstart: x", 1, 9, "a relative import, but the grammar is not a file"),
    ("%import ..other.x\nstart: x", 1, 9, "imports from an outer folder"),
    ('start: "a"\n%override x: "b"', 2, 11, "%override of 'x', which is not defined"),
    ('start: "a"\n%extend x: "b"', 2, 9, "%extend of 'x', which is not defined"),
    ('start: t\nt{x}: x "a"', 1, 8, "'t' is a template; write t{x}"),
    ('start: t{"a", "b"}\nt{x}: x', 1, 8, "'t' takes 1 arguments, not 2"),
    ('start: t{"a"}\nt{x}: x | t{u{x}}\nu{x}: x x', 2, 13, "needs ever new instances"),
    ('start: ("a"', 1, 9, ""),
    ('start: "a" )', 1, 12, ""),
    ('start: "a"{0}', 1, 13, "cannot be 0"),
    ('start: "a" ?b\nb: "b"', 1, 12, "'?b' is read as the name of a rule; write a blank after ?"),
    ("start: %json {", 1, 8, "no JSON after this directive"),
    ("start: @other", 1, 8, "there is no other grammar @other"),
    ("start: DEC_NUMBER\n%import python.DEC_NUMBER", 40, 1, "look-ahead"),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), REFUSED, ids=lambda value: repr(value)[:50])
def test_refused(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.from_lark(text, "g.lark")
    error = caught.value
    if error.name == "g.lark":
        assert (error.line, error.column) == (line, column), str(error)
    else:
        assert error.name == "lark/grammars/python.lark"
    assert message in str(error)


def test_priorities_are_told() -> None:
    (warning,) = Grammar.from_lark('start.2: KW | NAME\nKW.3: "if"\nNAME: /[a-z]+/', "g.lark").warnings
    assert warning.startswith("g.lark:2:4: priority ignored: of terminals that match the same text, all are taken")


def test_unused_declarations_do_not_matter() -> None:
    assert accepts_text(Grammar.from_lark('%declare _INDENT\nstart: "a"'), "a").accepted


def test_files_beside_the_grammar(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "words.lark").write_text('word: LETTER+ tail\ntail: "!"\n%import common.LETTER\nUNUSED: /(?=a)/\n')
    (tmp_path / "sub" / "deep.lark").write_text('%import .leaf.LEAF\nx: LEAF tail\ntail: "?"\n')
    (tmp_path / "sub" / "leaf.lark").write_text('LEAF: "leaf"\n')
    main = tmp_path / "main.lark"
    main.write_text('%import .words.word -> w\n%import .sub.deep (x)\nstart: w | x tail\ntail: "."\n')
    grammar = Grammar.load(main)
    for text, taken in (("ab!", True), ("leaf?.", True), ("leaf?!", False), ("ab.", False)):
        assert accepts_text(grammar, text).accepted == taken, text
    (tmp_path / "sub" / "leaf.lark").write_text('LEAF: "leaf"\nLEAF: "twice"\n')
    with pytest.raises(GrammarError) as caught:
        Grammar.load(main)
    assert (caught.value.name, caught.value.line) == (str(tmp_path / "sub" / "leaf.lark"), 2)


@pytest.mark.parametrize("text", ["%import .none.x\nstart: x", "%import .main.start\n", "%import .link.x\nstart: x"])
def test_files_that_cannot_be_imported(tmp_path: Path, text: str) -> None:
    outside = tmp_path / "outside.lark"
    outside.write_text('x: "a"\n')
    folder = tmp_path / "grammar"
    folder.mkdir()
    (folder / "link.lark").symlink_to(outside)
    (folder / "main.lark").write_text(text)
    with pytest.raises(GrammarError, match=re.escape(str(folder))):
        Grammar.load(folder / "main.lark")


def test_positions_in_the_engines_messages_lead_to_the_source() -> None:
    text = 'start: t{"é"} x\n\nt{a}: a\nx: "ok" /[z-a]/\n'
    with pytest.raises(GrammarError) as caught:
        Grammar.from_lark(text, "g.lark")
    assert (caught.value.line, caught.value.column) == (4, 4)


@pytest.mark.parametrize(
    "text",
    [
        "start: " + "(" * 5000 + '"a"' + ")" * 5000,
        "start: A0\n" + "\n".join(f"A{n}: A{n + 1}" for n in range(3000)) + '\nA3000: "a"',
        "start: t{" * 2000,
        "start: /" + "(" * 3000 + "/",
        "\x00",
        "start: " + '"a" ' * 300_000,
    ],
    ids=range(6),
)
def test_hostile_texts_are_refused(text: str) -> None:
    with pytest.raises(GrammarError):
        Grammar.from_lark(text)


def test_start_symbols(tmp_path: Path) -> None:
    path = tmp_path / "g.lark"
    path.write_text('start: "a" other\nother: "b" start?\n')
    for name, text in ((f"{path}:other", "bab"), (str(path), "ab")):
        grammar = Grammar.load(name)
        assert accepts_text(grammar, text).accepted
        assert not accepts_text(grammar, text[1:]).accepted
    with pytest.raises(GrammarError, match="there is no rule 'othr'; did you mean 'other'"):
        Grammar.load(f"{path}:othr")
