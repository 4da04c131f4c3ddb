"""Suffix gates in JSON texts, over a vocabulary of bytes."""

import functools

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
