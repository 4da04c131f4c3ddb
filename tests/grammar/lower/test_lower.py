"""The lowered grammar has the language of the source: against upstream's cases, a definition, and llama.cpp itself."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.grammar.oracle import Failure, Verdict, judge
from codespec.grammar import Grammar, GrammarError, byte_tokenizer
from codespec.grammar.gbnf.gbnf import parse
from codespec.grammar.lower.lower import lower
from codespec.protocols import CodespecError
from tests import byte_vocabulary
from tests.grammar_fakes import matches

CASES = [
    case
    for case in json.loads(Path(__file__).parents[2].joinpath("data", "gbnf_upstream.json").read_text("utf-8"))
    if case["kind"] == "grammar"
]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return byte_vocabulary.write(tmp_path_factory.mktemp("oracle") / "bytes.gguf")


def verdict(grammar: Grammar, text: str) -> Verdict:
    """The oracle's question, asked of our engine."""
    state = grammar.state(byte_tokenizer())
    content = text.encode()
    taken = state.accept(content)
    if taken == len(content):
        return Verdict(state.can_end, None)
    return Verdict(False, len(content[:taken].decode("utf-8", "ignore")))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_upstream_cases(case: dict[str, list[str]]) -> None:
    grammar = Grammar.from_gbnf(str(case["source"]))
    for text in case["accept"]:
        assert verdict(grammar, text).complete, text
    for text in case["reject"]:
        assert not verdict(grammar, text).complete, text


FINE_POINTS = [
    (r'root ::= "\xE9" | [^\u0000-\uFFFF]', ["é", "\U0001f600", "e", "\u20ac", ""]),
    ("root ::= [z-a] | [] [^] | .", ["", "a", "\n", "é", "z"]),
    ("root ::= [^a-c] .", ["\n\n", "da", "ad", "é\U0001f600", "d"]),
    (r"root ::= [a\-z] [a-] [-a]", ["---", "zaa", "bba", "a-a", "aba"]),
    ('root ::= "ab"{2}* "c"{0} ("d"{1,2}){2}', ["dd", "ababdddd", "abdd", "ababd", "dddd", "ddddd", "ababab"]),
    ('root ::= "a" "b" "c" | [ab]+ "d"', ["abc", "abd", "ab", "abbd", "abcd"]),  # fusing [ab]+ would lose abc
    ('root ::= [a-z]+ "end"', ["xend", "endend", "end", "enden", "xyzend"]),
    ('root ::= "/*" ( [^*] | "*" [^/] )* "*/"', ["/**/", "/* * */", "/***/", "/*x*", "/* **/"]),
    ('root ::= (("a" | "c")* "b")*', ["", "ab", "bb", "a", "aabcb"]),
    ("root ::= a-b\na-b ::= A-b\nA-b ::= [x]*\nA-b ::= 1st\n1st ::= [y]", ["y", "x", ""]),
]


def test_agrees_with_llama_cpp(vocabulary: Path) -> None:
    cases = [(case["source"], [*case["accept"], *case["reject"]]) for case in CASES] + FINE_POINTS
    for (source, texts), verdicts in zip(cases, judge(cases, vocabulary), strict=True):
        assert not isinstance(verdicts, Failure), (source, verdicts)
        grammar = Grammar.from_gbnf(source)
        for text, theirs in zip(texts, verdicts, strict=True):
            assert verdict(grammar, text) == theirs, (source, text)


def random_grammar(rng: random.Random, left_recursive: bool) -> str:
    """Up to three rules over a, b, c; without ``left_recursive`` a rule refers back only after a character."""
    names = ["root", "x", "y"][: rng.choice([1, 2, 3, 3])]

    def node(depth: int, at: int) -> str:
        kind = rng.random()
        if depth == 0 or kind < 0.3:
            which = rng.random()
            if which < 0.35:
                return '"' + "".join(rng.choice("abc") for _ in range(rng.choice([0, 1, 1, 2, 3]))) + '"'
            if which < 0.6:
                return rng.choice(["[ab]", "[^a]", "[b-c]", ".", "[z-a]", "[a-]", "[^ab]", "[^b-z]"])
            if left_recursive:
                return rng.choice(names)
            target = rng.randrange(len(names))
            return names[target] if target > at else f"{rng.choice(['[ab]', '[c]'])} {names[target]}"
        if kind < 0.55:
            return " ".join(node(depth - 1, at) for _ in range(rng.choice([1, 2, 2, 3])))
        if kind < 0.75:
            return "(" + " | ".join(node(depth - 1, at) for _ in range(rng.choice([2, 2, 3]))) + ")"
        suffix = rng.choice(["*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}", "{0}"])
        return f"({node(depth - 1, at)} {suffix if left_recursive else ''}){'' if left_recursive else suffix}"

    lines = []
    for at, name in enumerate(names):
        options = " | ".join(node(rng.choice([1, 2, 3]), at) for _ in range(rng.choice([1, 2, 3])))
        lines.append(f"{name} ::= {options}\n")
    return "".join(lines)


