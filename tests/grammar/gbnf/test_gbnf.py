"""GBNF text to rules: what it means, and what the messages say."""

from __future__ import annotations

import time

import pytest

from codespec.grammar import GrammarError
from codespec.grammar.gbnf.gbnf import MAX_NESTING, MAX_RULES, MAX_SOURCE, parse
from codespec.grammar.rules import (
    EMPTY,
    CharClass,
    Choice,
    Literal,
    Node,
    Repeat,
    RuleRef,
    Sequence,
    TokenRef,
    references,
    walk,
)

ANY = CharClass((), negated=True)


def lit(text: str) -> Literal:
    return Literal(tuple(map(ord, text)))


def body(text: str, rule: str = "root") -> Node:
    return parse(text).rules[rule].body


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"abc"', lit("abc")),
        ('""', EMPTY),
        (r'"\x41\u00e9\U0001F600\t\r\n\\\"\[\]\-"', lit('A\u00e9\U0001f600\t\r\n\\"[]-')),
        (r'"\xE9"', Literal((0xE9,))),  # a code point, not a byte
        (r'"\uD800"', Literal((0xD800,))),
        ('"two\nlines"', lit("two\nlines")),
        ('"# no comment"', lit("# no comment")),
        ("[a-z0]", CharClass(((97, 122), (48, 48)))),
        ("[a-]", CharClass(((97, 97), (45, 45)))),
        ("[-a]", CharClass(((45, 45), (97, 97)))),
        ("[--0]", CharClass(((45, 48),))),
        (r"[a\-z]", CharClass(((97, 97), (45, 45), (122, 122)))),
        (r"[+-\]]", CharClass(((43, 93),))),
        ("[^a]", CharClass(((97, 97),), negated=True)),
        ("[z-a]", CharClass(((122, 97),))),
        ("[]", EMPTY),
        ("[^]", EMPTY),
        (".", ANY),
        ('"ab"*', Repeat(lit("ab"), 0, None)),
        ('"a" +', Repeat(lit("a"), 1, None)),
        ('"a"?', Repeat(lit("a"), 0, 1)),
        ('"a"{3}', Repeat(lit("a"), 3, 3)),
        ('"a"{ 3 , }', Repeat(lit("a"), 3, None)),
        ('"a"{3,5}', Repeat(lit("a"), 3, 5)),
        ('"a"{1,2001}', Repeat(lit("a"), 1, None)),
        ('"a"{2}*', Repeat(Repeat(lit("a"), 2, 2), 0, None)),
        ('"a" | "b" "c"', Choice((lit("a"), Sequence((lit("b"), lit("c")))))),
        ('"a" |', Choice((lit("a"), EMPTY))),
        ("", EMPTY),
        ('( "a"\n | "b"\n)', Choice((lit("a"), lit("b")))),
        ('"a" |\n  "b"', Choice((lit("a"), lit("b")))),
        ('\n\n  "a" # comment', lit("a")),
        ("<[12]>", TokenRef(12, "<[12]>", False, 1, 10)),
        ("!<think>", TokenRef(None, "<think>", True, 1, 10)),
    ],
)
def test_meaning(source: str, expected: Node) -> None:
    assert body(f"root ::= {source}") == expected


def test_the_last_rule_of_a_name_wins() -> None:
    rules = parse('\n # head\nroot ::= 1x-Y_z\r\n\r\n1x-Y_z ::= "a"\nroot ::= 1x-Y_z "b"  # the last one wins\n')
    assert list(rules.rules) == ["root", "1x-Y_z"]
    assert rules.rules["root"].body == Sequence((RuleRef("1x-Y_z", 6, 10), lit("b")))


def test_left_recursion_is_fine() -> None:
    assert body('root ::= root "a" | "b"') == Choice((Sequence((RuleRef("root", 1, 10), lit("a"))), lit("b")))


def test_strict_refuses_underscores() -> None:
    parse('root ::= a_b\na_b ::= "x"')
    with pytest.raises(GrammarError, match=r"^g:1:10: '_' in the name 'a_b'; llama.cpp refuses it"):
        parse('root ::= a_b\na_b ::= "x"', "g", strict=True)


