"""Grammar states under which a generated text may end only where the suffix gate lets it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from codespec.completion.ending.suffix_gate import OPENERS, SuffixGate, TokenText
from codespec.completion.ending.token_prefixes import keep_leading
from codespec.patience import within
from codespec.protocols import Bits, GrammarState

_GOES_ON = (*OPENERS, "&", "|", "+", "=", "?")
"""Signs behind which the next line belongs to the same text: they open a block, or a long expression goes on. Where no
line may end so, the grammar says it."""
LONGEST_MASK_S = 5.0
"""Seconds that one mask may take."""
MOST_ENDINGS = 24
"""Texts that a token may have before a line break that ends the generated text."""


@functools.lru_cache(maxsize=4)
def _breaking(vocabulary: TokenText) -> Sequence[int]:
    """The tokens with a line break in them."""
    return [token for token in range(vocabulary.size) if b"\n" in vocabulary.token_bytes(token)]


@functools.lru_cache(maxsize=4)
def _endings(vocabulary: TokenText) -> frozenset[bytes]:
    """The texts that a token may have before its line break where the break ends the text: the commonest, such as
    ``)``.

    Any other ending can be written in two tokens, and each one costs a mask some milliseconds.
    """
    found: dict[bytes, None] = {}
    for token in _breaking(vocabulary):  # vocabularies are in the order of how common tokens are, roughly
        found.setdefault(_before_break(vocabulary.token_bytes(token)))
        if len(found) == MOST_ENDINGS:
            break
    return frozenset(found)


def _before_break(piece: bytes) -> bytes:
    return piece.partition(b"\n")[0].strip()


class FreeState:
    """A grammar state that allows any text, which is never complete by itself."""

    __slots__ = ("_taken",)

    def __init__(self, taken: int = 0) -> None:
        self._taken = taken

    def copy(self) -> FreeState:
        return FreeState(self._taken)

    def __deepcopy__(self, memo: dict[int, object]) -> FreeState:
        return self.copy()

    def accept(self, tokens: Sequence[int]) -> int:
        self._taken += len(tokens)
        return len(tokens)

    def allows(self, token: int) -> bool:
        return True

    def mask_into(self, bits: Bits) -> None:
        bits.fill(0xFFFFFFFF)

    def rollback(self, n: int) -> None:
        if not 0 <= n <= self._taken:
            raise ValueError(f"cannot undo {n} of {self._taken} tokens")
        self._taken -= n

    def forced(self) -> bytes:
        return b""

    @property
    def can_end(self) -> bool:
        return False

    @property
    def finished(self) -> bool:
        return False


class FittedState:
    """A grammar state that allows end tokens where the gate passes, and nowhere else.

    Copies share the gate and what it remembers, so that target and draft agree and nothing is asked twice.

    Args:
        state: the grammar's, at the cursor; advanced along with this one.
        gate: None allows the end anywhere.
        vocabulary: of the model.
        lead: text that must come first, because the document has it before the cursor (token healing).
        cut: ``StopRule.cut`` where a line break ends the text as an end token does: a line break is then allowed only
            where the gate passes before it, or a block opens.
        silent: whether the text may end with the lead.

    Attributes:
        wanted: the texts, in order, at which this state (not a copy of it) was asked to end and refused.
    """

    __slots__ = (
        "_cut",
        "_ended",
        "_gate",
        "_lead",
        "_pieces",
        "_refused",
        "_silent",
        "_state",
        "_vocabulary",
        "wanted",
    )

    def __init__(
        self,
        state: GrammarState,
        gate: SuffixGate | None,
        vocabulary: TokenText,
        lead: str = "",
        cut: Callable[[str], int | None] | None = None,
        silent: bool = True,
    ) -> None:
        self._silent = silent
        self._state, self._gate, self._vocabulary = state, gate, vocabulary
        self._lead, self._cut = lead.encode(), cut if gate is not None else None
        self._pieces: list[bytes] = []
        self._ended = False
        self._refused = -1  # tokens at which another one was refused last
        self.wanted: list[str] = []

    def copy(self) -> FittedState:
        """An independent copy but for the gate."""
        other = object.__new__(FittedState)
        other._state, other._gate, other._vocabulary = self._state.copy(), self._gate, self._vocabulary
        other._lead, other._cut, other._silent = self._lead, self._cut, self._silent
        other._pieces, other._ended, other._refused, other.wanted = self._pieces.copy(), self._ended, -1, []
        return other

    def __deepcopy__(self, memo: dict[int, object]) -> FittedState:
        return self.copy()

    def accept(self, tokens: Sequence[int]) -> int:
        """As ``GrammarState.accept``."""
        taken = 0
        while taken < len(tokens):
            plain = self._plain(tokens[taken:])
            if plain:
                count = self._state.accept(tokens[taken : taken + len(plain)])
                self._pieces += plain[:count]
                taken += count
                if count < len(plain):
                    break
            elif self._take(tokens[taken]):
                taken += 1
            else:
                break
        return taken

    def _plain(self, tokens: Sequence[int]) -> list[bytes]:
        """The texts of the first tokens that are judged by nothing but the grammar."""
        plain: list[bytes] = []
        if self._ended or self._missing():
            return plain
        ends = self._vocabulary.end_tokens
        for token in tokens:
            piece = self._vocabulary.token_bytes(token)
            if token in ends or (self._cut is not None and b"\n" in piece):
                break
            plain.append(piece)
        return plain

    def _take(self, token: int) -> bool:
        if self._ended:
            return False
        if token in self._vocabulary.end_tokens:
            self._ended = self.can_end
            return self._ended
        piece = self._vocabulary.token_bytes(token)
        if not self._leads(piece) or not self._state.accept((token,)):
            return False
        if not self._may_break(piece):
            self._state.rollback(1)
            return False
        self._pieces.append(piece)
        return True

    def _leads(self, piece: bytes) -> bool:
        missing = self._missing()
        return piece.startswith(missing) or (bool(piece) and missing.startswith(piece))

    def _missing(self) -> bytes:
        """The rest of the lead."""
        return self._lead[sum(map(len, self._pieces)) :] if self._lead else b""

    def _may_break(self, piece: bytes) -> bool:
        """Whether the line breaks in ``piece``, if any, may end the text."""
        if self._cut is None or self._gate is None or b"\n" not in piece:
            return True
        text = b"".join((*self._pieces, piece)).decode("utf-8", "replace")
        length = self._cut(text)
        if length is not None and not self._says_enough(text[:length].encode()):
            return False
        if length is None or text[:length].rstrip().endswith(_GOES_ON):
            return True
        return _before_break(piece) in _endings(self._vocabulary) and self._fits(text[:length])

    def _says_enough(self, text: bytes) -> bool:
        return self._silent or bool(text[len(self._lead) :].strip())

    def _fits(self, text: str) -> bool:
        fits = self._gate is None or self._gate.fit(text) is not None
        if not fits and text not in self.wanted:
            self.wanted.append(text)
        return fits

    def allows(self, token: int) -> bool:
        """As ``GrammarState.allows``; the gate is asked only about tokens that may end the text."""
        if self._ended:
            return False
        if token in self._vocabulary.end_tokens:
            return self.can_end
        piece = self._vocabulary.token_bytes(token)
        allowed = self._leads(piece) and self._state.allows(token) and self._may_break(piece)
        if not allowed and not piece.isspace():
            self._refused = len(self._pieces)
        return allowed

    def mask_into(self, bits: Bits) -> None:
        """As ``GrammarState.mask_into``."""
        if self._ended:
            bits.fill(0)
            return
        with within(LONGEST_MASK_S):
            self._state.mask_into(bits)
        missing = self._missing()
        if missing:
            keep_leading(self._vocabulary, bits, missing)
        if self._cut is not None:
            self._keep(bits, self._may_break, _breaking(self._vocabulary))
        can_end = self.can_end
        for token in self._vocabulary.end_tokens:
            word, bit = token >> 5, np.uint32(1 << (token & 31))
            bits[word] = bits[word] | bit if can_end else bits[word] & ~bit

    def _keep(self, bits: Bits, good: Callable[[bytes], bool], among: Sequence[int]) -> None:
        """Clear the tokens among these whose text is not ``good``."""
        for token in among:
            word, bit = token >> 5, np.uint32(1 << (token & 31))
            if bits[word] & bit and not good(self._vocabulary.token_bytes(token)):
                bits[word] &= ~bit

    def rollback(self, n: int) -> None:
        """As ``GrammarState.rollback``."""
        if not 0 <= n <= len(self._pieces) + self._ended:
            raise ValueError(f"cannot undo {n} of {len(self._pieces) + self._ended} tokens")
        if n == 0:
            return
        text = n - self._ended
        self._ended = False
        if text:
            self._state.rollback(text)
            del self._pieces[len(self._pieces) - text :]

    def forced(self) -> bytes:
        """As ``GrammarState.forced``."""
        if self._ended:
            return b""
        return self._missing() or self._state.forced()

    @property
    def can_end(self) -> bool:
        """Whether the text may end here: the lead is there, and the gate passes, or there is none."""
        if self._ended:
            return True
        if self._missing():
            return False  # the document has the lead: an end token before it tells nothing
        if not self._says_enough(b"".join(self._pieces)):
            return False
        if self._gate is None:
            return True
        try:
            return self._fits(b"".join(self._pieces).decode())
        except UnicodeDecodeError:
            return False  # in the middle of a character

    @property
    def end_was_wanted(self) -> bool:
        """Whether the text ended where this state (not a copy of it) had refused no token but white space."""
        return self._refused != len(self._pieces)

    @property
    def finished(self) -> bool:
        """Whether nothing can follow: an end token was accepted, or the grammar is at its end and the gate passes."""
        return self._ended or (self._state.finished and self.can_end)
