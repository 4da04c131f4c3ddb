"""Every message of the GBNF front end, beside a text that gives it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.grammar.oracle import Failure, judge
from codespec.grammar import Grammar, GrammarError
from codespec.grammar.check import check
from codespec.grammar.gbnf.diagnose import diagnose
from codespec.grammar.gbnf.gbnf import parse
from tests import byte_vocabulary
from tests.grammar_fakes import small_tokenizer

ROOT = 'root ::= "a"\n'

PLAIN = [
    # what is said, then texts of which it is said; "g:" is the grammar's name
    ("g:2:11: error: rule 'vlaue' is not defined; did you mean 'value'?", "root ::= value\nvalue ::= vlaue"),
    ("g:1:10: error: rule 'x' is not defined; add: x ::= ...", "root ::= x x"),
    ("g: error: there is no rule 'root'; did you mean 'Root'?", 'Root ::= "a"'),
    ("g:2:1: warning: rule 'b' is never used", ROOT + 'b ::= "b"', ROOT + 'b ::= "b" b |'),
    ("g:2:1: warning: rule 'b' matches no text", 'root ::= "a" | b\nb ::= "b" b', 'root ::= "a" | b\nb ::= [z-a]'),
    ("g:1:1: error: no text matches 'root'; give every recursive rule an alternative that ends", 'root ::= "a" root'),
    ("g:1:1: warning: rule 'root' matches no text", 'root ::= "a" root'),
    ("g:1:10: warning: the range 'z' to 'a' holds no character; swap its ends", "root ::= [z-a0]"),
    ("g:1:10: warning: the range U+110000 to 'a' holds no character; swap its ends", "root ::= [\\U00110000-a0]"),
    ('g:1:10: warning: an empty class matches the empty text; write "" for the empty text', "root ::= []"),
    ("g:1:10: warning: an empty class matches the empty text; write . for any character", "root ::= [^]"),
    ("g:1:13: warning: '{1,9999}' has no upper limit: it is more than 2000", 'root ::= "a"{1,9999}'),
    ("g:1:13: error: repetition '{2001}' is too large; at most 2000 are allowed", 'root ::= "a"{2001}'),
    ("g:1:13: error: bad repetition '{3,1}'; the first number must not exceed the second", 'root ::= "a"{3,1}'),
    ("g:1:13: error: bad repetition '{,3}'; write {m}, {m,} or {m,n}", 'root ::= "a"{,3}'),
    ("g:2:1: warning: rule 'a' is defined again below; the last definition counts", 'root ::= a\na ::= "x"\na ::= "y"'),
    ("g:1:1: warning: rule 'root' is left recursive (directly), which llama.cpp refuses", 'root ::= root "a" | "b"'),
    (
        "g:1:1: warning: rule 'root' is left recursive (through 'x'), which llama.cpp refuses",
        'root ::= x "a"\nx ::= "b" | root',
    ),
    (
        "g:1:1: warning: rule 'root' is left recursive (directly, after something that may be empty), which llama.cpp",
        'root ::= "x"* root "a" | "b"',
        'root ::= x root "a" | "b"\nx ::= y\ny ::= "y"?',
    ),
    (
        "g:1:1: warning: rule 'root' repeats without limit what may be empty by itself, which llama.cpp refuses",
        'root ::= "a"**',
        'root ::= x+\nx ::= "a" |',
    ),
    (
        "g:1:14: error: '\\b' is an extension of GBNF; pass --extensions (in Python: extensions=True)",
        r'root ::= "a" \b',
    ),
    ("g:2:2: error: parameters of a rule are an extension of GBNF; pass --extensions", 'root ::= "a"\nb<x> ::= x'),
    ("g:1:14: error: '-' between blanks is an extension of GBNF; pass --extensions", 'root ::= "a" - "b"'),
]

EXTENDED = [
    (
        "g:1:15: error: '-' in 'root': rule 'root' is recursive; subtract texts without recursion",
        'root ::= ("a" root?) - "b"',
    ),
    (
        "g:1:19: error: '-' in 'root': rule 'x' is recursive; subtract texts",
        'root ::= [a-z]* - x\nx ::= "a" y\ny ::= "b" x?',
    ),
    ("g:1:1: error: '-' in 'root': '\\b' stands inside; subtract texts", r'root ::= ("a" \b) - "b"'),
    ("g:1:10: error: '-' in 'root': '\\b' stands inside; subtract texts", 'root ::= x - "b"\nx ::= "a" \\b'),
    ("g:1:1: error: '-' in 'root': the token element <[3]> stands inside", 'root ::= <[3]> - "b"'),
    (
        "g:1:18: error: unexpected '-'; it stands between two items; to subtract more than one, write a - (b | c)",
        'root ::= "a" - . - "b"',
    ),
    (
        "g:1:14: error: rule '-b' is not defined; to subtract, write '-' with a blank on both sides",
        'root ::= "a" -b\nb ::= "b"',
    ),
    ("g:1:10: error: rule 't' takes 2 arguments, 1 given; write t<x, y>", 'root ::= t<a>\nt<x, y> ::= x y\na ::= "a"'),
    ("g:1:10: error: rule 't' takes 1 argument, 0 given; write t<x>", "root ::= t\nt<x> ::= x"),
    ("g:1:10: error: rule 'a' takes 0 arguments, 1 given; write a without '<...>'", 'root ::= a<a>\na ::= "a"'),
    ("g:1:12: error: rule 'q' is not defined; add: q ::= ...", "root ::= t<q>\nt<x> ::= x"),
    ("g:2:13: error: rule 'items' is not defined; did you mean 'item'?", "root ::= t<root>\nt<item> ::= items"),
    ("g:2:6: error: two parameters are called 'x'; rename one", 'root ::= "a"\nt<x, x> ::= x'),
    (
        "g:2:10: error: parameter 'x' takes no arguments; pass an instance of the template instead",
        'root ::= t<a>\nt<x> ::= x<a>\na ::= "a"',
    ),
    (
        "g:2:1: error: template 't' needs ever new instances, such as t<l<l<",
        'root ::= t<a>\nt<x> ::= "b" t<l<x>> | x\nl<x> ::= x x\na ::= "a"',
    ),
    (
        "g:2:12: error: 'i' is no level where t<a> is used; pass a level, such as indent",
        'root ::= t<a>\nt<i> ::= t<i+>\na ::= "a"',
    ),
    (
        "g:1:12: error: 'a' is no level; name a parameter that is bound to a level, or indent",
        'root ::= t<a+>\nt<i> ::= i\na ::= "a"',
    ),
    ("g:1:18: error: bad level; write indent+ for any deeper level, or indent+2", "root ::= t<indent*>\nt<i> ::= i"),
    ("g:1:1: error: 'root' takes parameters and cannot be the start; add a rule without parameters", "root<i> ::= i"),
    ("g:1:13: error: unexpected '\"b\"' between '<' and '>'; list names: name<first, second>", 'root ::= t<a"b">'),
    ("g:1:12: error: unexpected '>' between '<' and '>'; list names", "root ::= t<>\nt<i> ::= i"),
    ("g:1:13: error: unexpected end of the grammar: '>' is missing; complete the last rule", "root ::= t<a"),
    ("g:1:10: error: unexpected character '\\'; escapes stand in", r"root ::= \n"),
    (
        "g:2:1: error: rule 'word-char' is no character class, and '\\b' needs one there",
        'root ::= "a" \\b\nword-char ::= "ab"',
    ),
    (
        "g:1:1: error: a repetition of up to 99 rounds holds '\\b' and may begin with a word character",
        r'root ::= ("a" \b | "b" | "-"){1,99}',
    ),
    ("g:2:1: warning: rule 't' is never used", ROOT + "t<x> ::= x"),
    ("g:2:1: warning: rule 't' matches no text", 'root ::= "a" | t<indent>\nt<i> ::= i t<i>'),
]

STRICT = [
    ("g:1:10: error: '_' in the name 'a_b'; llama.cpp refuses it: use '-' instead", 'root ::= a_b\na_b ::= "x"'),
    (
        "g:1:1: error: rule 'root' is left recursive (directly); llama.cpp refuses it: use repetition",
        'root ::= root "a" | "b"',
    ),
    ("g:2:1: error: rule 'x' is left recursive (directly); llama.cpp refuses", 'root ::= "a"\nx ::= x "a" | "b"'),
    (
        "g:1:1: error: rule 'root' is left recursive (directly, after something",
        'root ::= x root "a" | "b"\nx ::= y\ny ::= "y"?',
    ),
    ("g:1:1: error: rule 'root' repeats without limit what may be empty by itself; llama.cpp", 'root ::= "a"**'),
    ("g:1:14: error: '\\b' is an extension of GBNF; llama.cpp refuses it, and so does strict mode", r'root ::= "a" \b'),
    ("g:2:2: error: parameters of a rule are an extension of GBNF; llama.cpp refuses it", 'root ::= "a"\nb<x> ::= x'),
]


def cases(table: Sequence[tuple[str, ...]]) -> list[tuple[str, str]]:
    return [(message, text) for message, *texts in table for text in texts]


def said(text: str, folder: Path, **options: bool) -> list[str]:
    path = folder / "g.gbnf"
    path.write_text(text)
    return [str(each).replace(str(path), "g") for each in check(path, **options)]


@pytest.mark.parametrize(("message", "text"), cases(PLAIN))
def test_plain(message: str, text: str, tmp_path: Path) -> None:
    assert any(line.startswith(message) for line in said(text, tmp_path)), said(text, tmp_path)


@pytest.mark.parametrize(("message", "text"), cases(EXTENDED))
def test_extended(message: str, text: str, tmp_path: Path) -> None:
    found = said(text, tmp_path, extensions=True)
    assert any(line.startswith(message) for line in found), found


@pytest.mark.parametrize(("message", "text"), cases(STRICT))
def test_strict(message: str, text: str, tmp_path: Path) -> None:
    found = said(text, tmp_path, strict=True, extensions=True)
    assert any(line.startswith(message) for line in found), found


def test_several_at_once(tmp_path: Path) -> None:
    assert said("root ::= a b\na ::= []\na ::= c", tmp_path) == [
        "g:1:12: error: rule 'b' is not defined; add: b ::= ...",
        "g:2:1: warning: rule 'a' is defined again below; the last definition counts",
        'g:2:7: warning: an empty class matches the empty text; write "" for the empty text',
        "g:3:7: error: rule 'c' is not defined; add: c ::= ...",
    ]


def test_nothing_to_say(tmp_path: Path) -> None:
    assert said('root ::= "a" b*\nb ::= "b" | "(" root ")"', tmp_path, strict=True) == []
    used = '# Start symbols: y, z\nroot ::= t<x> \\b\nt<a> ::= a\nx ::= "x"\nword-char ::= [a-z]\nz ::= x'
    assert said(used, tmp_path, extensions=True) == []


@pytest.mark.parametrize("start", ["statment", "t"])
def test_starts(start: str) -> None:
    text = 'root ::= "a"\nstatement ::= "b"\nt<x> ::= x'
    expected = {
        "statment": "g: there is no rule 'statment'; did you mean 'statement'?",
        "t": "g:3:1: 't' takes parameters and cannot be the start; add a rule without parameters that uses it",
    }[start]
    with pytest.raises(GrammarError) as caught:
        parse(text, "g", extensions=True, start=start)
    assert str(caught.value).startswith(expected)


def test_an_end_token_may_not_be_named() -> None:
    with pytest.raises(GrammarError, match=r"^g:1:14: <end> "):
        Grammar.from_gbnf('root ::= "a" <end>', "g").state(small_tokenizer())


def test_strict_refuses_what_llama_cpp_refuses(tmp_path: Path) -> None:
    vocabulary = byte_vocabulary.write(tmp_path / "bytes.gguf")
    fine = ['root ::= ("a" | "b"?)* "c"', 'root ::= "a"+ "b"{2,} ("c"* | "d")? root | "e"']
    refused = [
        'root ::= "b"\nz ::= z "a" | "c"',
        'root ::= x*\nx ::= ""',
        'root ::= "" root "c" | "b"',
        'root ::= x**\nx ::= "a"',
    ]
    texts = [*fine, *refused, *(text for _, text in cases(STRICT) if "y?" not in text)]  # of that it never returns
    for text, answer in zip(texts, judge([(text, []) for text in texts], vocabulary), strict=True):
        errors = [each for each in diagnose(text, "g", strict=True) if each.severity == "error"]
        assert bool(errors) == isinstance(answer, Failure) == (text not in fine), (text, answer, errors)


def test_much_to_say_takes_bounded_time() -> None:
    for text in [
        "root ::= " + "x " * 60_000,
        "\n".join(f"r{i} ::= r{i} | []" for i in range(1999)) + "\nroot ::= []",
        "root ::= " + "[z-a]" * 40_000,
        "\n".join(f'r{i} ::= r{(i + 1) % 1999} "a"' for i in range(1999)) + "\nroot ::= r0",
    ]:
        begin = time.process_time()
        assert diagnose(text, "g")
        assert time.process_time() - begin < 20
