"""Asks for the next edit of every case, and judges what is offered."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from time import perf_counter, process_time

from benchmarks.edit import judging
from benchmarks.edit.case import Case
from benchmarks.quality.judges import Judge, judge_of
from codespec.edits.predictor import EditPredictor
from codespec.edits.request import Edit
from codespec.languages import by_id
from codespec.protocols import CodespecError, Statistics


@dataclass
class Outcome:
    """What became of one case.

    Attributes:
        why: nothing is offered; empty where something is.
        by: what made the offer: ``rename`` or ``model``.
        edits: that are offered.
        exact: the offer, or that there is none, is just what is due.
        part: all of the offer is due, and there is more.
        right, wanted, made: characters: changed as they should be, that should be, that are.
        undone, outside, large, space: harm: see ``judging``.
        errors: that the document has more with the offer.
        raw: what the model's answer would have been worth without the gate: ``exact``, ``none`` or ``wrong``.
        refused: by which rule the gate kept back an answer.
        ms, cpu_ms: until the answer, and of processors: what it takes on a machine that does nothing else.
        windows: that were asked for.
    """

    kind: str
    language: str
    path: str
    why: str = ""
    by: str = ""
    edits: tuple[Edit, ...] = ()
    exact: bool = False
    part: bool = False
    right: int = 0
    wanted: int = 0
    made: int = 0
    undone: bool = False
    outside: bool = False
    large: bool = False
    space: bool = False
    errors: list[str] = field(default_factory=list)
    raw: str = ""
    refused: str = ""
    ms: float = 0.0
    cpu_ms: float = 0.0
    windows: int = 0
    statistics: Statistics = field(default_factory=Statistics)

    @property
    def shown(self) -> bool:
        """Whether something is offered."""
        return bool(self.edits)


def chosen(cases: Iterable[Case], count: int, seed: int) -> list[Case]:
    """At most ``count`` cases of each kind and language; 0: all. The same for the same seed."""
    found = list(cases)
    random.Random(seed).shuffle(found)
    if not count:
        return found
    taken: Counter[tuple[str, str]] = Counter()
    kept = []
    for case in found:
        taken[case.kind, case.language] += 1
        if taken[case.kind, case.language] <= count:
            kept.append(case)
    return kept


def replayed(
    predictor: EditPredictor, cases: Iterable[Case], budget_ms: float, say: Callable[[str], object]
) -> Iterator[Outcome]:
    """The outcomes, in order.

    Raises:
        CodespecError: decoding failed.
    """
    judges: dict[str, Judge | None] = {}
    for number, case in enumerate(cases, 1):
        if case.language not in judges:
            judges[case.language] = _judge(case.language)
            if judges[case.language] is None:
                say(f"{case.language}: nothing judges it here\n")
        yield outcome(predictor, case, budget_ms, judges[case.language])
        say(f"{number} cases")


def _judge(language: str) -> Judge | None:
    try:
        return judge_of(by_id(language))
    except CodespecError:
        return None


def outcome(predictor: EditPredictor, case: Case, budget_ms: float, judge: Judge | None) -> Outcome:
    """Ask for one."""
    began, worked = perf_counter(), process_time()
    offer = predictor.predict(case.request(budget_ms))
    ms, cpu_ms = ((now - then) * 1000 for now, then in ((perf_counter(), began), (process_time(), worked)))
    found = Outcome(case.kind, case.language, case.path, ms=ms, cpu_ms=cpu_ms)
    found.why, found.by, found.windows = predictor.why, predictor.by, len(predictor.attempts)
    for attempt in predictor.attempts:
        found.statistics.add(attempt.statistics)
    _judge_raw(predictor, case, found)
    if offer is None:
        found.exact = case.updated == case.text
        _, found.wanted, _ = judging.characters(case, case.text)
        return found
    found.edits = offer.edits
    updated = judging.apply(case.text, offer.edits) if offer.path == case.path else case.text
    found.exact, found.part = updated == case.updated, judging.part_of(case, updated)
    found.right, found.wanted, found.made = judging.characters(case, updated)
    found.undone = judging.undone(case, offer.edits)
    found.outside = judging.outside(case, offer.edits, sum(predictor.format.around) + 1)
    found.large = judging.larger_than_needed(case, offer.edits)
    found.space = judging.only_space(case, updated)
    if judge is not None:
        found.errors = judging.worse(judge, case, updated)
    return found


def _judge_raw(predictor: EditPredictor, case: Case, found: Outcome) -> None:
    """The first window's answer, before the gate."""
    if not predictor.attempts:
        return
    attempt = predictor.attempts[0]
    window = attempt.place.window
    if attempt.updated is None:
        found.raw = "none"
        return
    new = case.text[: window.start] + attempt.updated + case.text[window.end :]
    found.raw = "exact" if new == case.updated else "wrong"
    found.refused = attempt.why
