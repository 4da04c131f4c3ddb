"""The GBNF front end on texts that nobody would write: a grammar or a GrammarError, soon."""

from __future__ import annotations

import os
import random
import re
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codespec.grammar import Grammar, GrammarError, byte_tokenizer, shipped
from codespec.grammar.gbnf.diagnose import diagnose
from codespec.grammar.gbnf.gbnf import parse
from codespec.grammar.rules import Boundary, walk

EXAMPLES = int(os.environ.get("CODESPEC_FUZZ", "150"))
SECONDS = 2 if EXAMPLES > 1000 else 10  # a machine that runs other tests beside may be slow
PIECES = [
    "root", "a", "b", "x-y", "_", "-", " - ", " ", "\n", "\r\n", "::=", " ::= ", "|", "(", ")", "*", "+", "?", "{2}",
    "{,3}", "{1,}", "{0,2000}", "{9,1}", '"a"', '"', '""', "[a-z]", "[^a]", "[z-a]", "[]", "[", "]", ".", "\\b", "\\x",
    "<", ">", ",", "<a>", "<i>", "<[3]>", "!<a>", "<a, b>", "<indent>", "<indent+>", "<i+2>", "indent", "word-char",
    "#", "# x\n", "\\", "\u0000", "é", "\U0001f600", "\ud800", "'", "=", ":", "{", "}", "!", "0", "root ::= ",
    "\nroot ::= ", '\na<i> ::= i "x" | a<i+>', "\na<x> ::= a<a<x>>", "\nb ::= b?", '\nx-y ::= "x" - a',
]  # fmt: skip
SOURCES = {name: path.read_text("utf-8") for name, path in shipped().items()}
TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|[\w-]+|::=|\s+|.', re.DOTALL)


def holds(text: str, **options: Any) -> None:
    """The front end takes the text or says what is wrong, and its rules are what later passes need."""
    begin = time.process_time()
    rules, refusal = None, None
    try:
        rules = parse(text, "g", **options)
    except GrammarError as error:
        refusal = error
    if refusal is not None:
        assert "\n" not in str(refusal)
        assert refusal.line <= text.count("\n") + 1
    known = rules.rules if rules else {}
    for rule in known.values():
        for node, _ in walk(rule.body):
            assert not isinstance(node, Boundary)
            assert not hasattr(node, "arguments")
            assert not hasattr(node, "name") or node.name in known
    diagnose(text, "g", **options)
    assert time.process_time() - begin < SECONDS, text[:500]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join), st.booleans(), st.booleans())
def test_pieces(text: str, extensions: bool, strict: bool) -> None:
    holds(text, extensions=extensions, strict=strict)
    holds("root ::= " + text, extensions=extensions, strict=strict)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.text(max_size=80))
def test_any_text(text: str) -> None:
    holds(text, extensions=True)


def mutated(source: str, rng: random.Random) -> str:
    """A few tokens of ``source`` dropped, doubled, swapped or replaced."""
    tokens = TOKENS.findall(source)
    for _ in range(rng.randint(1, 6)):
        at, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        kind = rng.randrange(5)
        if kind == 0:
            del tokens[at]
        elif kind == 1:
            tokens.insert(at, tokens[other])
        elif kind == 2:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif kind == 3:
            tokens[at] = rng.choice(PIECES)
        else:
            tokens[at : at + 1] = [tokens[at], *tokens[min(at, other) : min(at, other) + 30]]
    return "".join(tokens)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("part", range(2))
def test_mutations_of_shipped_grammars(name: str, part: int) -> None:
    rng = random.Random(f"{name} {part}")
    for _ in range(max(4, EXAMPLES // 15)):
        holds(mutated(SOURCES[name], rng), extensions=True, strict=rng.random() < 0.1)


@settings(max_examples=EXAMPLES // 3, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_what_is_taken_compiles(text: str) -> None:
    """Small grammars through the lowering and the engine too."""
    try:
        grammar = Grammar.from_gbnf("root ::= " + text, "g", extensions=True, levels=("", " ", "  "))
    except GrammarError:
        return
    if not grammar.needs_vocabulary:
        state = grammar.state(byte_tokenizer())
        assert state.can_end or any(state.allows(byte) for byte in range(256))
