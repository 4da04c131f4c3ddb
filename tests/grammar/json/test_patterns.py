"""Patterns of JSON Schemas: what JavaScript's engine finds is what is taken, and nothing else."""

from __future__ import annotations

import json
import random
import shutil
import subprocess

import pytest

from codespec.grammar import Grammar
from codespec.grammar.check import accepts_text
from codespec.grammar.json.patterns.lower import all_but, lower, may_match, may_overlap, only_text, opposite_of
from codespec.grammar.regex import RegexError

CASES = [
    ("^(?!foo|bar$)[a-z]+$", ["fob", "fo", "barn", "ba"], ["food", "foo", "bar", ""]),
    ("^(?:a\\$).*$", ["a$", "a$b"], ["a$\nb", "a"]),
    ("^a\\\\$", ["a\\"], ["a$", "a"]),
    ("a|^b$|[$^]", ["xa", "b", "$"], ["xb", "bx"]),
    ("^(a|b$)c?", ["ac", "b"], ["bc", "c"]),
    ("(^|,)x(,|$)", ["x", "a,x", "x,b"], ["ax", "xa"]),
    ("(?<!a)b", ["b", "cb", "abb"], ["ab", "a"]),
    ("^[a-z-]+(?<!-)$", ["a-b"], ["a-", ""]),
    ("(?<=^|,)a", ["a", "b,a"], ["ba"]),
    ("^(?=.*[0-9])(?=.*[a-z])(?!.*aa).{3,}$", ["a1b", "11a"], ["aa1", "111", "a1"]),
    ("^((?!--).)*$", ["a-b", ""], ["a--b", "\n"]),
    ("^(?:(?!--)[a-z-]){1,3}$", ["a-b", "a-"], ["a--", "abcd", ""]),
    ("^(?!\\s*$).", ["a", " a"], [" ", ""]),
    ("^\\cA\\/[\\b]$", ["\x01/\x08"], ["A/b"]),
    ("^\\uD83D\\uDE00.$", ["😀😀"], ["?"]),
    ("^\\u{1F600}$", ["😀"], ["u"]),
    ("^[😀-😂]$", ["😁"], ["a"]),
    ("^[\\uD83D\\uD83E]", [], ["😀"]),
    ("^[^]$", ["\n", "a"], [""]),
    ("^a[]$", [], ["a", "a[]"]),
    ("^\\s$", ["\ufeff", "\u00a0", "\t"], ["\x85", "a"]),
    ("^[\\S]$", ["a", "\x85"], ["\ufeff", " "]),
    ("^\\d$", ["7"], ["\u0661"]),
    ("^\\W$", ["é"], ["a"]),
    ("^[a-z[]$", ["[", "b"], ["]"]),
    ("^(?:[\\x00-\\x0f]|[\\x10-\\x1f]|a)$", ["\t", "a"], ['"', "\\"]),
    ('^[^"]$', ["\t", "\\"], ['"']),
    ("^\\p{Lu}$", ["É"], ["é"]),
    ("^(?<year>\\d{4})?$", ["2020", ""], ["20"]),
    ("^{a}$", ["{a}"], ["a"]),
    ("^(?i:ab)c$", ["ABc", "abc"], ["abC"]),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "matching", "others"), CASES, ids=[case[0] for case in CASES])
