"""Draft models whose vocabulary is the target's, but for its padding, its special tokens, or its rare ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codespec.draft.wrapped_target import WrappedTarget
from codespec.protocols import Logits, Target


class ResizedVocabularyTarget(WrappedTarget):
    """A sequence whose logits have ``width`` columns: what is missing is impossible, what is too much is cut off.

    Models of one family pad their vocabularies to different sizes: Qwen2.5-Coder 0.5B to 151,936 tokens, 7B to 152,064.
    """

    def __init__(self, sequence: Target, width: int) -> None:
        super().__init__(sequence)
        self._width = width

    def decode(self, tokens: Sequence[int], last: int | None = None) -> Logits:
        """``Target.decode``."""
        return self._fitted(self._target.decode(tokens, last))

    def fork(self) -> Target:
        """``Target.fork``."""
        return ResizedVocabularyTarget(self._target.fork(), self._width)

    def decode_each(self, forks: Sequence[Target], tokens: Sequence[Sequence[int]]) -> Logits:
        """``Target.decode_each``."""
        inner = [each._target if isinstance(each, ResizedVocabularyTarget) else each for each in forks]
        return self._fitted(self._target.decode_each(inner, tokens))

    def _fitted(self, logits: Logits) -> Logits:
        rows, columns = logits.shape
        if columns >= self._width:
            return logits[:, : self._width]
        fitted = np.full((rows, self._width), -np.inf, np.float32)
        fitted[:, :columns] = logits
        return fitted


class TrimmedVocabularyTarget(ResizedVocabularyTarget):
    """A sequence of a model that has only some of the target's tokens: what it lacks is impossible.

    Args:
        tokens: the target's ids of the model's own tokens; negative where it has none.
        width: of the target's vocabulary.
        lacking: the model's own token that is read for those that it lacks.
    """

    def __init__(self, sequence: Target, tokens: Sequence[int], width: int, lacking: int) -> None:
        super().__init__(sequence, width)
        self._all, self._lacking = tokens, lacking
        ids = np.asarray(tokens)
        self._columns = np.flatnonzero(ids >= 0)
        self._tokens = ids[self._columns]
        own = np.full(width, lacking)
        own[self._tokens] = self._columns
        self._own: list[int] = own.tolist()
        # Kept between calls: what the model lacks stays as it is.
        self._fitted_logits = np.full((1, width), -np.inf, np.float32)

    def decode(self, tokens: Sequence[int], last: int | None = None) -> Logits:
        """``Target.decode``."""
        return super().decode([self._own[token] for token in tokens], last)

    def fork(self) -> Target:
        """``Target.fork``."""
        return TrimmedVocabularyTarget(self._target.fork(), self._all, self._width, self._lacking)

    def decode_each(self, forks: Sequence[Target], tokens: Sequence[Sequence[int]]) -> Logits:
        """``Target.decode_each``."""
        return super().decode_each(forks, [[self._own[token] for token in each] for each in tokens])

    def _fitted(self, logits: Logits) -> Logits:
        if len(logits) > len(self._fitted_logits):
            self._fitted_logits = np.full((len(logits), self._width), -np.inf, np.float32)
        fitted = self._fitted_logits[: len(logits)]
        for row, own in zip(fitted, logits, strict=True):
            row[self._tokens] = own[self._columns]
        return fitted
