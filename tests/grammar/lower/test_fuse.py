"""Fused lexemes keep the language: as the unfused grammar, the definition and llama.cpp have it; and this can fail."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from benchmarks.grammar.oracle import Failure, judge
from codespec.grammar import Grammar, byte_tokenizer
from codespec.grammar.gbnf.gbnf import parse
from codespec.grammar.lower import lexicon
from codespec.grammar.lower.lower import lexemes, lower
from tests import byte_vocabulary
from tests.grammar.lower.fusion import differences, grammars
from tests.grammar_fakes import matches


def test_random_grammars_keep_their_language() -> None:
    texts = fused = 0
    for source, rules in itertools.islice(grammars(seed=5), 30):
        wrong, count = differences(rules)
        assert not wrong, (source, wrong[:5])
        texts += count
        fused += lower(rules) != lower(rules, fused=False)
    assert texts > 3000
    assert fused > 20


def test_without_the_proof_they_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon.Lexicon, "extensions", lambda self, text, present: {})
    assert any(differences(rules)[0] for _, rules in itertools.islice(grammars(seed=5), 30))


def test_each_half_of_the_proof_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lexemes side by side, not just each with itself; and what follows, with all that a rule's users put there."""
    alone = lexicon.Lexicon.extensions

    def only_itself(self: lexicon.Lexicon, text: str, present: dict[str, int]) -> dict[str, int]:
        return {other: lead for other, lead in alone(self, text, present).items() if other == text}

    monkeypatch.setattr(lexicon.Lexicon, "extensions", only_itself)
    assert any(differences(rules)[0] for _, rules in itertools.islice(grammars(seed=5), 60))


def test_random_grammars_match_the_definition() -> None:
    checked = 0
    for source, rules in itertools.islice(grammars(seed=9), 25):
        state = Grammar.from_gbnf(source, extensions=True).state(byte_tokenizer())
        for length in range(4):
            for letters in itertools.product("abc", repeat=length):
                text = "".join(letters)
                taken = state.accept(text.encode())
                assert (taken == length and state.can_end) == matches(rules, text, "abc"), (source, text)
                state.rollback(taken)
                checked += 1
    assert checked == 25 * 40


def test_random_grammars_agree_with_llama_cpp(tmp_path: Path) -> None:
    vocabulary = byte_vocabulary.write(tmp_path / "bytes.gguf")
    sources = [
        source for source, _ in itertools.islice(grammars(seed=11), 60) if " - " not in source and "\\b" not in source
    ]
    texts = ["".join(letters) for length in range(4) for letters in itertools.product("abc", repeat=length)]
    judged = 0
    for source, verdicts in zip(sources, judge([(s, texts) for s in sources], vocabulary, timeout=30), strict=True):
        if isinstance(verdicts, Failure):
            continue  # left recursion, or exponentially many stacks
        state = Grammar.from_gbnf(source).state(byte_tokenizer())
        for text, verdict in zip(texts, verdicts, strict=True):
            taken = state.accept(text.encode())
            assert (taken == len(text) and state.can_end) == verdict.complete, (source, text)
            state.rollback(taken)
        judged += 1
    assert judged > 8


FUSIONS = [
    # Regular as a whole: one lexeme, whatever overlaps inside it.
    ('root ::= "a" "b" "c" | [ab]+ "d" | "(" root ")"', {"/([a][b][c]|[a-b]+[d])/", "/[\\u{28}]/", "/[\\u{29}]/"}),
    # What follows [a-z]+ cannot go on in it ...
    ('root ::= "(" root ")" | [a-z]+', {"/[\\u{28}]/", "/[\\u{29}]/", "/[a-z]+/"}),
    # ... and here it can, by the first byte at least.
    ('root ::= "(" root ")" | x root? "x"\nx ::= [a-z]+', {"/[\\u{28}]/", "/[\\u{29}]/", "/[a-z]/", "/[x]/"}),
    ('root ::= "é" root "è" | [é]+', {"/[\\u{e9}]/", "/[\\u{e8}]/"}),
]


@pytest.mark.parametrize(("source", "whole"), FUSIONS)
def test_rules_that_become_one_lexeme(source: str, whole: set[str]) -> None:
    found, _, given_up = lexemes(parse(source))
    assert set(found) == whole
    assert not given_up


def test_what_is_split_is_told() -> None:
    _, splits, _ = lexemes(
        parse('root ::= "(" root ")" | word " " root | "."\nword ::= [a-z]+ more\nmore ::= "" | "s" more ";"')
    )
    assert [(split.lexeme, split.rule, split.before, split.characters) for split in splits] == [
        ("/[a-z]+/", "word", "/[a-z]+/", "s")
    ]


def test_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon, "MAX_WORK", 50)
    source = 'root ::= "(" root ")" | [a-z]+ | [0-9]+'
    found, _, given_up = lexemes(parse(source))
    assert given_up
    assert "/[a-z]/" in found
