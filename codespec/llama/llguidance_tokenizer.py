"""The vocabulary of a loaded model as a tokenizer of llguidance."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import llguidance
import numpy as np

from codespec.llama.runtime import library

if TYPE_CHECKING:
    from codespec.llama.model import LlamaVocabulary

_SPECIAL_MARK = b"\xff"  # llguidance takes a token that starts with this byte, which no UTF-8 holds, as special

# Sets of tokens whose masks llguidance computes beforehand, used where a lexeme takes every text of the set: its own
# are for JSON strings; names make a mask in source code ten times as fast (345 to 20 µs at 152,000 tokens).
_NAME = "[a-zA-Z_][a-zA-Z0-9_]*"
# Letters that names may hold in every shipped grammar. They need one set with the others: beside a set of their own,
# masks of names with letters of all scripts take 4 times as long (1,000 instead of 230 µs).
_LETTERS = "".join(
    f"\\u{{{low}}}-\\u{{{high}}}"
    for low, high in (
        *(("c0", "d6"), ("d8", "f6"), ("f8", "2c1"), ("370", "167f"), ("1681", "1fff")),
        *(("3041", "d7ff"), ("f900", "fdff")),
    )
)
_WORD = f"[a-zA-Z_{_LETTERS}][a-zA-Z0-9_{_LETTERS}]*"
_NAMES = ["[a-z]+", "[a-z][a-z0-9_]*", _NAME, _WORD, " " + _NAME]
# The text of comments and strings, whatever ends them. Only with this before them do the sets for JSON strings leave
# llguidance's search enough room to find names in a comment (100 instead of 1,700 µs).
_TEXT = "[^\"'`*/\\\\{}$<>#\\x00-\\x1F\\x7F]+"


def _slices() -> list[str]:
    # The two left out are for strings of a bounded length, see ``Tokenizer.for_json``.
    space, _, _, string = llguidance.LLTokenizer.general_slices()
    return [space, *_NAMES, _TEXT, string]


class Tokenizer:
    """One vocabulary, built once and shared by every grammar and state of its model.

    Attributes:
        raw: llguidance's own object.
        size: number of tokens.
        end_tokens: every token that ends a generation, in order.
        barred: tokens that no grammar may produce as text: control tokens, end tokens and those without text.
        end_bits: the words of a mask that hold end tokens, and the end tokens' bits in them.
        tokenize: the tokens of a text in which the names of special tokens mean those tokens.
        digest: the same for vocabularies with the same tokens; empty where that is not known.
    """

    def __init__(
        self,
        raw: llguidance.LLTokenizer,
        end_tokens: Sequence[int],
        barred: frozenset[int],
        tokenize: Callable[[str], Sequence[int]],
        digest: str = "",
    ) -> None:
        self.raw = raw
        self.size: int = raw.vocab_size
        self.end_tokens = tuple(sorted(set(end_tokens)))
        words = sorted({token >> 5 for token in end_tokens})
        self.end_bits = [
            (word, np.uint32(sum(1 << (t & 31) for t in self.end_tokens if t >> 5 == word))) for word in words
        ]
        self.barred = barred | frozenset(end_tokens)
        self.tokenize = tokenize
        self.digest = digest

    @cached_property
    def for_json(self) -> llguidance.LLTokenizer:
        """The same for JSON Schemas, whose strings may be bounded: a mask in those takes 50 instead of 1,700 µs."""
        return self.raw.with_slices(llguidance.LLTokenizer.json_slices())


def tokenizer_from_vocab(vocabulary: LlamaVocabulary) -> Tokenizer:
    """The tokens of a loaded model's vocabulary for grammars.

    Takes half a second at 150,000 tokens: build one per model and keep it. The model must stay open as long as the
    tokenizer is used.

    llguidance's own converter takes only control tokens as special. Here everything is that llama.cpp ends a
    generation with, or marks as unknown or unused, so that no grammar can produce its name as text.
    """
    api = library()
    special = api.LLAMA_TOKEN_ATTR_CONTROL | api.LLAMA_TOKEN_ATTR_UNKNOWN | api.LLAMA_TOKEN_ATTR_UNUSED
    user_defined = api.LLAMA_TOKEN_ATTR_USER_DEFINED
    vocab, ends = vocabulary.pointer, sorted(vocabulary.declared_ends)
    tokens: list[bytes] = []
    barred: set[int] = set()
    for token, (text, attributes) in enumerate(zip(vocabulary.texts, vocabulary.attributes, strict=True)):
        marker = attributes & user_defined and text.startswith(b"<") and text.endswith(b">")
        is_special = marker or attributes & special or token in vocabulary.declared_ends
        if is_special or not text:
            barred.add(token)
        tokens.append(_SPECIAL_MARK + text if is_special else text)
    function = ctypes.cast(api._lib.llama_tokenize, ctypes.c_void_p).value
    eos = ends or [int(api.llama_vocab_eos(vocab))]
    raw = llguidance.LLTokenizer.from_llamacpp(
        tokens=tokens, vocab_ptr=vocab, tokenize_fptr=function, eos_token=eos, slices=_slices()
    )
    return Tokenizer(raw, eos, frozenset(barred), lambda text: _tokenize(api, vocab, text), _digest(tokens, eos))


def _digest(tokens: Sequence[bytes], ends: Sequence[int]) -> str:
    total = hashlib.sha256(repr((list(map(len, tokens)), list(ends))).encode())
    total.update(b"".join(tokens))
    return total.hexdigest()


def _tokenize(api: Any, vocab: Any, text: str) -> list[int]:
    data = text.encode()
    buffer = (api.llama_token * (len(data) + 8))()
    count: int = api.llama_tokenize(vocab, data, len(data), buffer, len(buffer), False, True)
    return list(buffer[: max(0, count)])
