"""The tokens of a window, and where they lie in its text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import log2

from codespec.protocols import Vocabulary


class WindowText:
    """A text that another one repeats with few changes.

    Attributes:
        tokens: of the text.
        data: its bytes.
        borders: where each token begins in ``data``, and where the last one ends.
        places: the indices of each token, ascending.
        bits: what it says about the place to meet a token, by token: the rarer, the more.
    """

    def __init__(self, vocabulary: Vocabulary, tokens: Sequence[int]) -> None:
        self.vocabulary = vocabulary
        self.tokens = list(tokens)
        pieces = [vocabulary.token_bytes(token) for token in self.tokens]
        self.data = b"".join(pieces)
        self.borders = [0, *accumulate(map(len, pieces))]
        self.places: dict[int, list[int]] = {}
        for index, token in enumerate(self.tokens):
            self.places.setdefault(token, []).append(index)
        self.bits = {token: log2((1 + len(self.tokens)) / len(places)) for token, places in self.places.items()}
