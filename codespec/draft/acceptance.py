"""How likely it is that the target takes a proposed token, learnt from those that it took and refused."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from functools import cache
from typing import Any

DEPTHS = 4
"""Depths that are told apart: the first tokens of a proposal and all later ones."""

DISCOUNT = 0.98
"""Of old counts at each new one: a memory of about 50 tokens of a kind, since texts change from place to place."""

_STRENGTH = 6.0  # tokens that a prior counts for

MODEL_EDGES = (0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.96, 0.99)
_MODEL_PRIOR = (0.3, 0.5, 0.6, 0.7, 0.8, 0.87, 0.92, 0.96, 0.98)
_BOTH_WRONG = 0.3  # how often a token that two sources propose is wrong, to one that the model alone does
_NGRAM_PRIOR = (0.2, 0.35, 0.5, 0.65, 0.8, 0.92)
NGRAM_EDGES = (3, 4, 6, 9, 16)
_WINDOW_PRIOR = {
    "window": (0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.985, 0.99),
    "window-back": (0.6, 0.7, 0.8, 0.88, 0.94, 0.97, 0.98, 0.985),
    "window-change": (0.6, 0.8, 0.9, 0.4, 0.5, 0.3, 0.8, 0.5),
}
_LOST_PRIOR = (0.5, 0.7, 0.8, 0.6, 0.4, 0.55, 0.65, 0.75, 0.85)
_WRONG = (1.0, 0.8, 0.6)  # of that, by the guesses that were wrong at the same difference
_BESIDE, _CONTESTED = "-beside", "-contested"
_CONTRADICTED, _CONTRADICTED_LOST = 0.8, 0.25  # of the chance of a copied token, where something else is said
BITS_EDGES = (4, 8, 16, 32, 64, 128, 256)

GuessKind = tuple[str, int]
"""A source of tokens and the bin of its confidence."""


def model_bin(confidence: float) -> int:
    """The bin of a draft model's own probability."""
    return bisect_right(MODEL_EDGES, confidence)


def ngram_bin(length: int) -> int:
    """The bin of the length of the text that occurred before."""
    return bisect_right(NGRAM_EDGES, length)


def found_kind(bits: float, back: bool) -> GuessKind:
    """The kind of a guess where a text follows a window.

    Args:
        bits: what the tokens that came as the window has them say about the place.
        back: whether the place was lost before.
    """
    return "window-back" if back else "window", bisect_right(BITS_EDGES, bits)


def lost_kind(place: int, wrong: int) -> GuessKind:
    """The kind of a guess where a text differs from a window.

    Args:
        place: what is supposed, see ``alignment``.
        wrong: guesses that were wrong since it differs.
    """
    return "window-lost", place + len(_LOST_PRIOR) * min(wrong, len(_WRONG) - 1)


def beside(kind: GuessKind) -> GuessKind:
    """The kind of a guess where another copied text says something else."""
    return kind[0] + _BESIDE, kind[1]


def contested(kind: GuessKind) -> GuessKind:
    """The kind of a copied guess where the draft model says something else."""
    name = kind[0].removesuffix(_BESIDE)
    return ("ngram" if name.startswith("ngram") else name) + _CONTESTED, kind[1]


def source_of(kind: GuessKind) -> str:
    """The source of a guess as ``Proposal.sources`` names it."""
    name = kind[0]
    return "model" if name in ("foreign", "both", "contested") else name.partition("-")[0]


@cache
def prior(kind: GuessKind) -> float:
    """The chance of acceptance that is assumed of a kind of guess before any was seen."""
    source, place = kind
    if source == "forced":
        return 0.98
    if source.endswith((_BESIDE, _CONTESTED)):
        alone = prior((source.removesuffix(_BESIDE).removesuffix(_CONTESTED), place))
        return _CONTRADICTED_LOST * alone if source.startswith("window-lost") else _CONTRADICTED * alone
    if source == "window-lost":
        again, supposed = divmod(place, len(_LOST_PRIOR))
        return _LOST_PRIOR[supposed] * _WRONG[min(again, len(_WRONG) - 1)]
    if source in _WINDOW_PRIOR:
        return _WINDOW_PRIOR[source][min(place, len(_WINDOW_PRIOR[source]) - 1)]
    if source.startswith("ngram"):
        likely = _NGRAM_PRIOR[min(place, len(_NGRAM_PRIOR) - 1)]
        return likely if source == "ngram" else likely * 0.8
    likely = _MODEL_PRIOR[min(place, len(_MODEL_PRIOR) - 1)]
    if source == "both":
        return 1 - (1 - likely) * _BOTH_WRONG
    return likely * 0.85 if source == "contested" else likely


class Acceptance:
    """Beta posteriors of acceptance, one for each source, confidence bin and depth, for one kind of text.

    A token counts only where everything proposed before it was taken: what comes after a rejection was guessed from
    a text that never was. A depth starts from what the bin knows over all depths, and a bin from ``prior``. Old counts
    are discounted, so that it follows a change of text.
    """

    def __init__(self, counts: Mapping[tuple[str, int, int], tuple[float, float]] | None = None) -> None:
        # For each kind: [accepted, seen] over all depths, then at each depth.
        self._cells: dict[GuessKind, list[list[float]]] = {}
        self._chances: dict[GuessKind, list[float]] = {}  # at each depth, until more is learnt
        for (source, place, depth), (accepted, seen) in (counts or {}).items():
            if -1 <= depth < DEPTHS:
                self._of((source, place))[depth + 1] = [accepted, seen]

    def _of(self, kind: GuessKind) -> list[list[float]]:
        cells = self._cells.get(kind)
        if cells is None:
            cells = self._cells[kind] = [[0.0, 0.0] for _ in range(DEPTHS + 1)]
        return cells

    def chance(self, kind: GuessKind, depth: int) -> float:
        """The expected chance that a token at ``depth`` (0 is the first) is taken, if all before it were."""
        chances = self._chances.get(kind)
        if chances is None:
            (accepted, seen), *depths = self._of(kind)
            over_all = _STRENGTH * (accepted + _STRENGTH * prior(kind)) / (seen + _STRENGTH)
            chances = [(accepted + over_all) / (seen + _STRENGTH) for accepted, seen in depths]
            self._chances[kind] = chances
        return chances[depth if depth < DEPTHS else DEPTHS - 1]

    def learn(self, kind: GuessKind, depth: int, accepted: bool) -> None:
        """Enter that a token at ``depth`` was accepted or refused, where all proposed before it were accepted."""
        self._chances.pop(kind, None)
        cells = self._of(kind)
        for cell in (cells[0], cells[depth + 1 if depth < DEPTHS else DEPTHS]):
            cell[0] = cell[0] * DISCOUNT + accepted
            cell[1] = cell[1] * DISCOUNT + 1

    def as_json(self) -> list[list[Any]]:
        """The counts as ``from_json`` reads them: lists of source, bin, depth, accepted and seen."""
        return [
            [*kind, depth - 1, round(accepted, 3), round(seen, 3)]
            for kind, cells in self._cells.items()
            for depth, (accepted, seen) in enumerate(cells)
            if seen
        ]

    @classmethod
    def from_json(cls, data: Any) -> Acceptance:
        """The counts that ``as_json`` described.

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
