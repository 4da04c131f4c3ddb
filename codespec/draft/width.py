"""Logits of a draft model whose vocabulary is padded to another size than the target's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codespec.protocols import Logits, Target


class OfWidth:
    """A sequence whose logits have ``width`` columns: what is missing is impossible, what is too much is cut off.

    Models of one family pad their vocabularies to different sizes: Qwen2.5-Coder 0.5B to 151,936 tokens, 7B to 152,064.
    """

    def __init__(self, sequence: Target, width: int) -> None:
        self._sequence, self._width = sequence, width

    @property
    def n_past(self) -> int:
        """``Target.n_past``."""
        return self._sequence.n_past

    def decode(self, tokens: Sequence[int], last: int | None = None) -> Logits:
        """``Target.decode``."""
        return self._fitted(self._sequence.decode(tokens, last))

    def rollback(self, n_past: int) -> None:
        """``Target.rollback``."""
        self._sequence.rollback(n_past)

    def fork(self) -> Target:
        """``Target.fork``."""
        return OfWidth(self._sequence.fork(), self._width)

    def decode_each(self, forks: Sequence[Target], tokens: Sequence[int]) -> Logits:
        """``Target.decode_each``."""
        inner = [each._sequence if isinstance(each, OfWidth) else each for each in forks]
        return self._fitted(self._sequence.decode_each(inner, tokens))

    def close(self) -> None:
        """``Target.close``."""
        self._sequence.close()

    def _fitted(self, logits: Logits) -> Logits:
        rows, columns = logits.shape
        if columns >= self._width:
            return logits[:, : self._width]
        fitted = np.full((rows, self._width), -np.inf, np.float32)
        fitted[:, :columns] = logits
        return fitted
