"""The extensions of GBNF: subtraction, word boundaries, templates, levels and start symbols."""

from __future__ import annotations

import itertools
import random
import time
from pathlib import Path

import pytest

from codespec.cli.main import main
from codespec.grammar import Grammar, GrammarError, byte_tokenizer
from codespec.grammar.gbnf.gbnf import parse, read
from codespec.grammar.grammar import split_start
from codespec.grammar.lower.boundary import eliminate
from codespec.grammar.rules import (
    Boundary,
    Choice,
    Except,
    Literal,
    Node,
    Repeat,
    RuleRef,
    Rules,
    Sequence,
    TokenRef,
    walk,
)
from tests.grammar_fakes import CONTROL, matches, small_tokenizer


def lit(text: str) -> Literal:
    return Literal(tuple(map(ord, text)))


def written(source: str) -> Node:
    return read(f"root ::= {source}", extensions=True).rules["root"].body


def accepted(text: str, grammar: str, **options: object) -> bool:
    return matches(parse(grammar, extensions=True, **options), text)  # type: ignore[arg-type]


# --- what is written ---


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"a" - "b"', Except(lit("a"), lit("b"))),
        ('"a"* - "b"+ "y"', Sequence((Except(Repeat(lit("a"), 0, None), Repeat(lit("b"), 1, None)), lit("y")))),
        ('("a" | "b") -\n "b"', Except(Choice((lit("a"), lit("b"))), lit("b"))),
        ('( "a"\n- "b" )', Except(lit("a"), lit("b"))),
        (r'"if" \b', Sequence((lit("if"), Boundary()))),
        (r"\b", Boundary()),
        (r'("a"\b)*', Repeat(Sequence((lit("a"), Boundary())), 0, None)),
        ("<[3]> <think>", Sequence((TokenRef(3, "<[3]>", False, 1, 10), TokenRef(None, "<think>", False, 1, 16)))),
    ],
)  # fmt: skip
def test_meaning(source: str, expected: Node) -> None:
    assert written(source) == expected


def test_names_hold_hyphens() -> None:
    rules = parse('root ::= a-b - -c\na-b ::= "x"\n-c ::= "y"', extensions=True)
    assert rules.rules["root"].body == Except(RuleRef("a-b", 1, 10), RuleRef("-c", 1, 16))


def test_without_the_flag_gbnf_is_as_before() -> None:
    rules = parse('root ::= a<think> - x\na ::= "a"\n- ::= "b"\nx ::= "x"')
    assert rules.rules["root"].body == Sequence(
        (RuleRef("a", 1, 10), TokenRef(None, "<think>", False, 1, 11), RuleRef("-", 1, 19), RuleRef("x", 1, 21))
    )
    assert parse('root ::= indent\nindent ::= " "', extensions=True) == parse('root ::= indent\nindent ::= " "')


def test_other_start() -> None:
    text = 'root ::= a\na ::= "a" b\nb ::= "b"'
    assert parse(text, start="b").root == "b"
    assert parse('a ::= "a"', start="a").root == "a"  # no root is needed then
    assert matches(parse(text, start="b"), "b")


# --- word boundaries ---

WORD = "ab"
ITEMS = ['"a"', '"b"', '"-"', '"ab"', "[ab]", "[a-]", "[^a]", '""', r"\b", r"\b", "![b-]", "x", "y", '(x "b"?) - y']
ACYCLIC = ['"a"', '"-"', '"ab"', "[b-]*", '""', '("a" | "b-")', '("a"* | "-") - "aa"', '"b"?']


def random_grammar(rng: random.Random) -> str:
    """Rules over a, b and -, with boundaries in the recursive ones."""

    def node(depth: int, items: list[str]) -> str:
        kind = rng.random()
        if depth == 0 or kind < 0.3:
            return rng.choice(items)
        if kind < 0.6:
            return " ".join(node(depth - 1, items) for _ in range(rng.randint(1, 3)))
        if kind < 0.8:
            return "(" + " | ".join(node(depth - 1, items) for _ in range(rng.randint(1, 3))) + ")"
        return f"({node(depth - 1, items)}){rng.choice(['*', '+', '?', '{2}', '{0,2}', '{1,3}', '{2,}'])}"

    recursive = [*ITEMS, "root", "z", "z"]
    lines = [f"root ::= {node(3, recursive)}", f"z ::= {node(3, recursive)}", "word-char ::= [ab]"]
    return "\n".join([*lines, f"x ::= {node(1, ACYCLIC)}", f"y ::= {node(1, ACYCLIC)}"])


