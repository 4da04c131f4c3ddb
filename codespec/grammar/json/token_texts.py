"""The texts of a vocabulary's tokens, and sets of tokens by what of JSON they hold."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import cached_property

import numpy as np

from codespec.grammar.tokenizer import Tokenizer
from codespec.protocols import Bits

_SPACE = b" \t\r\n"


def members(bits: Bits) -> list[int]:
    """The tokens of a mask."""
    found: list[int] = np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little")).tolist()
    return found


def _holds_value(text: bytes) -> bool:
    if b"]" in text or b"}" in text or text.count(b'"') > 1:
        return True
    return b'"' not in text and any(byte in b", \t\r\nel" for byte in text)


class TokenTexts:
    """The bytes of a vocabulary's tokens, and sets of tokens by what they hold.

    Attributes:
        quotes: tokens with a quote, which may end a string.
        ends: tokens that may end a value that has begun, but a string.
        whole: tokens in which a value may end that begins in them, or an array or object.
        several: tokens in which two items may stand.
        commas: tokens with a comma.
        blanks: tokens of nothing but white space.
        all: every token.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        raw = tokenizer.raw
        self._of = [b"" if token in tokenizer.barred else raw.decode_bytes([token]) for token in range(tokenizer.size)]
        self.all = self._set(lambda text: True)
        self.blanks = self._set(lambda text: text != b"" and not text.strip(_SPACE))
        self.commas = self._set(lambda text: b"," in text)
        self.several = self._set(lambda text: b"," in text.rstrip(_SPACE)[:-1])
        self.quotes = self._set(lambda text: b'"' in text)
        self.ends = self._set(lambda text: any(byte in b'",]} \t\r\nel' for byte in text))
        self.whole = self._set(_holds_value)

    def of(self, token: int) -> bytes:
        """The text of a token; empty for those that are none."""
        return self._of[token] if 0 <= token < len(self._of) else b""

    @cached_property
    def _by_text(self) -> dict[bytes, list[int]]:
        found: dict[bytes, list[int]] = {}
        for token, text in enumerate(self._of):
            found.setdefault(text, []).append(token)
        return found

    @cached_property
    def _by_begun(self) -> dict[bytes, list[int]]:
        found: dict[bytes, list[int]] = {}
        for token, text in enumerate(self._of):
            found.setdefault(text.lstrip(b" \t\r\n,["), []).append(token)
        return found

    def named(self, text: bytes) -> list[int]:
        """The tokens with a text."""
        return self._by_text.get(text, [])

    def begun(self, text: bytes) -> list[int]:
        """Tokens with more text than the signs that may stand before an item."""
        return self._by_begun.get(text, [])

    def _set(self, holds: Callable[[bytes], bool]) -> Bits:
        bits = np.zeros((len(self._of) + 31) // 32 * 32, np.uint8)
        bits[: len(self._of)] = [bool(holds(text)) for text in self._of]
        return np.packbits(bits, bitorder="little").view(np.uint32)


_known: weakref.WeakKeyDictionary[Tokenizer, TokenTexts] = weakref.WeakKeyDictionary()


def texts_of(tokenizer: Tokenizer) -> TokenTexts:
    """The token texts of a vocabulary; made once."""
    found = _known.get(tokenizer)
    if found is None:
        found = _known[tokenizer] = TokenTexts(tokenizer)
    return found
