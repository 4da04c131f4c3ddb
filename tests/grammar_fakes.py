"""Grammar engines and vocabularies simple enough to be trusted, to hold the real ones against."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Sequence

import llguidance

from codespec.grammar.rules import Boundary, CharClass, Choice, Except, Literal, Node, Repeat, RuleRef, Rules
from codespec.grammar.rules import Sequence as Series
from codespec.grammar.tokenizer import Tokenizer
from codespec.protocols import Bits

TOKENS: tuple[bytes, ...] = (
    *(bytes([byte]) for byte in range(256)),
    *(b"ab", b"abc", b"bc", b"aa", b"aaa", b"a,", b'"a', "é".encode(), "éa".encode(), b"\xa9a", b" \n", b"10"),
    b"",
    b"<control>",
    b"<end>",
    b"<stop>",
)
"""Bytes, pieces that cross characters, one token without text, one control token, two end tokens."""

EMPTY, CONTROL, *ENDS = range(len(TOKENS) - 4, len(TOKENS))


class _Pieces:
    eos_token_id = ENDS[0]
    bos_token_id = None
    tokens = TOKENS
    special_token_ids = (CONTROL, *ENDS)

    def __call__(self, text: bytes | str) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)


@functools.cache
def small_tokenizer() -> Tokenizer:
    """The vocabulary above for llguidance."""
    raw = llguidance.LLTokenizer(
        llguidance.TokenizerWrapper(_Pieces()), n_vocab=len(TOKENS), eos_token=list(ENDS), slices=[]
    )
    names = {TOKENS[token].decode(): token for token in (CONTROL, *ENDS)}
    return Tokenizer(
        raw, ENDS, frozenset({EMPTY, CONTROL}), lambda text: [names[text]] if text in names else list(text.encode())
    )


class SetState:
    """A grammar that is a list of texts: what may come next is found by looking at all of them."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        self._texts = frozenset(texts)
        self._taken: list[int] = []

    @property
    def _text(self) -> bytes:
        return b"".join(b"" if token in ENDS else TOKENS[token] for token in self._taken)

    @property
    def _ended(self) -> bool:
        return bool(self._taken) and self._taken[-1] in ENDS

    def copy(self) -> SetState:
        other = SetState(self._texts)
        other._taken = self._taken.copy()
        return other

    def __deepcopy__(self, memo: dict[int, object]) -> SetState:
        return self.copy()

    def accept(self, tokens: Sequence[int]) -> int:
        for count, token in enumerate(tokens):
            if not self.allows(token):
                return count
            self._taken.append(token)
        return len(tokens)

    def allows(self, token: int) -> bool:
        if self._ended or not 0 <= token < len(TOKENS) or token in (EMPTY, CONTROL):
            return False
        if token in ENDS:
            return self.can_end
        return any(text.startswith(self._text + TOKENS[token]) for text in self._texts)

    def mask_into(self, bits: Bits) -> None:
        if bits.shape != ((len(TOKENS) + 31) // 32,):
            raise ValueError("wrong size")
        bits[:] = 0
        for token in range(len(TOKENS)):
            if self.allows(token):
                bits[token // 32] |= 1 << (token % 32)

    def rollback(self, n: int) -> None:
        if not 0 <= n <= len(self._taken):
            raise ValueError(n)
        del self._taken[len(self._taken) - n :]

    def forced(self) -> bytes:
        left = [text[len(self._text) :] for text in self._texts if text.startswith(self._text)]
        if self._ended or not left:
            return b""
        return os.path.commonprefix(left) or b""  # noqa: RUF071 - of characters is what is meant

    @property
    def can_end(self) -> bool:
        return self._text in self._texts

    @property
    def finished(self) -> bool:
        return self._ended or (self.can_end and all(self._text == t for t in self._texts if t.startswith(self._text)))


def matches(rules: Rules, text: str, word: str = "") -> bool:
    """Whether ``text`` matches: the least fixed point of "rule r matches text[i:j]", computed as it is defined.

    ``word`` holds the word characters, for boundaries.
    """
    definition = _Definition(rules, [ord(character) for character in text], {ord(character) for character in word})
    return len(text) in definition.solve()[rules.root, 0]


class _Definition:
    def __init__(self, rules: Rules, codes: list[int], word: set[int]) -> None:
        self._rules, self._codes, self._word = rules, codes, word
        self._known = {(name, start): frozenset[int]() for name in rules.rules for start in range(len(codes) + 1)}

    def solve(self) -> dict[tuple[str, int], frozenset[int]]:
        changed = True
        while changed:
            changed = False
            for (name, start), ends in self._known.items():
                found = self._ends(self._rules.rules[name].body, start)
                if found != ends:
                    self._known[name, start] = found
                    changed = True
        return self._known

    def _ends(self, node: Node, start: int, inside: bool = False) -> frozenset[int]:
        """Where ``node`` may end; ``inside`` a subtraction, what is known of rules so far is not enough."""
        codes = self._codes
        if isinstance(node, Literal):
            end = start + len(node.code_points)
            return frozenset([end] if tuple(codes[start:end]) == node.code_points else [])
        if isinstance(node, CharClass):
            hit = start < len(codes) and any(low <= codes[start] <= high for low, high in node.ranges) != node.negated
            return frozenset([start + 1] if hit else [])
        if isinstance(node, Boundary):
            barred = node.barred
            hit = start < len(codes) and (
                codes[start] in self._word if barred is None else bool(self._ends(barred, start))
            )
            return frozenset([] if hit else [start])
        if isinstance(node, Except):
            return self._ends(node.item, start, True) - self._ends(node.excluded, start, True)
        if isinstance(node, RuleRef):
            return (
                self._ends(self._rules.rules[node.name].body, start, True) if inside else self._known[node.name, start]
            )
        if isinstance(node, Series):
            at = frozenset([start])
            for item in node.items:
                at = frozenset(end for here in at for end in self._ends(item, here, inside))
            return at
        if isinstance(node, Choice):
            return frozenset(end for option in node.options for end in self._ends(option, start, inside))
        assert isinstance(node, Repeat)
        return self._repeated(node, start, inside)

    def _repeated(self, node: Repeat, start: int, inside: bool) -> frozenset[int]:
        at, result, count = frozenset([start]), frozenset([start] if node.min == 0 else []), 0
        seen = set()
        while at and (node.max is None or count < node.max) and not (count >= node.min and at in seen):
            seen.add(at)
            at = frozenset(end for here in at for end in self._ends(node.item, here, inside))
            count += 1
            if count >= node.min:
                result |= at
        return result