def test_what_is_found(pattern: str, matching: list[str], others: list[str]) -> None:
    grammar = Grammar.from_json_schema(json.dumps({"type": ["string", "null"], "pattern": pattern}))
    for text in (*matching, *others):
        value = json.dumps(text, ensure_ascii=False)
        assert accepts_text(grammar, value).accepted == (text in matching), text
        if "\\p" not in pattern:
            assert all(may_match(each, text) for each in lower(pattern)) == (text in matching), text


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(a)\\1", "back-reference \\1"),
        ("\\ba", "word boundary"),
        ("a{,3}", "in Python, and text in JavaScript"),
        ("\\Aa", "unknown escape \\A"),
        ("a++", "possessive"),
        ("(?m)^a", "flag 'm'"),
        ("[b-a]", "ends before it begins"),
        ("(a", "not closed"),
        ("a)", "')' without '('"),
        ("*a", "nothing before *"),
        ("[\\1]", "octal"),
        ("(?:" * 200 + ")" * 200, "too deeply"),
        ("^(?!.*(a|b|c){3,20}x)(?!.*y.{12}z)", "cannot be enforced"),
        ("((?!a)|b)*", "cannot be enforced"),
    ],
)
def test_what_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(RegexError) as caught:
        lower(pattern)
    assert message in caught.value.cause


def test_what_lowered_patterns_say() -> None:
    (ab,), (digits,) = lower("^(a|ab)$"), lower("\\d")
    opposite = opposite_of(ab)
    assert opposite is not None
    assert [may_match(opposite, text) for text in ("a", "ab", "", "b", "abc")] == [False, False, True, True, True]
    assert not may_overlap([ab, digits])
    assert may_overlap([ab, lower("b$")[0]])
    assert only_text(lower("^a\\.b$")[0]) == "a.b"
    assert only_text(ab) is None
    assert [may_match(all_but(["a", "é\n"]), text) for text in ("a", "é\n", "é", "", "aa")] == [
        False,
        False,
        True,
        True,
        True,
    ]


ATOMS = [
    "a",
    "b",
    ".",
    "\\d",
    "\\w",
    "\\s",
    "\\W",
    "[ab]",
    "[^a]",
    "[^ab\\d]",
    "\\$",
    "\\.",
    "-",
    "😀",
    "é",
    "\\n",
    "[\\s\\S]",
]
CHARACTERS = ["a", "b", "1", "A", "é", "😀", "\n", "-", "$", ".", "\\", " ", "\u00a0"]


def _pattern(rng: random.Random, depth: int) -> str:
    """A random regular expression."""
    if depth == 0 or rng.random() < 0.25:
        return rng.choice(ATOMS)
    one, two = _pattern(rng, depth - 1), _pattern(rng, depth - 1)
    shapes = [
        one + two, one + two, f"(?:{one}|{two})", f"({one}|{rng.choice(['', '^', '$'])}{two})",
        f"(?:{one}){rng.choice(['*', '+', '?', '{2}', '{1,2}', '{1,}'])}", f"(?={one}{rng.choice(['', '$'])})",
        f"(?!{one}{rng.choice(['', '$'])})", f"(?<={one})", f"(?<!{one})", f"^{one}", f"{one}$", f"^{one}$",
        f"^(?:(?!{one}){rng.choice(ATOMS)})*$",
    ]  # fmt: skip
    return rng.choice(shapes)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js, whose engine judges")
def test_against_javascripts_engine() -> None:
    rng = random.Random(20)
    cases = []
    for _ in range(1000):
        texts = ["".join(rng.choice(CHARACTERS) for _ in range(rng.randint(0, 5))) for _ in range(12)]
        cases.append((_pattern(rng, rng.randint(1, 4)), texts))
    script = """
        const cases = JSON.parse(require("fs").readFileSync(0, "utf8"))
        const judge = ([pattern, texts]) => {
            const found = new RegExp(pattern, "u")
            return texts.map(text => found.test(text))
        }
        console.log(JSON.stringify(cases.map(each => { try { return judge(each) } catch { return null } })))
    """
    done = subprocess.run(["node", "-e", script], input=json.dumps(cases), capture_output=True, text=True, check=True)
    known = refused = 0
    for (pattern, texts), wanted in zip(cases, json.loads(done.stdout), strict=True):
        if wanted is None:
            continue
        known += 1
        try:
            found = lower(pattern)
        except RegexError:
            refused += 1
            continue
        assert [all(may_match(each, text) for each in found) for text in texts] == wanted, pattern
    assert known > 700
    assert refused < 0.1 * known
