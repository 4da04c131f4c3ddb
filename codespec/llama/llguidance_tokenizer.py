"""A llama.cpp vocabulary as llguidance wants it."""

from __future__ import annotations

import ctypes
from typing import Any

import llguidance

from codespec.grammar.tokenizer import Tokenizer
from codespec.llama.runtime import library

_SPECIAL_MARK = b"\xff"  # llguidance takes a token that starts with this byte, which no UTF-8 holds, as special


def tokenizer_from_vocab(vocab: Any) -> Tokenizer:
    """The tokens of a loaded model's vocabulary (a ``llama_vocab`` pointer) for grammars.

    Takes 0.3 to 1 s at 150,000 tokens: build one per model and keep it. The model must stay open as long as
    the tokenizer is used.

    llguidance's own converter takes only control tokens as special. Here everything is that llama.cpp ends a
    generation with, or marks as unknown or unused, so that no grammar can produce its name as text.
    """
    api = library()
    size: int = api.llama_vocab_n_tokens(vocab)
    special_attributes = api.LLAMA_TOKEN_ATTR_CONTROL | api.LLAMA_TOKEN_ATTR_UNKNOWN | api.LLAMA_TOKEN_ATTR_UNUSED
    tokens: list[bytes] = []
    ends: list[int] = []
    barred: set[int] = set()
    for token in range(size):
        text = _piece(api, vocab, token)
        attributes = api.llama_vocab_get_attr(vocab, token)
        is_end = bool(api.llama_vocab_is_eog(vocab, token))
        marker = attributes & api.LLAMA_TOKEN_ATTR_USER_DEFINED and text.startswith(b"<") and text.endswith(b">")
        if is_end:
            ends.append(token)
        if is_end or marker or attributes & special_attributes:
            barred.add(token)
            text = _SPECIAL_MARK + text
        elif not text:
            barred.add(token)
        tokens.append(text)
    function = ctypes.cast(api._lib.llama_tokenize, ctypes.c_void_p).value
    eos = ends or [int(api.llama_vocab_eos(vocab))]
    raw = llguidance.LLTokenizer.from_llamacpp(
        tokens=tokens, vocab_ptr=vocab, tokenize_fptr=function, eos_token=eos, slices=None
    )
    return Tokenizer(raw, eos, frozenset(barred), lambda text: _tokenize(api, vocab, text))


def _piece(api: Any, vocab: Any, token: int) -> bytes:
    size = 64
    while True:
        buffer = ctypes.create_string_buffer(size)
        count: int = api.llama_token_to_piece(vocab, token, buffer, size, 0, True)
        if count >= 0:
            return buffer.raw[:count]
        size = -count


def _tokenize(api: Any, vocab: Any, text: str) -> list[int]:
    data = text.encode()
    buffer = (api.llama_token * (len(data) + 8))()
    count: int = api.llama_tokenize(vocab, data, len(data), buffer, len(buffer), False, True)
    return list(buffer[: max(0, count)])
