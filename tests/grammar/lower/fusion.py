"""Grammars made to break lexeme fusion, and the comparison of a grammar's languages however it is lowered.

For a long comparison, run ``python -m tests.grammar.lower.fusion --strings 100000``.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import llguidance

from benchmarks.grammar.oracle import Failure, judge
from codespec.grammar import GrammarError, byte_tokenizer
from codespec.grammar.gbnf.gbnf import parse
from codespec.grammar.lower.lower import lower
from codespec.grammar.rules import Rules
from tests import byte_vocabulary
from tests.grammar_fakes import matches

LETTERS = "abc"
LENGTH = 5
"""All texts over the letters up to this length are compared."""


_LIMITS = llguidance.LLParserLimits(step_max_items=1_000_000, max_items_in_row=100_000)


class TooAmbiguous(Exception):
    """A text can be read in more ways than the engine follows."""


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
    found = llguidance.LLMatcher(byte_tokenizer().raw, text, log_level=0, limits=_LIMITS)
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
            if engine.is_error():
                raise TooAmbiguous
            engine.rollback(taken[-1])
        if taken[0] != taken[1] or ends[0] != ends[1]:
            wrong.append(text)
        elif taken[0] == len(content) and len(text) < length:
            stack += [text + letter for letter in letters]
    return wrong, count


def texts(length: int = LENGTH - 1) -> list[str]:
    """All texts over the letters up to a length."""
    return ["".join(text) for n in range(length + 1) for text in itertools.product(LETTERS, repeat=n)]


def complete(rules: Rules) -> dict[str, bool]:
    """Of each of ``texts`` whether the fused grammar matches it.

    Raises:
        TooAmbiguous: as it says.
    """
    engine = matcher(rules, True)
    found = {}
    for text in texts():
        content = [*text.encode()]
        taken = engine.try_consume_tokens(content)
        found[text] = taken == len(content) and engine.is_accepting()
        if engine.is_error():
            raise TooAmbiguous
        engine.rollback(taken)
    return found


def against_llama_cpp(found: dict[str, dict[str, bool]], vocabulary: Path) -> tuple[list[tuple[str, str]], int]:
    """(source, text) on which llama.cpp's sampler disagrees, and how many texts it judged; it dies of some sources."""
    plain = [source for source in found if not re.search(r" - |\\b|!", source)]
    wrong, count = [], 0
    for source, verdicts in zip(plain, judge([(s, texts()) for s in plain], vocabulary, timeout=120), strict=True):
        if not isinstance(verdicts, Failure):
            count += len(verdicts)
            wrong += [
                (source, text)
                for text, verdict in zip(texts(), verdicts, strict=True)
                if verdict.complete != found[source][text]
            ]
    return wrong, count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strings", type=int, default=100_000, help="texts to hold against the definition")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    counts = dict.fromkeys(("grammars", "unfused", "definition", "llama.cpp", "too ambiguous"), 0)
    batch: dict[str, dict[str, bool]] = {}
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = byte_vocabulary.write(Path(folder) / "bytes.gguf")
        for source, rules in grammars(options.seed):
            try:
                wrong, count = differences(rules)
                batch[source] = complete(rules)
            except TooAmbiguous:
                counts["too ambiguous"] += 1
                continue
            wrong += [text for text, matched in batch[source].items() if matched != matches(rules, text)]
            if wrong:
                sys.exit(f"{source}\ndiffers on {wrong[:5]}")
            counts["grammars"] += 1
            counts["unfused"] += count
            counts["definition"] += len(batch[source])
            done = counts["definition"] >= options.strings
            if len(batch) == 50 or done:
                others, judged = against_llama_cpp(batch, vocabulary)
                if others:
                    sys.exit(f"{others[0][0]}\nllama.cpp differs on {[text for _, text in others[:5]]}")
                counts["llama.cpp"] += judged
                batch = {}
                print(f"\r{counts}", end="", file=sys.stderr, flush=True)
            if done:
                break
    print("\nno difference: " + ", ".join(f"{count} {name}" for name, count in counts.items()))


if __name__ == "__main__":
    main()
