"""How likely it is that the target takes a proposed token, learnt from those that it took and refused."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

DEPTHS = 4
"""Depths that are told apart: the first tokens of a proposal and all later ones."""

DISCOUNT = 0.98
"""Of old counts at each new one: a memory of about 50 tokens of a kind, since texts change from place to place."""

_STRENGTH = 6.0  # tokens that a prior counts for

MODEL_EDGES = (0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.96, 0.99)
_MODEL_PRIOR = (0.12, 0.25, 0.38, 0.5, 0.63, 0.75, 0.85, 0.92, 0.97)
_NGRAM_PRIOR = (0.2, 0.35, 0.5, 0.65, 0.8, 0.92)
NGRAM_EDGES = (3, 4, 6, 9, 16)

Kind = tuple[str, int]
"""A source of tokens and the bin of its confidence."""


def model_bin(confidence: float) -> int:
    """The bin of a draft model's own probability."""
    place = 0
    for edge in MODEL_EDGES:
        if confidence < edge:
            break
        place += 1
    return place


def ngram_bin(length: int) -> int:
    """The bin of the length of the text that occurred before."""
    place = 0
    for edge in NGRAM_EDGES:
        if length < edge:
            break
        place += 1
    return place


@cache
def prior(kind: Kind) -> float:
    """What is assumed before anything was seen."""
    source, place = kind
    if source == "forced":
        return 0.98
    if source.startswith("ngram"):
        likely = _NGRAM_PRIOR[min(place, len(_NGRAM_PRIOR) - 1)]
        return likely if source == "ngram" else likely * 0.8
    likely = _MODEL_PRIOR[min(place, len(_MODEL_PRIOR) - 1)]
    if source == "both":
        return 1 - (1 - likely) * 0.6
    return likely * 0.85 if source == "contested" else likely


class Acceptance:
    """Beta posteriors of acceptance, one for each source, confidence bin and depth, for one kind of text.

    A token counts only where everything proposed before it was taken: what comes after a rejection was guessed from
    a text that never was. A depth starts from what the bin knows over all depths, and a bin from ``prior``. Old counts
    are discounted, so that it follows a change of text.
    """

    def __init__(self, counts: Mapping[tuple[str, int, int], tuple[float, float]] | None = None) -> None:
        # For each kind: [accepted, seen, chance] over all depths, then at each depth.
        self._cells: dict[Kind, list[list[float]]] = {}
        for (source, place, depth), (accepted, seen) in (counts or {}).items():
            if -1 <= depth < DEPTHS:
                self._of((source, place))[depth + 1][:2] = [accepted, seen]
        for kind, cells in self._cells.items():
            for depth in range(DEPTHS + 1):
                _update(cells, depth, prior(kind))

    def _of(self, kind: Kind) -> list[list[float]]:
        cells = self._cells.get(kind)
        if cells is None:
            cells = self._cells[kind] = [[0.0, 0.0, prior(kind)] for _ in range(DEPTHS + 1)]
        return cells

    def chance(self, kind: Kind, depth: int) -> float:
        """The expected chance that a token at ``depth`` (0 is the first) is taken, if all before it were."""
        return self._of(kind)[depth + 1 if depth < DEPTHS else DEPTHS][2]

    def learn(self, kind: Kind, depth: int, accepted: bool) -> None:
        """A token was taken or refused, and all proposed before it were taken."""
        cells = self._of(kind)
        for cell in (cells[0], cells[depth + 1 if depth < DEPTHS else DEPTHS]):
            cell[0] = cell[0] * DISCOUNT + accepted
            cell[1] = cell[1] * DISCOUNT + 1
        for place in range(DEPTHS + 1):
            _update(cells, place, prior(kind))

    def as_json(self) -> list[list[Any]]:
        """For ``from_json``."""
        return [
            [*kind, depth - 1, round(accepted, 3), round(seen, 3)]
            for kind, cells in self._cells.items()
            for depth, (accepted, seen, _) in enumerate(cells)
            if seen
        ]

    @classmethod
    def from_json(cls, data: Any) -> Acceptance:
        """What ``as_json`` described.

        Raises:
            ValueError: something else.
        """
        try:
            counts = {
                (str(source), int(place), int(depth)): (float(a), float(n)) for source, place, depth, a, n in data
            }
        except (OverflowError, TypeError, ValueError) as error:
            raise ValueError(f"no counts of accepted tokens: {error}") from error
        if not all(0 <= a <= n + 1e-6 and n < 1e6 for a, n in counts.values()):
            raise ValueError("no counts of accepted tokens: more accepted than seen")
        if not all(place >= 0 for _, place, _ in counts):
            raise ValueError("no counts of accepted tokens: no such bin")
        return cls(counts)


def _update(cells: list[list[float]], place: int, start: float) -> None:
    """The chance of a cell: all depths together start from the prior, one depth from all together."""
    cell = cells[place]
    cell[2] = (cell[0] + _STRENGTH * (cells[0][2] if place else start)) / (cell[1] + _STRENGTH)
