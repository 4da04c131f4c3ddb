"""What a pass of a model over n tokens costs: T(n), measured, with its jumps, and kept up to date while running."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from time import perf_counter
from typing import Any, NamedTuple

from codespec.protocols import Target

LONGEST = 33
"""Tokens of the largest pass that is measured: a proposal of 32 and the token before it."""

SIZES = (*range(1, 18), 20, 24, 25, 28, 32, 33)
FEW_SIZES = (1, 2, 3, 4, 5, 8, 9, 16, 17, 24, 32, 33)
"""For slow models: where T(n) is steep, and both sides of where kernels change."""

CONTEXT_STEP = 128
_REFRESH = 16  # observations between two recalculations of what they say together
_PREFILL = 128  # tokens between two questions whether to go on
_SHORTEST_MS = 1e-3  # what a clock of low resolution must not call 0
_NEAR = 1.05
DISTURBED = 0.25
"""The share of minima without a second pass near them from which a measurement is not worth keeping."""

_LEAST_REPEATS, _MOST_REPEATS = 3, 20

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
        """The curve as ``from_json`` reads it."""
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
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise ValueError(f"not a cost curve: {error}") from error
        ascending = all(list(x) == sorted(set(x)) and x for x in (contexts, tokens))
        shaped = len(ms) == len(contexts) and all(len(row) == len(tokens) for row in ms)
        if not ascending or not shaped or contexts[0] < 0 or tokens[0] != 1 or tokens[-1] > LONGEST:
            raise ValueError("not a cost curve: contexts, tokens and ms do not fit together")
        if not all(0 < v < 1e7 for row in ms for v in row) or not 0 <= switch_ms < 1e7:
            raise ValueError("not a cost curve: no such milliseconds")
        return cls(contexts, tokens, ms, switch_ms)


# A guess for a model that was never measured: an extra token costs a quarter of the first. Observations replace it.
UNKNOWN = CostCurve((0,), (1, LONGEST), ((1.0, 1.0 + 0.25 * (LONGEST - 1)),))


def guess(size: int) -> CostCurve:
    """Costs of a model of ``size`` bytes that was never measured: it is read once for a token, at 20 GB/s."""
    one = 0.1 + size / 2e7
    return CostCurve((0,), (1, LONGEST), ((one, one * (1.0 + 0.25 * (LONGEST - 1))),))


class Measurement:
    """T(n), measured pass by pass; it may stop after any of them and go on later.

    The minimum of ``repeats`` interleaved passes at each size and context: whatever else the machine does only adds.
    Each size is decoded twice in a row: the first pass comes after one of another size, for which llama.cpp builds
    its graph anew; the second one is T(n). One pass at each context is not counted. A size whose minimum no second
    pass came near, because something else ran, is repeated up to as often again.

    Args:
        contexts: tokens in the KV cache before the pass.
        rows: of logits that are asked for; None is all, as verifying needs; a draft asks for 1.
        token: the token to decode; which one makes no difference.
        clock: in seconds.
        busy: seconds that this process has computed, for a model that decodes in one thread: where that is less than
            ``clock`` says, something else ran in between.
    """

    def __init__(
        self,
        contexts: Sequence[int] = (0,),
        sizes: Sequence[int] = SIZES,
        repeats: int = 3,
        rows: int | None = None,
        token: int = 1,
        clock: Callable[[], float] = perf_counter,
        busy: Callable[[], float] | None = None,
    ) -> None:
        self.contexts, self.sizes = tuple(sorted(set(contexts))), tuple(sorted(set(sizes)))
        self._rows, self._token, self._clocks = rows, token, (clock, busy or clock)
        self._steps = [(c, n) for c in self.contexts for _ in range(repeats) for n in self.sizes]
        self._done, self._rounds_left = 0, repeats
        # By context and size, ascending: passes after one of another size, and after one of the same.
        self._taken: dict[tuple[int, int], tuple[list[float], list[float]]] = {step: ([], []) for step in self._steps}

    def run(self, target: Target, go_on: Callable[[float], bool] = lambda _: True) -> CostCurve | None:
        """Measure what is not measured yet.

        Args:
            target: an empty sequence with room for the largest context and pass; empty again afterwards.
            go_on: called with the share that is done before every pass; False stops.

        Returns:
            None where ``go_on`` stopped it.

        Raises:
            CodespecError, Aborted: as ``Target.decode``.
        """
        warm = -1
        try:
            while self._done < len(self._steps) or self._repeat_more():
                context, size = self._steps[self._done]
                if warm != context:
                    if not self._fill(target, context, go_on):
                        return None
                    self._pass(target, next((n for n in reversed(self.sizes) if n != size), size))
                    warm = context
                for taken in self._taken[context, size]:
                    if not go_on(self._done / len(self._steps)):
                        return None
                    insort(taken, self._pass(target, size))
                self._done += 1
        finally:
            target.rollback(0)
        rows = [[self._taken[context, size] for size in self.sizes] for context in self.contexts]
        switches = [first[0] - same[0] for row in rows for first, same in row]
        ms = tuple(tuple(round(same[0], 4) for _, same in row) for row in rows)
        return CostCurve(self.contexts, self.sizes, ms, max(0.0, round(statistics.median(switches), 4)))

    def _repeat_more(self) -> bool:
        """Plan another round of the sizes whose minimum may be too high; False where that is none or enough."""
        if self._rounds_left == 0:
            return False
        self._rounds_left -= 1
        more = self._unconfirmed()
        self._steps += more
        return bool(more)

    def _unconfirmed(self) -> list[tuple[int, int]]:
        return [step for step, (_, same) in self._taken.items() if len(same) > 1 and same[1] > same[0] * _NEAR]

    @property
    def disturbed(self) -> bool:
        """Whether other programs ran so much that the minima say more about them than about the model."""
        return len(self._unconfirmed()) > DISTURBED * len(self._taken)

    def _fill(self, target: Target, context: int, go_on: Callable[[float], bool]) -> bool:
        """Bring the sequence to ``context`` tokens; False where ``go_on`` stopped it."""
        target.rollback(min(context, target.n_past))
        while target.n_past < context:
            if not go_on(self._done / len(self._steps)):
                return False
            target.decode([self._token] * min(_PREFILL, context - target.n_past), 0)
        return go_on(self._done / len(self._steps))

    def _pass(self, target: Target, size: int) -> float:
        """Milliseconds of one pass."""
        before, began = target.n_past, [clock() for clock in self._clocks]
        target.decode([self._token] * size, self._rows)
        took = min(clock() - start for clock, start in zip(self._clocks, began, strict=True))
        target.rollback(before)
        return max(took * 1e3, _SHORTEST_MS)


class MeasurementPlan(NamedTuple):
    """What to measure, as arguments of ``Measurement``."""

    contexts: tuple[int, ...]
    sizes: tuple[int, ...]
    repeats: int


def plan(
    target: Target,
    seconds: float,
    far: int = 0,
    go_on: Callable[[float], bool] = lambda _: True,
    clock: Callable[[], float] = perf_counter,
) -> MeasurementPlan | None:
    """What to measure in about ``seconds``; a slow model takes somewhat longer.

    Args:
        target: an empty sequence with room for ``LONGEST`` tokens; empty again afterwards.
        far: a second context, for models that come there in a fraction of the time. In small models attention is much
            of the cost; in large ones, which are slow, it is little at first.

    Returns:
        None where ``go_on``, called before every pass, stopped it.

    Raises:
        CodespecError, Aborted: as ``Target.decode``.
    """
    found = []
    for size in (1, 1, LONGEST):  # the first one warms up
        if not go_on(0.0):
            return None
        began = clock()
        target.decode([1] * size, 1)
        found.append(max(clock() - began, 1e-6))
        target.rollback(0)
    _, one, longest = found
    contexts = (0, far) if 0 < far * longest / LONGEST <= seconds / 3 else (0,)
    for sizes in (SIZES, FEW_SIZES):
        once = 2 * len(contexts) * sum(one + (longest - one) * (n - 1) / (LONGEST - 1) for n in sizes)
        if once * _LEAST_REPEATS <= seconds:
            return MeasurementPlan(contexts, sizes, min(int(seconds / once), _MOST_REPEATS))
    return MeasurementPlan(contexts, FEW_SIZES, 2)


class RunningCosts:
    """A cost curve that follows what passes really take.

    The measured shape stays; each size, and all of them together, are corrected by a slow average of the ratio
    between what a pass took and what the curve said: for a busy machine, a longer context, another clock speed.

    Attributes:
        replays: whether what was rejected is decoded again: recurrent layers go forward only.
        last: tokens of the last pass.
        fixed: whether the curve is to be believed whatever passes take.

    Args:
        curve: None where nothing was measured yet.
        size: of the model in bytes, to begin with a guess then; 0 is not known.
        threads: that the curve is measured with, and passes are decoded with until ``use`` says otherwise.
    """

    def __init__(self, curve: CostCurve | None = None, size: int = 0, threads: int = 1) -> None:
        self._guess = guess(size) if size else UNKNOWN
        self.replays = False
        self._threads = self._measured_with = threads
        self.replace(curve)

    def replace(self, curve: CostCurve | None) -> None:
        """Start from a new measurement."""
        self.curve = curve or self._guess
        self.fixed = False
        self.measured = curve is not None
        self._common = 0.0  # log of the ratio, over all sizes
        self._known = self.measured and self._threads == self._measured_with
        self._own = [0.0] * (LONGEST + 1)  # beyond the common one
        self._weights = [0.0] * (LONGEST + 1)
        self._measured: dict[int, list[float]] = {}  # by the context's step
        self._cache: dict[int, list[float]] = {}
        self._switched: dict[tuple[int, int], list[float]] = {}  # by the last pass and the context's step
        self._since = 0
        self.last = 0
        self._again_ms: float | None = None
        self._of_threads: dict[int, tuple[float, bool, list[float], list[float]]] = {}

    def use(self, threads: int) -> None:
        """Follow passes with another number of threads from now on, apart from those with other numbers."""
        self._of_threads[self._threads] = self._common, self._known, self._own, self._weights
        self._threads = threads
        known = self.measured and threads == self._measured_with
        nothing = 0.0, known, [0.0] * (LONGEST + 1), [0.0] * (LONGEST + 1)
        self._common, self._known, self._own, self._weights = self._of_threads.get(threads, nothing)
        self._forget()

    def begin_anew(self) -> None:
        """Follow passes that take another time than those until now."""
        self.replace(self.curve if self.measured else None)

    def at(self, context: int, last: int = 0) -> list[float]:
        """``Costs`` of the next pass at a context, after one over ``last`` tokens; 0: the last one that was seen."""
        if self.curve.switch_ms <= 0:
            return self.kept(context)
        place = last or self.last, context // CONTEXT_STEP
        switched = self._switched.get(place)
        if switched is None:
            switch = self.curve.switch_ms * math.exp(self._common)
            switched = [cost if n == place[0] else cost + switch for n, cost in enumerate(self.kept(context))]
            self._switched[place] = switched
        return switched

    def kept(self, context: int) -> list[float]:
        """``Costs`` of passes of the same size as the one before each, to read only."""
        step = context // CONTEXT_STEP
        costs = self._cache.get(step)
        if costs is None:
            costs = self._measured_at(context)
            costs = [value * math.exp(self._common + own) for value, own in zip(costs, self._smooth(), strict=True)]
            self._cache[step] = costs
        return costs

    @property
    def again_ms(self) -> float:
        """What the pass after a rejection takes to decode again what was rejected; before that was seen, a row."""
        if not self.replays:
            return 0.0
        if self._again_ms is None:
            costs = self.kept(0)
            return max(0.0, costs[2] - costs[1])
        return self._again_ms

    def observe(self, n: int, context: int, ms: float, rejected: bool = False) -> None:
        """A pass over ``n`` tokens after ``context`` others took ``ms``.

        Args:
            rejected: whether some of the proposal before was.
        """
        if not 1 <= n <= LONGEST or ms <= 0:
            return
        if self.fixed:
            self.last = n
            return
        if rejected and self.replays:
            more = max(0.0, min(ms - self.at(context)[n], 2 * self.kept(context)[1]))
            self._again_ms = more if self._again_ms is None else self._again_ms + (more - self._again_ms) * 0.1
            self.last = n
            return
        expected = self._measured_at(context)[n]
        if n != self.last:
            expected += self.curve.switch_ms
        self.last = n
        ratio = math.log(ms / expected)
        if not self._known:
            self._common, self._known = ratio, True
            self._forget()
        # A pass that another process held up says nothing about the next one.
        beyond = max(-0.5, min(0.5, ratio - self._common))
        self._common += 0.02 * beyond
        weight = self._weights[n] = min(self._weights[n] + 1, 50.0)
        self._own[n] += (beyond - self._own[n]) / (weight + 2)
        self._since += 1
        if self._since >= _REFRESH or self._weights[n] <= 2:
            self._since = 0
            self._forget()

    def observe_all(self, passes: Iterable[tuple[int, float]], context: int) -> None:
        """Observe consecutive passes, (tokens, milliseconds) each; those of one size as one, by their mean time."""
        for n, alike in groupby(passes, itemgetter(0)):
            taken = [ms for _, ms in alike]
            if n != self.last:
                self.observe(n, context, taken.pop(0))
            if taken:
                self.observe(n, context, sum(taken) / len(taken))

    def _forget(self) -> None:
        self._cache.clear()
        self._switched.clear()

    def _measured_at(self, context: int) -> list[float]:
        step = context // CONTEXT_STEP
        costs = self._measured.get(step)
        if costs is None:
            costs = self._measured[step] = self.curve.at(step * CONTEXT_STEP)
        return costs

    def _smooth(self) -> list[float]:
        """The own correction of every size; sizes that were not seen take those of their neighbours."""
        known = [n for n in range(1, LONGEST + 1) if self._weights[n] >= 1]
        out = [0.0] * (LONGEST + 1)
        if not known:
            return out
        own, first, last = self._own, known[0], known[-1]
        out[: first + 1] = [own[first]] * (first + 1)
        for low, high in pairwise(known):
            slope = (own[high] - own[low]) / (high - low)
            out[low:high] = [own[low] + slope * ahead for ahead in range(high - low)]
        out[last:] = [own[last]] * (LONGEST + 1 - last)
        return out
