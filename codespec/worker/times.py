"""Quantiles of recent times."""

from __future__ import annotations

from collections import deque

KEPT = 512
"""Times of which figures are made; of more, the oldest are dropped."""


class Times:
    """The latest times of one kind of event."""

    def __init__(self) -> None:
        self._kept: deque[float] = deque(maxlen=KEPT)

    def add(self, ms: float) -> None:
        """Add a time in milliseconds."""
        self._kept.append(ms)

    def figures(self) -> dict[str, float]:
        """The number of times and, if there are any, quantiles and the maximum, in milliseconds."""
        times = sorted(self._kept.copy())  # another thread may add
        if not times:
            return {"count": 0}
        quantiles = {f"p{share}": times[(len(times) * share - 1) // 100] for share in (50, 95, 99)}
        return {"count": len(times), **{key: round(ms, 3) for key, ms in quantiles.items()}, "max": round(times[-1], 3)}
