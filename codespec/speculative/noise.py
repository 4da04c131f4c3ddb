"""Pseudo-random numbers, each a pure function of the position in a generation at which it is needed.

The stream of splitmix64 (Steele, Lea, Flood, OOPSLA 2014), started at a key mixed from the place and read at a
position. Nothing is stored, so a draft, a repeated round or another machine sees the same numbers.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from codespec.protocols import Distribution

_WORD = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB
_FEW = 8  # ids, for which arrays take longer


class Purpose(IntEnum):
    """What a number is for. At one generated token each purpose has a number of its own, independent of the others."""

    DRAFT = 1
    ACCEPT = 2
    TARGET = 3


def gumbel(seed: int, sample: int, index: int, ids: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    """Standard Gumbel noise, one value per token id: ``-log(-log(u))``, ``u`` uniform at position ``id``."""
    key = _key(seed, sample, index)
    if len(ids) <= _FEW:
        return _gumbel(np.array([_mix(key + _GOLDEN * token) >> 12 for token in ids.tolist()], np.float64))
    bits = ids.astype(np.uint64)
    bits *= np.uint64(_GOLDEN)
    bits += np.uint64(key)
    bits ^= bits >> np.uint64(30)
    bits *= np.uint64(_MIX_1)
    bits ^= bits >> np.uint64(27)
    bits *= np.uint64(_MIX_2)
    bits ^= bits >> np.uint64(31)
    return _gumbel((bits >> np.uint64(12)).astype(np.float64))


def _gumbel(steps: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    # 52 bits and a half step: the largest value below 1 stays below 1, so both logarithms are finite.
    noise: npt.NDArray[np.float64] = -np.log(-np.log((steps + 0.5) * 2.0**-52))
    return noise


def uniform(seed: int, sample: int, index: int, purpose: Purpose) -> float:
    """A number above 0 and below 1, uniformly distributed."""
    return ((_key(seed, sample, index, purpose) >> 12) + 0.5) * 2.0**-52


class Chance:
    """The random events of rejection sampling in one generation; ``index`` counts the generated tokens.

    A draft may draw at an index again in a later round with the same number: by then everything that was drawn
    there before has been thrown away unseen, and the text up to there does not depend on it.
    """

    def __init__(self, seed: int, sample: int) -> None:
        self._seed, self._sample = seed, sample

    def accepts(self, index: int, probability: float) -> bool:
        """True with ``probability``."""
        return uniform(self._seed, self._sample, index, Purpose.ACCEPT) < probability

    def draw(self, index: int, purpose: Purpose, distribution: Distribution) -> int:
        """A token of ``distribution``; never one of probability 0."""
        ids, probs = distribution
        upto = probs.cumsum()
        # The number is below 1 by half a step at least, so the product stays below the sum after rounding too.
        aim = uniform(self._seed, self._sample, index, purpose) * upto[-1]
        return int(ids[upto.searchsorted(aim, side="right")])


def _key(*parts: int) -> int:
    key = 0
    for part in parts:
        key = _mix(key + _GOLDEN + (part & _WORD))
    return key


def _mix(value: int) -> int:
    value &= _WORD
    value = ((value ^ (value >> 30)) * _MIX_1) & _WORD
    value = ((value ^ (value >> 27)) * _MIX_2) & _WORD
    return value ^ (value >> 31)
