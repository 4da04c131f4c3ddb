"""Masks over token classes beside masks over all tokens of a vocabulary.

For all shipped grammars, and more, over a real vocabulary, along texts and random ways off them, run
``python -m tests.grammar.lower.masks VOCABULARY.gguf [GRAMMAR.gbnf…]``, with
``--tokens N`` and ``--seed N``.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import llguidance
import numpy as np

from benchmarks.grammar.texts import texts_for
from codespec.grammar import Grammar, shipped
from codespec.grammar.class_vocabulary import ClassVocabulary, choose
from codespec.grammar.compiled import LIMITS
from codespec.grammar.json.token_texts import members
from codespec.grammar.lower.lower import lower
from codespec.grammar.rules import Rules
from codespec.grammar.state import LlguidanceState
from codespec.grammar.tokenizer import Tokenizer
from codespec.llama.llguidance_tokenizer import tokenizer_from_vocab
from codespec.llama.model import Model
from codespec.protocols import Bits


def both(
    rules: Rules, tokenizer: Tokenizer, frequent: int = 0
) -> tuple[LlguidanceState, LlguidanceState, ClassVocabulary]:
    """A state over all tokens, one over token classes, and the vocabulary of these."""
    source = '%llguidance {"no_forcing": true}\n' + lower(rules)
    short = ClassVocabulary(tokenizer, *choose(rules, tokenizer, frequent))

    def matcher(raw: llguidance.LLTokenizer) -> llguidance.LLMatcher:
        found = llguidance.LLMatcher(raw, source, log_level=0, limits=LIMITS)
        assert not found.is_error(), found.get_error()
        return found

    plain = LlguidanceState(lambda: matcher(tokenizer.raw), tokenizer, "plain")
    return plain, LlguidanceState(lambda: matcher(short.raw), tokenizer, "short", False, short), short


class Comparison:
    """Two states that must agree at every step, taken together.

    Attributes:
        masks: how many were compared.
    """

    def __init__(self, states: Sequence[LlguidanceState], tokenizer: Tokenizer, seed: int = 1) -> None:
        self._states, self._size, self._random = list(states), tokenizer.size, random.Random(seed)
        self._bits: list[Bits] = [np.zeros((tokenizer.size + 31) // 32, np.uint32) for _ in states]
        self.masks = 0

    def mask(self) -> list[int]:
        """The tokens that may come next, from the mask; some of them, and others, are asked for one by one too."""
        for state, bits in zip(self._states, self._bits, strict=True):
            state.mask_into(bits)
        assert (self._bits[0] == self._bits[1]).all(), np.flatnonzero(self._bits[0] != self._bits[1])
        self.masks += 1
        allowed = members(self._bits[0])
        some = self._random.sample(allowed, min(4, len(allowed)))
        for token in some + [self._random.randrange(self._size) for _ in range(4)]:
            yes = bool(self._bits[0][token >> 5] >> np.uint32(token & 31) & 1)
            assert self._agreed([state.allows(token) for state in self._states]) == yes, token
            if not yes:
                assert self._agreed([state.accept([token]) for state in self._states]) == 0
        return allowed

    def accept(self, tokens: Sequence[int]) -> int:
        """How many are taken."""
        taken: int = self._agreed([state.accept(tokens) for state in self._states])
        return taken

    def rollback(self, count: int) -> None:
        """Undo tokens."""
        for state in self._states:
            state.rollback(count)

    def along(self, tokens: Sequence[int]) -> int:
        """Follow a text, and random ways off it; how many of its tokens are taken."""
        for count, token in enumerate(tokens):
            allowed = self.mask()
            taken = 0
            while allowed and taken < 3 and self._random.random() < 0.4:
                taken += self.accept([self._random.choice(allowed)])
                allowed = self.mask()
            self.rollback(taken)
            ahead = tokens[count : count + 8]
            self.rollback(self.accept(ahead))
            if self._random.random() < 0.1:
                self._states = [state.copy() for state in self._states]
            self._agreed([(state.forced(), state.can_end, state.finished) for state in self._states])
            if not self.accept([token]):
                return count
        return len(tokens)

    @staticmethod
    def _agreed(answers: Sequence[Any]) -> Any:
        assert answers[0] == answers[1], answers
        return answers[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("vocabulary", type=Path)
    parser.add_argument("grammars", nargs="*", type=Path, help="beside the shipped ones")
    parser.add_argument("--tokens", type=int, default=200, help="of each text")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rules = {name: Grammar.load(name).rules for name in shipped()}
    rules |= {path.name: Grammar.from_gbnf(path.read_text("utf-8"), path.name).rules for path in options.grammars}
    with Model(options.vocabulary, vocabulary_only=True) as model:
        tokenizer = tokenizer_from_vocab(model.vocabulary)
        for name, those in rules.items():
            assert those is not None
            *states, short = both(those, tokenizer)
            masks = 0
            for text in texts_for(Path(name).stem):
                comparison = Comparison([state.copy() for state in states], tokenizer, options.seed)
                comparison.along(model.vocabulary.tokenize(text)[: options.tokens])
                masks += comparison.masks
            print(f"{name}: {masks} masks alike, {short.raw.vocab_size} of {tokenizer.size} tokens", flush=True)


if __name__ == "__main__":
    main()
