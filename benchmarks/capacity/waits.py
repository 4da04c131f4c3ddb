"""How long requests wait, where many are taken back before anybody knows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Waits(NamedTuple):
    """Waits for answers; arrays of one length.

    Attributes:
        ms: from the request to the whole answer, or until the next key took the request back.
        answered: whether the answer came.
        weight: how many requests each stands for.
    """

    ms: NDArray[np.float64]
    answered: NDArray[np.bool_]
    weight: NDArray[np.float64]

    @classmethod
    def of(cls, ms: list[float], answered: list[bool]) -> Waits:
        """Waits that count once each."""
        return cls(np.asarray(ms, float), np.asarray(answered, bool), np.ones(len(ms)))

    @property
    def answered_share(self) -> float:
        """Of the requests, those with an answer before the next key; 1.0 of none."""
        total = float(self.weight.sum())
        return float(self.weight[self.answered].sum()) / total if total else 1.0


def together(parts: list[tuple[Waits, float]]) -> Waits:
    """Several waits as one, each of them with a factor for its weights."""
    return Waits(
        np.concatenate([each.ms for each, _ in parts]),
        np.concatenate([each.answered for each, _ in parts]),
        np.concatenate([each.weight * factor for each, factor in parts]),
    )


def percentiles(waits: Waits, *shares: float) -> list[float]:
    """Milliseconds within which these shares of all requests have their answer, were none taken back.

    A request that was taken back has waited at least until then, which is counted (Kaplan and Meier 1958). To leave
    those out would flatter a slow engine: only its quick answers come before the next key.

    Returns:
        infinity where so many answers were never waited for; nan without a request.
    """
    if not len(waits.ms):
        return [float("nan")] * len(shares)
    order = np.lexsort((~waits.answered, waits.ms))  # at one time answers count before what was taken back then
    ms, weight = waits.ms[order], waits.weight[order]
    left = weight.sum() - np.concatenate(([0.0], np.cumsum(weight)[:-1]))  # those that wait still
    gone = np.where(waits.answered[order], weight / np.maximum(left, 1e-12), 0.0)
    waiting = np.cumprod(1.0 - np.minimum(gone, 1.0))
    found = []
    for share in shares:
        place = int(np.searchsorted(-waiting, -(1.0 - share) - 1e-9))
        found.append(float(ms[place]) if place < len(ms) else float("inf"))
    return found