TEXTS = ["".join(text) for length in range(5) for text in itertools.product("ab-", repeat=length)]


@pytest.mark.parametrize("seed", range(25))
def test_boundaries_against_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    used = 0
    for _ in range(12):
        source = random_grammar(rng)
        raw = read(source, extensions=True)
        rules = Rules("g", dict(raw.rules))
        without = parse(source, extensions=True)
        assert not any(isinstance(node, Boundary) for rule in without.rules.values() for node, _ in walk(rule.body))
        for text in rng.sample(TEXTS, 40):
            assert matches(without, text) == matches(rules, text, WORD), (source, text)
        used += without.rules is not rules.rules
    assert used


@pytest.mark.parametrize(
    ("text", "expected"),
    [("if x", True), ("if(x)", True), ("ifx", False), ("if", False), ("if  x", True), ("if(ify)", True),
     ("if if", False), ("ifé", False), ("if (if)", False), ("if_", False), ("if(x)(y", False)],
)  # fmt: skip
def test_keywords(text: str, expected: bool) -> None:
    grammar = r"""
        root ::= "if" \b ws expr
        expr ::= name | "(" ws expr ")"
        name ::= ([a-zé_] [a-zé0-9_]*) - keyword \b
        keyword ::= "if" | "else"
        ws ::= " "*
    """.replace("\n        ", "\n")
    assert accepted(text, grammar) == expected


def test_boundaries_are_exact_at_their_borders() -> None:
    for source, yes, no in [
        (r'"a" \b', ["a"], ["ab"]),
        (r'\b "a"', [], ["a"]),
        (r'\b "-" \b \b', ["-"], []),
        (r'"a" \b [^-]', ["a ", "a("], ["ab", "a-", "aé"]),
        (r'"a" \b "" "-"? "b"', ["a-b"], ["ab"]),
        (r'("a" \b "-"?)*', ["", "a", "a-", "a-a", "a-a-"], ["aa", "a--"]),
        (r'("a" \b ","){2,3}', ["a,a,", "a,a,a,"], ["a,", "a,a,a,a,"]),
        (r'("a" \b | "-" | "b"){0,3}', ["", "a", "a-b", "bba", "a-a"], ["ab", "aa", "a-ab"]),
        (r'"a" \b ([a-z-]+) - "-x"', ["a-", "a-xx"], ["a-x", "ab"]),
    ]:
        for text in yes:
            assert accepted(text, f"root ::= {source}"), (source, text)
        for text in no:
            assert not accepted(text, f"root ::= {source}"), (source, text)


def test_own_word_characters() -> None:
    grammar = 'root ::= "x" \\b [a-z0-9-]\nword-char ::= [a-z] | "-" | word-char2\n'
    assert accepted("x5", 'root ::= "x" \\b [a-z0-9-]\nword-char ::= [a-z] | "-"')
    assert not accepted("x-", 'root ::= "x" \\b [a-z0-9-]\nword-char ::= [a-z] | "-"')
    with pytest.raises(GrammarError, match=r"^g:2:1: rule 'word-char' is no character class"):
        parse(grammar + "word-char2 ::= [0]", "g", extensions=True)


def test_rules_without_boundaries_stay() -> None:
    rules = parse('root ::= a "x"\na ::= "y" a | "z" - "y"\nunused ::= "u"', extensions=True)
    assert eliminate(rules) is rules
    kept = parse('root ::= a "x" \\b\na ::= "y" a | "z"', extensions=True).rules["a"]
    assert kept.body == parse('root ::= a "x"\na ::= "y" a | "z"').rules["a"].body


def test_tokens_count_as_no_word_character() -> None:
    assert parse(r'root ::= "a" \b <[3]>', extensions=True).rules["root"].body == Sequence(
        (lit("a"), TokenRef(3, "<[3]>", False, 1, 17))
    )


