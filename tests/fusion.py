"""Grammars made to break lexeme fusion, and the comparison of a grammar's languages however it is lowered.

Run as a program for a long comparison: ``python -m tests.fusion --strings 100000``.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator

import llguidance

from codespec.grammar import GrammarError, byte_tokenizer
from codespec.grammar.gbnf import parse
from codespec.grammar.lower import lower
from codespec.grammar.rules import Rules

LETTERS = "abc"
LENGTH = 5
"""All texts over the letters up to this length are compared."""


def random_grammar(rng: random.Random) -> str:
    """Tokens that overlap and extend each other, put together by rules that recurse, repeat and may be empty."""
    tokens = [f"t{i}" for i in range(rng.choice([2, 3, 4]))]
    rules = ["root", "x", "y"][: rng.choice([1, 2, 3])]
    lines = [f"{name} ::= {_choice(rng, rules, tokens, depth=2)}" for name in rules]
    lines += [f"{name} ::= {_token(rng)}" for name in tokens]
    return "\n".join(lines) + "\n"


def _token(rng: random.Random) -> str:
    word = '"' + "".join(rng.choice(LETTERS) for _ in range(rng.choice([1, 1, 2, 3]))) + '"'
    kinds = ["[ab]+", "[bc]+", "[a-c]{2}", "[^a]+", '"a"+', '"a" [bc]*', "[ab]* [c]", '("ab" | "a")', '("a" "b")+']
    kinds += ['"b"?', "[a]{0,2}", '([ab] | "cb")*', '"c" [^c]* "c"', '[ab]+ - "ab"', '([abc]+ - ("a" | "cc"))']
    return rng.choice([word, word, *kinds, *kinds])


def _choice(rng: random.Random, rules: list[str], tokens: list[str], depth: int) -> str:
    options = [_sequence(rng, rules, tokens, depth) for _ in range(rng.choice([1, 2, 2, 3]))]
    return " | ".join(options)


def _sequence(rng: random.Random, rules: list[str], tokens: list[str], depth: int) -> str:
    items = []
    for _ in range(rng.choice([1, 2, 2, 3])):
        kind = rng.random()
        if kind < 0.6:
            item = rng.choice(tokens)
        elif kind < 0.75:
            item = rng.choice([rng.choice(tokens) + " " + rng.choice(rules), f'"c" {rng.choice(rules)} "b"'])
        elif kind < 0.85 or depth == 0:
            item = rng.choice(['"a"', '"b"', "[ac]", '"bc"'])
        else:
            item = "(" + _choice(rng, rules, tokens, depth - 1) + ")" + rng.choice(["", "*", "+", "?", "{2}"])
        items.append(item + (rng.choice([" \\b", " ![b]", " ![^a]"]) if rng.random() < 0.12 else ""))
    return " ".join(items)


def grammars(seed: int) -> Iterator[tuple[str, Rules]]:
    """Random grammars that match some text, without end."""
    rng = random.Random(seed)
    while True:
        source = random_grammar(rng)
        try:
            rules = parse(source, extensions=True)
            lower(rules)
        except GrammarError:
            continue
        yield source, rules


def matcher(rules: Rules, fused: bool) -> llguidance.LLMatcher:
    """The engine at the start of a grammar, lowered with or without fusion."""
    text = '%llguidance {"no_forcing": true}\n' + lower(rules, fused=fused)
    found = llguidance.LLMatcher(byte_tokenizer().raw, text, log_level=0)
    assert not found.is_error(), found.get_error()
    return found


def differences(rules: Rules, letters: str = LETTERS, length: int = LENGTH) -> tuple[list[str], int]:
    """Texts of which the fused and the unfused grammar disagree whether they may begin or end so, of how many."""
    engines = matcher(rules, True), matcher(rules, False)
    wrong: list[str] = []
    count = 0
    stack = [""]
    while stack:
        text = stack.pop()
        count += 1
        content = [*text.encode()]
        taken, ends = [], []
        for engine in engines:
            taken.append(engine.try_consume_tokens(content))
            ends.append(engine.is_accepting())
            engine.rollback(taken[-1])
        if taken[0] != taken[1] or ends[0] != ends[1]:
            wrong.append(text)
        elif taken[0] == len(content) and len(text) < length:
            stack += [text + letter for letter in letters]
    return wrong, count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strings", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    checked = used = fusions = 0
    for source, rules in grammars(options.seed):
        wrong, count = differences(rules)
        if wrong:
            sys.exit(f"{source}\ndiffers on {wrong[:5]}")
        checked, used = checked + count, used + 1
        fusions += lower(rules) != lower(rules, fused=False)
        if used % 100 == 0:
            print(f"\r{used} grammars, {checked} strings", end="", file=sys.stderr, flush=True)
        if checked >= options.strings:
            break
    print(f"\n{used} grammars ({fusions} with fused lexemes), {checked} strings: no difference")


if __name__ == "__main__":
    main()
