"""How many replicas a number of developers needs, and what each of the things that make completions quick is worth.

A router that keeps each user's requests on one replica makes replicas independent: one of them is simulated, under as
many developers as it takes (``Replica``), a few thousand keys each time, and N developers on R replicas are a mixture
of those outcomes, with the binomial shares in which hashing their keys places them. So 100,000 developers cost no more
time than 100.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.capacity.sessions import Work, draw
from benchmarks.capacity.simulation import WARM_UP, EngineSettings, Outcome, pass_costs, simulate
from benchmarks.capacity.waits import Waits, percentiles, together
from codespec.draft.costs import CostCurve

SHARES = (0.5, 0.95)
KEYS = 6_000
"""That are simulated for each number of developers on a replica, unless somebody says otherwise."""
SECONDS = (8.0, 1_200.0)
"""The least and the most that are simulated."""
MOST = 1_000_000
"""Replicas, and developers on one, at most."""
_KEYS_A_SECOND = 5.0  # of one developer, opening documents included
_STEP = 1.15  # between numbers of developers that are simulated
_PATIENCE_MS = 2_000.0  # of developers, where no bound is given

Tell = Callable[[str, int], None]
"""Called with what is simulated, and percent."""


class Replica:
    """Outcomes of one replica, by how many developers use it; simulated when first asked for.

    Args:
        bound: milliseconds; numbers of developers of whom half wait longer are not told apart.
        tell: called with what is simulated now.
        keys: that are simulated for each number of developers.
    """

    def __init__(
        self,
        curve: CostCurve,
        engine: EngineSettings,
        work: Work,
        seed: int,
        bound: float = _PATIENCE_MS,
        tell: Callable[[str], None] = lambda _: None,
        keys: int = KEYS,
    ) -> None:
        self.engine, self.work, self._keys = engine, work, keys
        self._switch_ms, self._seed, self._tell = curve.switch_ms, seed, tell
        self._costs = pass_costs(curve, engine, work.prompt)
        self._bound = bound
        self._outcomes: dict[int, Outcome] = {}
        self._most = 2 * MOST

    def under(self, developers: int) -> tuple[Outcome, int]:
        """What happens under so many developers, 1 at least, and how many those were: fewer if they wait too long."""
        while developers < self._most and developers not in self._outcomes:
            # Upwards from below, so that nothing is simulated far above what a replica can do.
            tried = max(self._outcomes, default=0)
            self._simulate(min(developers, max(1, 2 * tried)) if developers > tried else developers)
        simulated = min(developers, self._most)
        return self._outcomes[simulated], simulated

    def loads(self) -> list[tuple[int, tuple[float, ...]]]:
        """Numbers of developers that were simulated, ascending, and the percentiles of ``SHARES``."""
        return [(load, tuple(percentiles(each.waits, *SHARES))) for load, each in sorted(self._outcomes.items())]

    def _simulate(self, developers: int) -> None:
        self._tell(f"{developers:,} developers on a replica")
        seconds = min(max(self._keys / developers / _KEYS_A_SECOND, SECONDS[0]), SECONDS[1])
        keys = draw(developers, seconds, self.work, self._seed)
        outcome = simulate(keys, seconds, self.work, self.engine, self._costs, self._switch_ms)
        self._outcomes[developers] = outcome
        if percentiles(outcome.waits, 0.5)[0] > self._bound:
            self._most = min(self._most, developers)


@dataclass(frozen=True)
class Answer:
    """What developers wait on so many replicas.

    Attributes:
        ms: the percentiles of ``SHARES``, from request to answer; infinite where nobody ever waited for so many.
        answered: the share of requests whose answer comes before the next key.
        memory: the share of requests that memory answers.
        requests: a second, that all engines get.
        busy: the share of the time in which passes run.
    """

    developers: int
    replicas: int
    gpus: int
    ms: tuple[float, ...]
    answered: float
    memory: float
    requests: float
    busy: float


def answer(replica: Replica, developers: int, replicas: int) -> Answer:
    """``developers`` on ``replicas`` that are like this one, each at that which the hash of their key says."""
    parts = [(*replica.under(load), load, weight) for load, weight in _shares(developers, replicas)]
    # An outcome of fewer seconds, or fewer developers, has fewer requests: they stand for more.
    scaled = [(each, weight * load / simulated / each.seconds) for each, simulated, load, weight in parts]
    waits: Waits = together([(each.waits, factor) for each, factor in scaled])
    counted = float(waits.weight.sum())
    return Answer(
        developers,
        replicas,
        replicas * replica.engine.gpus,
        tuple(percentiles(waits, *SHARES)),
        waits.answered_share,
        sum(each.memory * factor for each, factor in scaled) / counted if counted else 0.0,
        replicas * sum(each.requests * factor for each, factor in scaled) / (1.0 - WARM_UP),
        sum(each.busy * weight for each, _, _, weight in parts),
    )


def _shares(developers: int, replicas: int) -> list[tuple[int, float]]:
    """Numbers of developers on a replica and how often they occur, without none: the binomial distribution, on few."""
    if replicas == 1:
        return [(developers, 1.0)]
    mean = developers / replicas
    far = 4.5 * math.sqrt(mean) + 4
    loads = np.arange(max(0, int(mean - far)), min(developers, int(mean + far)) + 1)
    share = 1.0 / replicas
    logs = [
        math.lgamma(developers + 1) - math.lgamma(n + 1) - math.lgamma(developers - n + 1)
        + n * math.log(share) + (developers - n) * math.log1p(-share)
        for n in loads.tolist()
    ]  # fmt: skip
    found: dict[int, float] = {}
    for load, log in zip(loads.tolist(), logs, strict=True):
        for near, part in _near(load):
            found[near] = found.get(near, 0.0) + part * math.exp(log)
    return [(load, weight) for load, weight in sorted(found.items()) if load and weight > 1e-6]


def _grid() -> list[int]:
    found = [0, 1]
    while found[-1] < MOST:
        found.append(max(found[-1] + 1, round(found[-1] * _STEP)))
    return found


_LOADS = _grid()


def _near(load: int) -> list[tuple[int, float]]:
    """The numbers around it that are simulated, with weights such that the mean stays."""
    place = bisect_left(_LOADS, load)
    if _LOADS[place] == load:
        return [(load, 1.0)]
    low, high = _LOADS[place - 1], _LOADS[place]
    share = (load - low) / (high - low)
    return [(low, 1.0 - share), (high, share)]


def replicas_for(replica: Replica, developers: int, bound: float) -> int | None:
    """The fewest replicas with which 95 % of the requests have their answer in ``bound`` milliseconds; None where not
    even a replica for each developer is enough."""

    def holds(replicas: int) -> bool:
        return answer(replica, developers, replicas).ms[-1] <= bound

    if percentiles(replica.under(1)[0].waits, SHARES[1])[0] > bound:
        return None
    low, high = 0, 1
    while not holds(high):
        if high >= developers:
            return None
        low, high = high, min(2 * high, developers)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class Change:
    """The same with something else: what that is worth."""

    name: str
    engine: EngineSettings
    work: Work


DRAFT, ACCEPTED = 4, 1.5
"""What drafts are taken to do where the settings name none: tokens proposed and accepted in a pass."""


def changes(engine: EngineSettings, work: Work) -> list[Change]:
    """The settings as given, and one thing at a time different."""
    found = [Change("as given", engine, work)]
    if work.memory:
        found.append(Change("no answers from memory", engine, replace(work, memory=0.0)))
    if engine.cache:
        word = "no" if work.prefill else "with"
        found.append(Change(f"{word} prefill while typing", engine, replace(work, prefill=not work.prefill)))
    if engine.draft:
        found.append(Change("no drafts", replace(engine, draft=0, accepted=0.0, draft_ms=0.0), work))
    else:
        drafted = replace(engine, draft=DRAFT, accepted=ACCEPTED)
        found.append(Change(f"drafts: {ACCEPTED:g} of {DRAFT} accepted", drafted, work))
    if engine.cache:
        found.append(Change("no prefix cache", replace(engine, cache=0), work))
    for slots in (1, engine.slots // 2, engine.slots * 2):
        if slots and slots != engine.slots and f"batch of {slots}" not in [each.name for each in found]:
            found.append(Change(f"batch of {slots}", replace(engine, slots=slots), work))
    return found


@dataclass
class Row:
    """What a change comes to.

    Attributes:
        answers: for each number of developers, on the replicas that were given or, with a bound, that are needed as
            given, or as many as there are developers where none suffice.
        needed: replicas for the bound, for each number of developers; None where none suffice.
        curve: developers on one replica, and what they wait.
    """

    change: Change
    answers: list[Answer]
    needed: list[int | None] = field(default_factory=list)
    loads: list[tuple[int, tuple[float, ...]]] = field(default_factory=list)


def plan(
    curve: CostCurve,
    engine: EngineSettings,
    work: Work,
    developers: Sequence[int],
    within: float | None,
    seed: int,
    tell: Tell = lambda _what, _percent: None,
    fixed: bool = False,
    keys: int = KEYS,
) -> list[Row]:
    """Everything that is reported, the settings as given first.

    Args:
        within: the bound on 95 % of the waits, in milliseconds.
        fixed: whether to report waits on ``engine.replicas``, and not on as many as the bound needs.
        keys: that are simulated for each number of developers on a replica.
    """
    rows: list[Row] = []
    replicas: list[int] = []
    wanted = changes(engine, work)
    for number, change in enumerate(wanted):

        def said(what: str, name: str = change.name, percent: int = 100 * number // len(wanted)) -> None:
            tell(f"simulating {name}: {what}", percent)

        replica = Replica(curve, change.engine, change.work, seed, within or _PATIENCE_MS, said, keys)
        needed = [replicas_for(replica, each, within) for each in developers] if within else []
        if not rows:
            # Where no number is enough, the best that there is: one for each developer.
            enough = [each or count for each, count in zip(needed, developers, strict=False)]
            replicas = enough if enough and not fixed else [engine.replicas] * len(developers)
        answers = [answer(replica, each, count) for each, count in zip(developers, replicas, strict=True)]
        rows.append(Row(change, answers, needed, replica.loads()))
    tell("simulated", 100)
    return rows