@pytest.mark.parametrize(
    "source",
    [
        "root ::= " + r'"a" \b ' * 20_000,
        "root ::= " + r'"a" \b? ' * 2_000,
        "root ::= " + '"a"? ' * 2_000 + "\nr ::= \\b root",
        "root ::= \\b " + '"a"? ' * 10_000,
        "root ::= " + "(" * 30 + r'("a" \b | "-" | \b)' + "{0,30})" * 30,
        "root ::= " + "(" * 30 + r'("a" \b | "b"? | \b)' + "*)+" * 20 + ")" * 10,
        "\n".join(f'r{i} ::= "a"? \\b? r{i + 1} r{i + 1}' for i in range(1000)).replace("r0", "root")
        + '\nr1000 ::= "b"?',
    ],
    ids=["long", "optional", "unreached", "nullable", "counted", "starred", "chain"],
)
def test_hostile_boundaries_take_bounded_time(source: str) -> None:
    begin = time.process_time()
    try:
        size = sum(1 for rule in parse(source, extensions=True).rules.values() for _ in walk(rule.body))
    except GrammarError:
        size = 0
    assert size < 300_000
    assert time.process_time() - begin < 10


# --- templates ---


def test_templates() -> None:
    grammar = """
        root ::= "(" list<item, comma> ")" | pair<list<item, semi>, list<pair<item, item>, comma>>
        list<x, sep> ::= x (sep x)*
        pair<a, b> ::= "<" a b ">"
        item ::= [a-z]
        comma ::= ","
        semi ::= ";"
    """.replace("\n        ", "\n")
    rules = parse(grammar, extensions=True)
    assert set(rules.rules) == {
        *("root", "list<item,comma>", "list<item,semi>", "pair<item,item>", "list<pair<item,item>,comma>"),
        *("pair<list<item,semi>,list<pair<item,item>,comma>>", "item", "comma", "semi"),
    }
    for text, expected in [("(a,b)", True), ("(a;b)", False), ("<a;b<cd>,<ef>>", True), ("<a;b,c>", False)]:
        assert matches(rules, text) == expected


def test_recursive_templates_have_an_end() -> None:
    rules = parse('root ::= nest<x>\nnest<a> ::= "[" (nest<a> | a) "]"\nx ::= "x"', extensions=True)
    assert set(rules.rules) == {"root", "nest<x>", "x"}
    assert matches(rules, "[[x]]")


def test_positions_survive() -> None:
    rules = parse('root ::= t<x>\n\nt<a> ::= "-" a\nx ::= "x"', extensions=True)
    rule = rules.rules["t<x>"]
    assert (rule.line, rule.column) == (3, 1)
    assert rule.body == Sequence((lit("-"), RuleRef("x", 3, 14)))


def test_instances_and_levels_do_not_clash() -> None:
    rules = parse('root ::= t<1> t<indent> t<0>\nt<x> ::= x "."\n1 ::= "one"\n0 ::= "zero"', extensions=True)
    assert matches(rules, "one..zero.")


# --- levels ---

