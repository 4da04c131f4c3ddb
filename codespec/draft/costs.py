"""What a pass of a model over n tokens costs: T(n), measured, with its jumps, and kept up to date while running."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

from codespec.protocols import CodespecError, Target

LONGEST = 33
"""Tokens of the largest pass that is measured: a proposal of 32 and the token before it."""

SIZES = (*range(1, 18), 20, 24, 25, 28, 32, 33)
CONTEXT_STEP = 128
_REFRESH = 16  # observations between two recalculations of what they say together

Costs = Sequence[float]
"""Milliseconds of a pass over n tokens at index n, 0 … ``LONGEST``; the first entry is 0."""


@dataclass(frozen=True)
class CostCurve:
    """T(n) of one model on one machine.

    Attributes:
        contexts: tokens in the KV cache before the pass, ascending.
        tokens: of the pass, ascending, from 1.
        ms: milliseconds, one row for each context, of a pass of the same size as the one before.
        switch_ms: added where it is not: llama.cpp then builds its graph anew.
    """

    contexts: tuple[int, ...]
    tokens: tuple[int, ...]
    ms: tuple[tuple[float, ...], ...]
    switch_ms: float = 0.0

    def at(self, context: int) -> list[float]:
        """``Costs`` at a context: linear between the measured ones, the nearest outside them."""
        place = bisect_right(self.contexts, context)
        if place == 0 or place == len(self.contexts):
            return self._filled(self.ms[min(place, len(self.contexts) - 1)])
        low, high = self.contexts[place - 1], self.contexts[place]
        share = (context - low) / (high - low)
        return self._filled([a + share * (b - a) for a, b in zip(self.ms[place - 1], self.ms[place], strict=True)])

    def _filled(self, row: Sequence[float]) -> list[float]:
        """Every n: linear between neighbours, so that a jump stays between the two sizes that it was seen between."""
        costs = [0.0] * (LONGEST + 1)
        for index, (n, value) in enumerate(zip(self.tokens, row, strict=True)):
            before, value_before = (self.tokens[index - 1], row[index - 1]) if index else (n, value)
            for m in range(before + 1 if index else 1, n + 1):
                share = (m - before) / (n - before) if n > before else 1.0
                costs[m] = value_before + share * (value - value_before)
        per_token = row[-1] / self.tokens[-1]
        for m in range(self.tokens[-1] + 1, LONGEST + 1):
            costs[m] = row[-1] + per_token * (m - self.tokens[-1])
        return costs

    def as_json(self) -> dict[str, Any]:
        """For ``from_json``."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> CostCurve:
        """The curve that ``as_json`` described.

        Raises:
            ValueError: it is none.
        """
        try:
            contexts = tuple(int(n) for n in data["contexts"])
            tokens = tuple(int(n) for n in data["tokens"])
            ms = tuple(tuple(float(value) for value in row) for row in data["ms"])
            switch_ms = float(data["switch_ms"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a cost curve: {error}") from error
        ascending = all(list(x) == sorted(set(x)) and x for x in (contexts, tokens))
        shaped = len(ms) == len(contexts) and all(len(row) == len(tokens) for row in ms)
        if not ascending or not shaped or tokens[0] != 1 or not all(0 < v < 1e7 for row in ms for v in row):
            raise ValueError("not a cost curve: contexts, tokens and ms do not fit together")
        return cls(contexts, tokens, ms, max(0.0, switch_ms))


# A guess for a model that was never measured: an extra token costs a quarter of the first. Observations replace it.
UNKNOWN = CostCurve((0,), (1, LONGEST), ((1.0, 1.0 + 0.25 * (LONGEST - 1)),))


def measure(
    target: Target,
    contexts: Sequence[int] = (0,),
    sizes: Sequence[int] = SIZES,
    repeats: int = 3,
    token: int = 1,
    go_on: Callable[[float], bool] = lambda _: True,
    clock: Callable[[], float] = perf_counter,
) -> CostCurve | None:
    """Measure T(n): the minimum of ``repeats`` interleaved passes at each size and context.

    A minimum, because whatever else the machine does only adds. Each size is decoded twice in a row: the first pass
    comes after one of another size. One pass at each context is not counted.

    Args:
        target: an empty sequence with room for the largest context and pass; empty again afterwards.
        token: the token to decode; which one makes no difference.
        go_on: called with the share that is done before every pass; False stops.

    Returns:
        None where ``go_on`` stopped it.
    """
    rows: list[tuple[float, ...]] = []
    switches: list[float] = []
    steps, done = len(contexts) * repeats * len(sizes), 0
    try:
        for context in sorted(contexts):
            if context > target.n_past:
                target.decode([token] * (context - target.n_past), 0)
            target.decode([token] * max(sizes))
            target.rollback(context)
            best = {kept: dict.fromkeys(sizes, math.inf) for kept in (False, True)}
            for _ in range(repeats):
                for size in sizes:
                    if not go_on(done / steps):
                        return None
                    for found in best.values():
                        began = clock()
                        target.decode([token] * size)
                        took = (clock() - began) * 1e3
                        target.rollback(context)
                        found[size] = min(found[size], took)
                    done += 1
            rows.append(tuple(round(best[True][size], 4) for size in sizes))
            switches += [best[False][size] - best[True][size] for size in sizes]
    finally:
        target.rollback(0)
    switch_ms = max(0.0, round(statistics.median(switches), 4))
    return CostCurve(tuple(sorted(contexts)), tuple(sizes), tuple(rows), switch_ms)


class RunningCosts:
    """A cost curve that follows what passes really take.

    The measured shape stays; each size, and all of them together, are corrected by a slow average of the ratio
    between what a pass took and what the curve said: for a busy machine, a longer context, another clock speed.

    Attributes:
        last: tokens of the last pass.

    Args:
        curve: None where nothing was measured yet.
    """

    def __init__(self, curve: CostCurve | None = None) -> None:
        self.replace(curve)

    def replace(self, curve: CostCurve | None) -> None:
        """Start from a new measurement."""
        self.curve = curve or UNKNOWN
        self.measured = curve is not None
        self._common = 0.0  # log of the ratio, over all sizes
        self._known = self.measured
        self._own = [0.0] * (LONGEST + 1)  # beyond the common one
        self._weights = [0.0] * (LONGEST + 1)
        self._cache: dict[int, list[float]] = {}
        self._since = 0
        self.last = 0

    def at(self, context: int) -> list[float]:
        """``Costs`` of the next pass at a context."""
        costs = self._kept(context)
        if self.curve.switch_ms <= 0:
            return costs
        last, switch = self.last, self.curve.switch_ms * math.exp(self._common)
        return [cost if n == last else cost + switch for n, cost in enumerate(costs)]

    def _kept(self, context: int) -> list[float]:
        step = context // CONTEXT_STEP
        costs = self._cache.get(step)
        if costs is None:
            costs = self.curve.at(step * CONTEXT_STEP)
            costs = [value * math.exp(self._common + own) for value, own in zip(costs, self._smooth(), strict=True)]
            self._cache[step] = costs
        return costs

    def observe(self, n: int, context: int, ms: float) -> None:
        """A pass over ``n`` tokens behind ``context`` others took ``ms``."""
        if not 1 <= n <= LONGEST or ms <= 0:
            return
        expected = self.curve.at(context)[n] if len(self.curve.contexts) > 1 else self._base()[n]
        if n != self.last:
            expected += self.curve.switch_ms
        self.last = n
        ratio = math.log(ms / expected)
        if not self._known:
            self._common, self._known = ratio, True
            self._cache.clear()
        # A pass that another process held up says nothing about the next one.
        beyond = max(-0.5, min(0.5, ratio - self._common))
        self._common += 0.02 * beyond
        weight = self._weights[n] = min(self._weights[n] + 1, 50.0)
        self._own[n] += (beyond - self._own[n]) / (weight + 2)
        self._since += 1
        if self._since >= _REFRESH or self._weights[n] <= 2:
            self._since = 0
            self._cache.clear()

    def _base(self) -> list[float]:
        found = self._cache.get(-1)
        if found is None:
            found = self._cache[-1] = self.curve.at(0)
        return found

    def _smooth(self) -> list[float]:
        """The own correction of every size; sizes that were not seen take those of their neighbours."""
        known = [n for n in range(1, LONGEST + 1) if self._weights[n] >= 1]
        if not known:
            return [0.0] * (LONGEST + 1)
        out = [0.0] * (LONGEST + 1)
        for n in range(1, LONGEST + 1):
            place = bisect_right(known, n)
            low, high = known[max(place - 1, 0)], known[min(place, len(known) - 1)]
            if n <= low or low == high:
                out[n] = self._own[low]
            else:
                share = (n - low) / (high - low)
                out[n] = self._own[low] + share * (self._own[high] - self._own[low])
        return out


def check_sizes(text: str) -> tuple[int, ...]:
    """Context sizes as ``0,512,2048``.

    Raises:
        CodespecError: something else.
    """
    try:
        sizes = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        sizes = (-1,)
    if sizes[0] < 0:
        raise CodespecError(f"{text!r}: give context sizes in tokens, such as 0,512,2048")
    return sizes
