"""Vocabularies for grammars: one without a model, and the tokens that a grammar names."""

from __future__ import annotations

import functools

import llguidance

from codespec.grammar.errors import GrammarError
from codespec.grammar.rules import TokenRef
from codespec.llama.llguidance_tokenizer import Tokenizer

__all__ = ["Tokenizer", "byte_tokenizer", "token_ranges"]


def token_ranges(tokenizer: Tokenizer, ref: TokenRef) -> list[tuple[int, int]]:
    """The inclusive ranges of token ids that a grammar's token element stands for.

    A negated element stands for every other token that has text. Naming an end token is an error: end tokens
    come where the grammar is complete, and nowhere else.

    Raises:
        GrammarError: the element is not exactly one token of this vocabulary, or an end token.
    """
    ids = list(tokenizer.tokenize(ref.text)) if ref.id is None else [ref.id]
    if len(ids) != 1 or not 0 <= ids[0] < tokenizer.size:
        cause = f"{ref.text} is not one token of this model" + (f" but {len(ids)}" if len(ids) != 1 else "")
        raise GrammarError("grammar", cause, f"ids run from 0 to {tokenizer.size - 1}", ref.line, ref.column)
    token = ids[0]
    if ref.negated:
        return _gaps(sorted(tokenizer.barred | {token}), tokenizer.size)
    if token in tokenizer.end_tokens:
        remedy = "leave it out: the text ends where the grammar is complete"
        raise GrammarError("grammar", f"{ref.text} is an end token", remedy, ref.line, ref.column)
    return [(token, token)]


def _gaps(holes: list[int], size: int) -> list[tuple[int, int]]:
    """The ranges of 0..size-1 between the sorted ``holes``."""
    ranges = []
    start = 0
    for hole in [*holes, size]:
        if start < hole:
            ranges.append((start, hole - 1))
        start = hole + 1
    return ranges


class _Bytes:
    """A tokenizer for llguidance: 256 one-byte tokens, an end token, and control tokens that no grammar produces."""

    eos_token_id = 256
    bos_token_id = None

    def __init__(self, controls: int) -> None:
        names = (f"<control {index}>".encode() for index in range(controls))
        self.tokens = (*(bytes([value]) for value in range(256)), b"<end>", *names)
        self.special_token_ids = tuple(range(256, len(self.tokens)))

    def __call__(self, text: bytes | str) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)


@functools.cache
def byte_tokenizer(controls: int = 0) -> Tokenizer:
    """A vocabulary without a model: token ``b`` is the byte ``b``, token 256 the end; control tokens follow.

    Args:
        controls: how many.
    """
    size = 257 + controls
    wrapper = llguidance.TokenizerWrapper(_Bytes(controls))
    raw = llguidance.LLTokenizer(wrapper, n_vocab=size, eos_token=[256], slices=[])
    barred = frozenset(range(257, size))
    return Tokenizer(raw, [256], barred, lambda text: [256] if text == "<end>" else list(text.encode()))
