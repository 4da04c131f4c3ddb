"""A JSON text that leaves out white space from some token on, so that a limit of tokens is not spent on it."""

from __future__ import annotations

from collections.abc import Sequence

from codespec.grammar.json.token_texts import texts_of
from codespec.grammar.tokenizer import Tokenizer
from codespec.protocols import Bits, GrammarState

_OUTSIDE, _STRING, _ESCAPE = range(3)


class SparingState:
    """A grammar state of JSON texts in which tokens of nothing but white space stand only among the first tokens.

    Inside of strings white space stays what it is, and where a text has to have some it stays allowed.

    Args:
        free: tokens that the text has before white space is left out.
    """

    def __init__(self, inner: GrammarState, tokenizer: Tokenizer, free: int) -> None:
        self._inner, self._tokenizer, self._free = inner, tokenizer, free
        self._modes = [_OUTSIDE]  # after each token

    def copy(self) -> SparingState:
        """An independent deep copy, in time linear in the tokens taken so far."""
        other = object.__new__(SparingState)
        other._inner, other._tokenizer, other._free = self._inner.copy(), self._tokenizer, self._free
        other._modes = self._modes.copy()
        return other

    def __deepcopy__(self, memo: dict[int, object]) -> SparingState:
        return self.copy()

    def accept(self, tokens: Sequence[int]) -> int:
        """As ``GrammarState.accept``."""
        for index, token in enumerate(tokens):
            if self._spares(token) or not self._inner.accept([token]):
                return index
            self._modes.append(self._after(token))
        return len(tokens)

    def allows(self, token: int) -> bool:
        """As ``GrammarState.allows``."""
        return self._inner.allows(token) and not self._spares(token)

    def mask_into(self, bits: Bits) -> None:
        """As ``GrammarState.mask_into``."""
        self._inner.mask_into(bits)
        if self._sparing:
            others = bits & ~texts_of(self._tokenizer).blanks
            if others.any():
                bits[:] = others

    def rollback(self, n: int) -> None:
        """As ``GrammarState.rollback``."""
        self._inner.rollback(n)
        if n:
            del self._modes[len(self._modes) - n :]

    def forced(self) -> bytes:
        """As ``GrammarState.forced``."""
        return self._inner.forced()

    @property
    def can_end(self) -> bool:
        """As ``GrammarState.can_end``."""
        return self._inner.can_end

    @property
    def finished(self) -> bool:
        """As ``GrammarState.finished``."""
        return self._inner.finished

    @property
    def _sparing(self) -> bool:
        return len(self._modes) > self._free and self._modes[-1] == _OUTSIDE

    def _spares(self, token: int) -> bool:
        """Whether a token is white space, and other tokens may come in its place."""
        blanks = texts_of(self._tokenizer).blanks
        if not self._sparing or not 0 <= token < self._tokenizer.size:
            return False
        if not blanks[token >> 5] >> (token & 31) & 1:
            return False
        bits = blanks.copy()
        self._inner.mask_into(bits)
        return bool((bits & ~blanks).any())

    def _after(self, token: int) -> int:
        mode = self._modes[-1]
        for byte in texts_of(self._tokenizer).of(token):
            if mode == _ESCAPE:
                mode = _STRING
            elif byte == 0x22:
                mode = _OUTSIDE if mode == _STRING else _STRING
            elif byte == 0x5C and mode == _STRING:
                mode = _ESCAPE
        return mode
