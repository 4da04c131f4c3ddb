"""Pseudo-random numbers, each a pure function of the position in a generation at which it is needed.

The stream of splitmix64 (Steele, Lea, Flood, OOPSLA 2014), started at a key mixed from the place and read at a
position. Nothing is stored, so a draft, a repeated round or another machine sees the same numbers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_WORD = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB
_FEW = 8  # ids, for which arrays take longer


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