def probes(rng: random.Random, grammar: Grammar) -> list[str]:
    """Random texts, and some that walk along the grammar."""
    texts = {"".join(rng.choice("abcd") for _ in range(rng.randrange(7))) for _ in range(6)}
    for _ in range(5):
        state, text = grammar.state(byte_tokenizer()), ""
        for _ in range(6):
            options = [c for c in "abcd" if state.allows(ord(c))]
            if not options:
                break
            text += rng.choice(options)
            state.accept([ord(text[-1])])
        texts.add(text)
    return sorted(texts)


@pytest.mark.parametrize("left_recursive", [False, True])
def test_random_grammars_match_the_definition(left_recursive: bool) -> None:
    rng = random.Random(7 + left_recursive)
    usable = 0
    for _ in range(150):
        source = random_grammar(rng, left_recursive)
        rules = parse(source)
        try:
            grammar = Grammar.from_gbnf(source)
        except GrammarError as error:
            assert "no text matches 'root'" in str(error)  # noqa: PT017
            assert not any(matches(rules, text) for text in ("", "a", "b", "c", "ab", "ba", "abc"))
            continue
        usable += 1
        for text in probes(rng, grammar):
            assert verdict(grammar, text).complete == matches(rules, text), (source, text)
    assert usable > 80


def test_random_grammars_agree_with_llama_cpp(vocabulary: Path) -> None:
    """One direction of viability only: we refuse at once what llama.cpp lets run into a dead end."""
    rng = random.Random(4)
    cases, ours = [], []
    while len(cases) < 60:
        source = random_grammar(rng, left_recursive=False)
        try:
            grammar = Grammar.from_gbnf(source)
        except GrammarError:
            continue
        texts = probes(rng, grammar)
        cases.append((source, texts))
        ours.append([verdict(grammar, text) for text in texts])
    judged = 0
    for (source, texts), mine, theirs in zip(cases, ours, judge(cases, vocabulary, timeout=20), strict=True):
        if isinstance(theirs, Failure):
            continue  # left recursion through something that may be empty, or exponentially many stacks
        judged += 1
        for text, a, b in zip(texts, mine, theirs, strict=True):
            assert a.complete == b.complete, (source, text)
            assert b.refused_at is None or (a.refused_at is not None and a.refused_at <= b.refused_at), (source, text)
    assert judged > 45


def test_every_prefix_that_is_allowed_can_be_completed() -> None:
    grammar = Grammar.from_gbnf('root ::= "a" dead | "a" "b" | "c" [z-a]\ndead ::= "x" dead')
    state = grammar.state(byte_tokenizer())
    assert [chr(b) for b in range(256) if state.allows(b)] == ["a"]
    state.accept(b"a")
    assert [chr(b) for b in range(256) if state.allows(b)] == ["b"]
    with pytest.raises(GrammarError, match="g:1:1: no text matches 'root'; give every recursive rule an alternative"):
        Grammar.from_gbnf('root ::= "a" root', "g")


@pytest.mark.parametrize(
    ("source", "lowered"),
    [
        ('root ::= "a" root | "b"', "r0: T0* T1"),
        ('root ::= "a" root?', "r0: T0* T0"),
        ('root ::= root "a" | "b"', "r0: (T0 | r0 T1)"),
        ('root ::= "(" root ")" | "x" root | "y"', "r0: T0* (T1 | T2 r0 T3)"),
        ('root ::= root "+" root | [0-9]', "r0: (T0 | r0 T1 r0)"),
        ("root ::= ([a-z]{0,40}){0,40}", "r0: T0{0,1600}"),
        ("root ::= ((([a-z]?)+)*)+", "r0: T0*"),
        ('root ::= ("a"* | "b"+ | [cd])*', "r0: T0*"),
        ("root ::= x*\nx ::= y+\ny ::= [ab]", "r0: T0*"),
        ('root ::= "a" | "c" | [b-c]', "r0: T0"),
    ],
)
def test_rewrites(source: str, lowered: str) -> None:
    assert lowered in lower(parse(source), fused=False).splitlines()


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('root ::= "a" root | ""', "a" * 20_000),
        ('root ::= item rest\nitem ::= [0-9]+\nrest ::= "," root | ""', "1," * 10_000 + "1"),
        ('root ::= "\\"" rest\nrest ::= "\\"" | [^"\\\\] rest | "\\\\" . rest', '"' + 'a\\"' * 5_000 + '"'),
        ("root ::= x*\nx ::= y*\ny ::= [a-z]", "a" * 10_000),
        ('root ::= "a" b | "z"\nb ::= "b" c | "z"\nc ::= "c" root | "z"', "abc" * 5_000 + "z"),
    ],
    ids=["self", "list", "string", "stars", "three"],
)
def test_long_texts_stay_within_the_engines_limits(source: str, text: str) -> None:
    assert verdict(Grammar.from_gbnf(source), text).complete


def chain(length: int, last: str) -> str:
    return (
        "\n".join(f'{f"r{i}" if i else "root"} ::= "a" r{i + 1} | "b"' for i in range(length))
        + f"\nr{length} ::= {last}"
    )