BLOCKS = """
root ::= block<indent>
block<i> ::= ( i line<i> )+
line<i> ::= "x\n" | "if\n" block<i+> | "do\n" block<i+2> | "{" i "}\n" | "one\n" line<i>
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x\n", True), (" x\n", False), ("if\n  x\n", True), ("if\n    x\n    x\nx\n", True),
        ("if\n    x\n  x\n", False),
        ("if\n  if\n   x\n", False), ("if\n  if\n    x\n  x\n", True), ("do\n  x\n", True), ("do\n    x\n", False),
        ("if\n  do\n    x\n", True), ("if\nx\n", False), ("if\n", False), ("if\n  {  }\n", True), ("if\n  {}\n", False),
        ("{}\n", True), ("one\none\nx\n", True), ("if\n    if\n      x\n", False),
    ],
)  # fmt: skip
def test_levels(text: str, expected: bool) -> None:
    assert accepted(text, BLOCKS, levels=("", "  ", "    ")) == expected


def test_levels_may_begin_anywhere() -> None:
    for text, expected in [("  x\n", True), ("x\n", False), ("  if\n\tx\n", False), ("  if\n  \tx\n", True)]:
        assert accepted(text, BLOCKS, levels=("  ", "\t", "  \t")) == expected


def test_default_levels() -> None:
    assert accepted("if\n        x\n", BLOCKS)
    assert not accepted("if\n  x\n", BLOCKS)
    raw = read(BLOCKS, extensions=True)
    assert raw.leveled()
    assert not raw.leveled("line")
    assert not read('root ::= indent\nindent ::= "a"', extensions=True).leveled()
    for levels in [(), tuple(" " * i for i in range(65))]:
        with pytest.raises(GrammarError, match="levels of indentation"):
            raw.rules_from(levels=levels)


def test_expansion_is_fast() -> None:
    lines = ["root ::= r0<indent>"]
    for k in range(150):
        others = " | ".join(
            f'"k{n}" ws r{n}<i> ( "," ws expr )* ":"' for n in (k + 1, (k * 7) % 150, (k * 13 + 5) % 150) if n < 150
        )
        lines.append(f'r{k}<i> ::= i "x{k}" ( ";" | {others} | r{(k * 3) % 150}<i+> ( ws "=" ws expr )? )')
    lines += ['ws ::= " "*', 'expr ::= [a-z]+ ( "+" expr )*']
    raw = read("\n".join(lines), extensions=True)
    levels = tuple("  " * i for i in range(16))
    raw.rules_from(levels=levels)
    begin = time.process_time()
    rules = raw.rules_from(levels=levels)
    took = time.process_time() - begin
    assert len(rules.rules) > 2400
    assert took < 2  # 0.05 on a quiet machine


# --- from the outside ---


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("json", ("json", None)),
        ("json:value", ("json", "value")),
        ("x.gbnf:value", ("x.gbnf", "value")),
        ("C:\\x.gbnf", ("C:\\x.gbnf", None)),
        ("C:\\x.gbnf:value", ("C:\\x.gbnf", "value")),
        ("C:/x.GBNF:value", ("C:/x.GBNF", "value")),
        ("jso:value", ("jso:value", None)),
        ("json:", ("json:", None)),
    ],
)
def test_start_in_the_name(name: str, expected: tuple[str, str | None]) -> None:
    assert split_start(name, None, {"json"}) == expected


def test_start_given_twice() -> None:
    assert split_start("json:value", "member", {"json"}) == ("json", "member")


def test_a_file_with_extensions_needs_leave(tmp_path: Path) -> None:
    path = tmp_path / "g.gbnf"
    path.write_text('root ::= t<x>\nt<a> ::= a "." \\b\nx ::= "x"')
    with pytest.raises(GrammarError, match="are an extension of GBNF; pass --extensions"):
        Grammar.load(path)
    for name, start, text in [(str(path), None, "x."), (f"{path}:x", None, "x"), (str(path), "x", "x")]:
        state = Grammar.load(name, start=start, extensions=True).state(byte_tokenizer())
        assert state.accept(text.encode()) == len(text)
        assert state.can_end
    with pytest.raises(GrammarError, match="there is no rule 'y'"):
        Grammar.load(f"{path}:y", extensions=True)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grammar, text = tmp_path / "g.gbnf", tmp_path / "t.txt"
    grammar.write_text('root ::= [a-z]+ - "if" \\b "."?')
    text.write_text("iff.")
    assert main(["grammar", "check", str(grammar)]) == 1
    assert "pass --extensions" in capsys.readouterr().out
    assert main(["grammar", "check", "--extensions", str(grammar)]) == 0
    assert main(["grammar", "accepts", "--extensions", str(grammar), str(text)]) == 0
    text.write_text("if.")
    assert main(["grammar", "accepts", "--extensions", str(grammar), str(text)]) == 1
    assert main(["grammar", "check", "--strict", "--extensions", str(grammar)]) == 1
    assert "llama.cpp refuses it" in capsys.readouterr().out


def test_token_elements_beside_extensions() -> None:
    text = 'root ::= t<x> !<control> "a" \\b <[98]> | <control>\nt<a> ::= a \\b\nx ::= "x"'
    grammar = Grammar.from_gbnf(text, extensions=True)
    assert grammar.needs_vocabulary
    state = grammar.state(small_tokenizer())
    assert state.allows(CONTROL)
    assert state.accept([ord("x"), CONTROL]) == 1
    assert state.accept([ord("-"), ord("a"), ord("b")]) == 3  # a token counts as no word character
    assert state.can_end
