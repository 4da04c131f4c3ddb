"""Regular expressions: three dialects against Python's ``re``, and what is refused with its position."""

from __future__ import annotations

import re

import pytest

from codespec.grammar import Grammar, GrammarError
from codespec.grammar.check import accepts_text
from codespec.grammar.regex import RegexError, translate

# (pattern, position, part of the message)
REFUSED = [
    ("a(?=b)", 1, "look-ahead (?=…) is not supported"),
    ("(?!b)a", 0, "negative look-ahead (?!…) is not supported"),
    ("(?<=b)a", 0, "look-behind (?<=…) is not supported"),
    ("(?<!b)a", 0, "negative look-behind (?<!…) is not supported"),
    ("(a)b\\1", 4, "back-reference \\1 is not supported"),
    ("(?P<x>a)(?P=x)", 8, "a back-reference is not supported"),
    ("(?<x>a)\\k<x>", 7, "a back-reference is not supported"),
    ("a\\bb", 1, "word boundary \\b is not supported"),
    ("a$b", 1, "anchor $ inside the expression"),
    ("(^a)", 1, "anchor ^ inside the expression"),
    ("a\\zb", 1, "anchor \\z inside the expression"),
    ("(a", 0, "the group is not closed"),
    ("a)", 1, "')' without '('"),
    ("[a", 0, "the class is not closed"),
    ("*a", 0, "nothing before * to repeat"),
    ("a|+", 2, "nothing before + to repeat"),
    ("a{x", 1, "'{' that begins no repetition"),
    ("a\\", 1, "the expression ends in \\"),
    ("\\y", 0, "unknown escape \\y"),
    ("(?z)a", 0, "flag 'z' is not supported"),
    ("\\x{110000}", 0, "is no character"),
    ("(" * 200, 100, "nested too deeply"),
]

TAKEN = [
    ("^ab*$", ["a", "abb"], ["", "ba"]),
    ("^a|b$", ["a", "b"], ["ab"]),
    ("(?i)^ab$", ["AB", "ab"], ["b"]),
    ("\\Aa\\z", ["a"], ["aa"]),
    ("a.*?b", ["ab", "axbxb"], ["a", "ba"]),
    ("a{2,}?", ["aa", "aaa"], ["a"]),
    ("a{,2}b", ["b", "aab"], ["aaab"]),
    ("(?s:.)[^a]", ["\nb", "\n\n"], ["\na"]),
    ("[\\d/]+/", ["1/2/"], ["/"]),
    ("(?P<year>\\d{4})-(?<month>\\d\\d)", ["2024-01"], ["24-01"]),
    ("\\x41\\u0042\\x{43}\\u{1F600}", ["ABC😀"], ["ABC"]),
    ("[[:alpha:]&&[^a]]", ["b"], ["a", "1"]),
    ("\\p{Greek}+", ["αβ"], ["ab"]),
    ("(?x) a b # comment", ["ab"], ["a b"]),
    ("(?x)a # ( note [\n b", ["ab"], ["a"]),
    ("(?:(?x)a # )\n b)#", ["ab#"], ["ab"]),
    ("(?x:a#\n)#[b]", ["a#b"], ["ab"]),
    ("(?x)a(?-x:#)b", ["a#b"], ["ab"]),
    ("", [""], ["a"]),
    ("()", [""], ["a"]),
    ("\\/\\-\\.\\{\\}}", ["/-.{}}"], ["x"]),
]


@pytest.mark.parametrize(("pattern", "position", "message"), REFUSED)
def test_refused(pattern: str, position: int, message: str) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.from_regex(pattern, "r")
    assert (caught.value.line, caught.value.column) == (1, position + 1)
    assert message in caught.value.cause
    assert caught.value.remedy


@pytest.mark.parametrize(("pattern", "matching", "others"), TAKEN)
def test_taken(pattern: str, matching: list[str], others: list[str]) -> None:
    grammar = Grammar.from_regex(pattern)
    for text in (*matching, *others):
        assert accepts_text(grammar, text).accepted == (text in matching), text


PYTHON = [
    "[]a-]+", "[^]a]", "[a-c-e]", "[\\w.-]+", "[[a&&b]", "a{,2}b", "x{y", "[\\]\\\\]", "(?:a|bc)*d?", "[^\\n]", ".a",
    "\\Aab\\Z", "(?P<n>a)(?#c)b", "\\0", "[\\b]", "\\v\\f", "a{2}b{1,2}", "}]", "(?i:A)b", "\\$\\^", "[$^]",
]  # fmt: skip
TEXTS = [
    "", "a", "ab", "abb", "b", "-", "]", "]a-", "a-b", "e", "c", "&", "[", "x{y", "aab", "\\", "bcd", "d", "\x00",
    "\x08", "\x0b\x0c", "aabb", "}]", "~", ",", "Ab", "ab.", "$^", "$", "^", "\na", "xa", "\n",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Possible:FutureWarning")
@pytest.mark.parametrize("pattern", PYTHON)
def test_pythons_dialect_means_what_it_means_in_python(pattern: str) -> None:
    grammar = Grammar.from_regex(translate(pattern, "python"))
    for text in TEXTS:
        assert accepts_text(grammar, text).accepted == bool(re.fullmatch(pattern, text)), text


@pytest.mark.parametrize(
    ("pattern", "message"),
    [("a*+", "possessive"), ("a{2}{3}", "nothing before {3}"), ("(?a)b", "flag 'a'"), ("[\\d-\\w", "not closed")],
)
def test_refused_of_python(pattern: str, message: str) -> None:
    with pytest.raises(RegexError, match=re.escape(message)):
        translate(pattern, "python")


ASCII = [
    ("\\d", "7", "\u0661"),
    ("[\\d_]", "7", "\u0661"),
    ("\\D", "\u0661", "7"),
    ("[^\\d]", "\u0661", "7"),
    ("\\w", "a", "é"),
    ("\\W", "é", "a"),
    ("[\\w&&[^\\d]]", "a", "é"),
    ("(?i)\\w", "K", "É"),
    ("\\s", "\v", "\xa0"),
    ("(?x) \\s", " ", "\x85"),
    ("(?u:\\d)", "7", "\u0661"),
]


@pytest.mark.parametrize(("pattern", "matching", "other"), ASCII)
def test_classes_are_ascii(pattern: str, matching: str, other: str) -> None:
    grammar = Grammar.from_regex(pattern)
    assert accepts_text(grammar, matching).accepted
    assert not accepts_text(grammar, other).accepted


def test_lazy_quantifiers_are_refused_where_more_text_follows() -> None:
    assert translate("a*?") == "a*"
    with pytest.raises(RegexError) as caught:
        translate('"a*?"', lazy=False)
    assert caught.value.position == 2