@pytest.mark.parametrize(
    ("source", "text", "complete"),
    [
        ('root ::= a\na ::= b a "x" | "x"\nb ::= ""', "xxx", True),
        ("root ::= ([a-z]{0,40}){0,40}", "a" * 1600, True),
        ("root ::= ([a-z]{0,40}){0,40}", "a" * 1601, False),
        ('root ::= ((("a"{2000}){2000}){2000}){2000}', "a" * 3000, False),
        (chain(1990, '"c"'), "a" * 1990 + "c", True),
        (chain(1990, "root"), "a" * 1500 + "b", True),
        ("root ::= root root | [a-c] | root", "abc" * 20, True),
        ("root ::= (((((.)*)*)+)?)*", "x" * 3000, True),
        ("root ::= (x y)*\nx ::= [a-z]*\ny ::= [a-z]*", "a" * 3000, True),
    ],
    ids=["hidden-left", "nested", "nested-over", "powers", "chain", "ring", "ambiguous", "stars", "two-stars"],
)
def test_hostile_grammars_that_work(source: str, text: str, complete: bool) -> None:
    begin = time.process_time()
    assert verdict(Grammar.from_gbnf(source), text).complete == complete
    assert time.process_time() - begin < 20


AMBIGUOUS = 'root ::= (x y)*\nx ::= [a-z]* | "(" x ")"\ny ::= [a-z]* | "(" y ")"'


@pytest.mark.parametrize(
    ("source", "text", "message"),
    [
        ('root ::= "' + "a" * 100_000 + '"', "a", "the grammar has 100001 elements, at most 60000"),
        (AMBIGUOUS, "a" * 3000, "the text can be read in too many ways"),
        ('root ::= ("ab"? "c"?){0,2000}', "abc" * 1500, "the text can be read in too many ways"),
    ],
)
def test_hostile_grammars_that_do_not(source: str, text: str, message: str) -> None:
    begin = time.process_time()
    with pytest.raises(CodespecError, match=message) as caught:
        verdict(Grammar.from_gbnf(source), text)
    assert "\n" not in str(caught.value)
    assert time.process_time() - begin < 30


def test_oracle_survives_what_kills_llama_cpp(vocabulary: Path) -> None:
    cases = [
        ('root ::= "a"', ["a", "b", "aa", "\x00"]),
        ("root ::= nothing", ["a"]),
        ("root ::= " + "(" * 20_000, ["a"]),
        ('root ::= "é"', ["é", "e"]),
    ]
    first, second, third, fourth = judge(cases, vocabulary, timeout=30)
    assert first == [Verdict(True, None), Verdict(False, 0), Verdict(False, 1), Verdict(False, 0)]
    assert second == Failure("llama.cpp refuses the grammar")
    assert isinstance(third, Failure)
    assert fourth == [Verdict(True, None), Verdict(False, 0)]
    assert isinstance(judge([('root ::= "a"{3,1}', ["a"])], vocabulary, timeout=3)[0], Failure)
    assert isinstance(judge([('root ::= "a"', ["a"])], Path("missing.gguf"))[0], Failure)


class TestShippedJson:
    grammar = Grammar.load("json")

    @pytest.mark.parametrize(
        "text",
        [
            "0", "-0.5e+10", '""', "null", "[]", "{}", " [1, 2 , 3]\n", '{"a" : {"b":[true,false]}}\r\n',
            '"\\ud83d\\ude00 \\u0041 \\/ é 😀 \x7f"', "1234567890123456789", "0.12345678901234567",
            '"\\ud83d"', '"\\ude00\\ud83d"', "[" + " " * 200 + "\n" * 9 + "]",
            json.dumps({"a": [1, {"b": [2.5, None, "x"]}]}, indent=4), '{\n\n\t"a": 1\n}\n',
        ],
    )  # fmt: skip
    def test_accepts(self, text: str) -> None:
        json.loads(text)
        assert verdict(self.grammar, text).complete

    @pytest.mark.parametrize(
        "text",
        [
            "", "01", "+1", "1.", ".5", "NaN", "[1,]", "{,}", "{'a': 1}", '{"a"}', '"\t"', '"\\x41"',
            "[1 2]", "nul", "tru e", '"a', "[[]", "1 2", "// x\n1", "\ufeff1",
        ],
    )  # fmt: skip
    def test_refuses(self, text: str) -> None:
        assert not verdict(self.grammar, text).complete

    def test_everything_sampled_is_json(self) -> None:
        """Random walks that lean towards closing what is open."""
        complete = 0
        bits = np.zeros(9, np.uint32)
        for seed in range(60):
            rng = random.Random(seed)
            state, text = self.grammar.state(byte_tokenizer()), bytearray()
            while not state.finished and len(text) < 400:
                state.mask_into(bits)
                allowed = [b for b in range(257) if bits[b // 32] >> np.uint32(b % 32) & 1]
                if 256 in allowed and rng.random() < 0.2:
                    break
                closers = [b for b in allowed if b < 256 and b in b'"]},:tfn0u\\']
                byte = rng.choice(closers if closers and rng.random() < 0.5 else [b for b in allowed if b < 256])
                assert state.accept([byte]) == 1
                text.append(byte)
            if state.can_end:
                json.loads(text.decode())
                complete += 1
        assert complete > 40
