"""Suffix gates in JSON texts, over a vocabulary of bytes."""

import functools

import numpy as np

from codespec.completion.ending.suffix_gate import SuffixGate
from codespec.grammar import Grammar, byte_tokenizer

END = 256


class Bytes:
    """Token ``b`` is the byte ``b``; ``extra`` are longer ones."""

    def __init__(self, extra=()):
        self.extra = extra
        self.size = 257 + len(extra)
        self.end_tokens = frozenset((END,))

    def tokenize(self, text):
        return list(text.encode("utf-8", "replace"))

    def token_bytes(self, token):
        return bytes([token]) if token < END else b"" if token == END else self.extra[token - 257]


@functools.cache
def json_grammar():
    return Grammar.load("json")


def json_state(prefix=""):
    state = json_grammar().state(byte_tokenizer())
    assert state.accept(prefix.encode()) == len(prefix.encode())
    return state


def gate_at(text, **options):
    """The gate where ``|`` is in a JSON text."""
    prefix, _, suffix = text.partition("|")
    return SuffixGate(Bytes(), suffix, json_state(prefix), **options)


def allowed(state, size=257):
    """The tokens that may come, asked one by one."""
    return {token for token in range(size) if state.allows(token)}


def masked(state, size=257):
    """The tokens that may come, by the mask."""
    bits = np.zeros((size + 31) // 32, np.uint32)
    state.mask_into(bits)
    return {token for token in range(size) if bits[token // 32] >> np.uint32(token % 32) & 1}