ERRORS = [
    # message, then texts that give it
    ("g:1:10: rule 'vlaue' is not defined; did you mean 'value'?", 'root ::= vlaue\nvalue ::= "a"'),
    ("g:2:13: rule 'q' is not defined; add: q ::= ...", 'root ::= a\na   ::= "x" q'),
    ("g: there is no rule 'root'; add: root ::= ...", "", "# nothing\n", 'start ::= "a"'),
    ("g: there is no rule 'root'; did you mean 'Root'?", 'Root ::= "a"'),
    ("g:1:12: unknown escape '\\q'; the escapes are", r'root ::= "a\q"', r"root ::= [z\q]"),
    ("g:1:11: bad escape '\\x4'; '\\x' takes 2 hex digits", r'root ::= "\x4"', r"root ::= [\x4]"),
    ("g:1:11: bad escape '\\u12G4'; '\\u' takes 4 hex digits", r'root ::= "\u12G4"'),
    ("g:2:4: bad escape '\\U12'; '\\U' takes 8 hex digits", 'root ::= "a\nbcd\\U12"'),
    ("g:1:10: unterminated string; close it with", 'root ::= "abc', 'root ::= "abc\\"'),
    ("g:1:10: unterminated character class; close it with ']'", "root ::= [abc", "root ::= [abc\\]"),
    ("g:1:13: unterminated repetition; close it with '}'", 'root ::= "a"{2'),
    ("g:1:10: unterminated token element; close it with '>'", "root ::= <think"),
    ("g:1:10: '!' without a token; write !<[id]> or !<text>", 'root ::= !"a"'),
    ("g:1:10: bad token element '<[x]>'; write <[id]> with a number", "root ::= <[x]>"),
    ('g:1:10: unexpected character "\'"; strings take double quotes', "root ::= 'a'"),
    ("g:1:10: unexpected character 'é'; quote text", "root ::= é"),
    ("g:1:6: '=' without '::'; a rule is written: name ::= ...", 'root = "a"'),
    ("g:1:6: ':' where a rule was expected", 'root : "a"'),
    ("g:1:13: bad repetition '{,3}'; write {m}, {m,} or {m,n}", 'root ::= "a"{,3}'),
    ("g:1:13: bad repetition '{a}'; write {m}, {m,} or {m,n}", 'root ::= "a"{a}'),
    ("g:1:13: bad repetition '{3,1}'; the first number must not exceed the second", 'root ::= "a"{3,1}'),
    ("g:1:13: repetition '{2001}' is too large; at most 2000 are allowed", 'root ::= "a"{2001}'),
    ("g:1:13: repetition '{99999999999999999", 'root ::= "a"{99999999999999999999999}'),
    ("g:1:10: nothing to repeat before '*'; write it after", 'root ::= * "a"', "root ::= *"),
    ("g:2:1: a line starts with '|'; end the line before with '|'", 'root ::= "a"\n| "b"'),
    ("g:1:13: unexpected ')'; remove it, or add the '(' that it closes", 'root ::= "a")'),
    ("g:1:14: unexpected end of the grammar: ')' is missing", 'root ::= ("a"'),
    ("g:3:6: unexpected end of the grammar: ')' is missing", 'root ::= ("a"\n\n# end\n'),
    ("g:1:5: unexpected end of the grammar: '::=' is missing", "root"),
    ("g:1:5: '::=' expected, found the end of the line", 'root\n::= "a"'),
    ("g:1:16: unexpected '::='; start each rule on a new line", 'root ::= "a" b ::= "c"'),
    ("g:3:3: unexpected '::='; start each rule on a new line, and close every '('", 'root ::= ("a"\n\nb ::= "c"'),
    ("g:1:74: more than 64 levels of nesting; move inner groups to rules", "root ::= " + "(" * 20_000),
    ("g:1:77: more than 64 levels of nesting; move inner groups to rules", 'root ::= "a"' + "*" * 20_000),
]


@pytest.mark.parametrize(
    ("message", "text"), [(message, text) for message, *texts in ERRORS for text in texts], ids=lambda x: str(x)[:40]
)
def test_errors_have_position_cause_and_remedy(message: str, text: str) -> None:
    with pytest.raises(GrammarError) as caught:
        parse(text, "g")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert "; " in str(caught.value)


def test_nesting_up_to_the_limit() -> None:
    parse("root ::= " + "(" * MAX_NESTING + '"a"' + ")" * MAX_NESTING)
    parse("root ::= " + '("a") ' * 500 + '"a"*' * 500)
    half = MAX_NESTING // 2
    with pytest.raises(GrammarError, match="levels of nesting"):
        parse("root ::= " + "(" * (half + 1) + '"a"' + ")+" * (half + 1))


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f'r{i} ::= "a" r{i + 1}' for i in range(10_000)),
        "root ::= " + '"a" ' * (MAX_SOURCE // 4),
        'root ::= "' + "\\" * (MAX_SOURCE - 20),
        "root ::= [" + "a-" * (MAX_SOURCE // 2 - 10),
        "root ::= " + "{" * 100_000,
        "root ::= " + "<" * 100_000,
        "|" * 100_000,
        "root ::= \x00",
        "root ::= [\ud800",
    ],
    ids=["chain", "large", "backslashes", "class", "braces", "angles", "bars", "nul", "surrogate"],
)
def test_hostile_text_is_refused_in_bounded_time(text: str) -> None:
    begin = time.process_time()
    with pytest.raises(GrammarError):
        parse(text)
    assert time.process_time() - begin < 20


def test_limits() -> None:
    with pytest.raises(GrammarError, match=f"more than {MAX_RULES} rules"):
        parse("\n".join(f'r{i} ::= "a"' for i in range(MAX_RULES + 1)))
    with pytest.raises(GrammarError, match=f"at most {MAX_SOURCE} fit"):
        parse("#" * (MAX_SOURCE + 1))


def test_walk_is_in_order() -> None:
    node = body('root ::= a (b | c)* d\na ::= ""\nb ::= ""\nc ::= ""\nd ::= ""')
    assert [ref.name for ref in references(node)] == list("abcd")
    assert max(depth for _, depth in walk(node)) == 3
