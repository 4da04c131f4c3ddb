"""What engines say of a token that comes next: the log-probabilities of the best ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from codespec.protocols import Logits

CLAMPED = -9999.0
"""What engines write for ``-inf``, which JSON does not have: it says nothing of the token's rank."""


_ROUNDING = 1e-3


class Row(NamedTuple):
    """Every other token has at most the lowest of these log-probabilities.

    Attributes:
        ids: tokens, the best first.
        logprobs: theirs.
    """

    ids: npt.NDArray[np.int64]
    logprobs: npt.NDArray[np.float32]

    @classmethod
    def of(cls, ids: Sequence[int], logprobs: Sequence[float]) -> Row:
        """A row of token ids and their log probabilities, in the same order."""
        return cls(np.array(ids, np.int64), np.array(logprobs, np.float32))


UNKNOWN = Row.of((), ())
"""A row of which nothing is known."""


def best_of(named: Iterable[tuple[int, float]], best: int, size: int) -> Row:
    """The best of those that an engine named; ``UNKNOWN`` where they make no sense.

    Engines add the token that the text goes on with, wherever it ranks: with it there may be one more than the best.

    Args:
        named: tokens and log-probabilities, in any order, each token once at least.
        best: how many were asked for.
        size: of the vocabulary.
    """
    found: dict[int, float] = {}
    for token, logprob in named:
        if not logprob <= _ROUNDING:
            return UNKNOWN  # no log-probability, perhaps a logit
        if logprob > CLAMPED and 0 <= token < size:  # else padding at the end of the engine's vocabulary
            found[token] = logprob
    ranked = sorted(found.items(), key=lambda each: (-each[1], each[0]))[:best]
    return Row.of([token for token, _ in ranked], [logprob for _, logprob in ranked])


def dense(rows: Sequence[Row], size: int) -> Logits:
    """float32 [rows, size], ``-inf`` for every token that is not named."""
    logits = np.full((len(rows), size), -math.inf, np.float32)
    for row, (ids, logprobs) in zip(logits, rows, strict=True):
        row[ids] = logprobs
    return logits
