"""Which token comes next where only the best logits are known, as engines elsewhere name them.

Every token that a row does not name has at most the lowest logit that it names. The choice is made where it is the same
whatever lies below; else ``Undecided`` is raised, and somebody has to find out more. Rows hold ``-inf`` for what is
not named, and log-probabilities do for logits: they differ by a constant for each row, which changes no choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from codespec.protocols import CodespecError, GrammarState, Sampling
from codespec.speculative.ranking import top_p_count
from codespec.speculative.sampling import Floats, Ids, LogitSampler, Scores

_MARGIN = 1e-9
"""What a sum must stay away from a limit by, for a sum in another order to be on the same side of it."""

_LEAST = float(np.finfo(np.float32).min)


class Undecided(Exception):
    """The logits that are known leave more than one token possible."""


class _Field(NamedTuple):
    """Who takes part in a choice.

    Attributes:
        ids: the named tokens that grammar and settings allow, best first.
        values: their scores.
        hidden: the highest scores that the other tokens may have [V], ``-inf`` where they are out of the question.
    """

    ids: Ids
    values: Floats
    hidden: Scores

    @property
    def bound(self) -> float:
        """What no hidden token's score exceeds; ``-inf`` where there is none."""
        return float(self.hidden.max())


class _Survivors(NamedTuple):
    """What filters leave of a field.

    Attributes:
        sure: how many of the first tokens are left in any case.
        possible: how many of them may be left.
        floor: hidden tokens below this score are not left; ``inf`` where none of them can be.
    """

    sure: int
    possible: int
    floor: float


class SparseSampler(LogitSampler):
    """Chooses the target's token from the best logits alone; drafts see all of theirs, and ``pick`` as ever.

    Raises:
        CodespecError: a setting is out of its range, or needs logits as they are: repeat penalties multiply them.
    """

    complete = False

    def __init__(self, sampling: Sampling, prompt_length: int) -> None:
        super().__init__(sampling, prompt_length)
        if sampling.repeat_penalty != 1 and sampling.penalty_window > 0:
            raise CodespecError(
                "`repeat_penalty` needs logits, of which an engine elsewhere tells the probabilities alone; "
                "set it to 1, or use `frequency_penalty` or `presence_penalty`"
            )

    def only_choice(self, logits: Scores) -> int | None:
        """As ``LogitSampler.only_choice``; None where tokens that are not named may matter, too."""
        best = super().only_choice(logits)
        if best is None or self._reach is None:
            return None
        return best if _lowest(logits) < float(logits[best]) + self._reach else None

    def choose_closely(self, logits: Scores, tokens: Sequence[int], grammar: GrammarState | None) -> int | None:
        """As ``LogitSampler.choose_closely``.

        Raises:
            Undecided: tokens that are not named may matter.
        """
        if self.sampling.temperature == 0:
            return self._greedy(logits, tokens, grammar)
        for field in self._fields(logits, tokens, grammar):
            if not len(field.ids):
                return _only_hidden(field)
            token = self._drawn_surely(field, tokens)
            if token is not None:
                return token
        raise Undecided

    def _greedy(self, logits: Scores, tokens: Sequence[int], grammar: GrammarState | None) -> int | None:
        scores, hidden = self._known(logits, tokens)
        # The grammar is asked as it is about a whole row: at which ends it was asked decides where texts are cut.
        token = self._best_allowed(scores, grammar) if float(scores.max()) > -math.inf else None
        score = -math.inf if token is None else float(scores[token])
        if score > float(hidden.max()):
            return token
        if grammar is not None:
            hidden = self._masked(hidden, grammar)
        bound = float(hidden.max())
        if score > bound or (token is None and bound == -math.inf):
            return token
        if token is None and np.count_nonzero(hidden > -math.inf) == 1:
            return int(hidden.argmax())
        raise Undecided

    def _known(self, logits: Scores, tokens: Sequence[int]) -> tuple[Scores, Scores]:
        """The adjusted scores [V] of the named tokens, and the most that those of all others can be [V]."""
        named = logits > -math.inf
        if not named.any():  # nothing is known at all
            hidden = self._adjusted(np.zeros(len(logits), np.float32), tokens)
            return np.full(len(logits), -math.inf, np.float32), hidden
        scores = self._adjusted(logits, tokens)
        if not float(scores[scores.argmax()]) < math.inf:
            raise CodespecError("the engine's log-probabilities are not numbers; its log may say more")
        others = np.where(named, np.float32(-math.inf), np.float32(_lowest(logits)))
        return scores, self._adjusted(others, tokens)

    def _fields(self, logits: Scores, tokens: Sequence[int], grammar: GrammarState | None) -> Iterator[_Field]:
        """The field with every hidden token, then with those alone that the grammar allows: its mask costs time."""
        scores, hidden = self._known(logits, tokens)
        ids = self._named(scores, float(hidden.max()), grammar)
        field = _Field(ids, scores[ids].astype(np.float64), hidden)
        if len(ids) or grammar is None:
            yield field
        if grammar is not None:
            yield field._replace(hidden=self._masked(hidden, grammar))

    def _named(self, scores: Scores, bound: float, grammar: GrammarState | None) -> Ids:
        """The named tokens that the grammar allows, best first, as many as matter: hidden ones may reach ``bound``."""
        count = int(np.count_nonzero(scores > -math.inf))
        if not count:
            return np.zeros(0, np.int64)
        wanted = min(count, self.sampling.top_k or count)
        ids = self._allowed_best(scores, wanted, grammar)
        if len(ids) == wanted < count and scores[ids[-1]] <= bound:
            ids = self._allowed_best(scores, count, grammar)
        return ids

    def _survivors_of(self, field: _Field) -> _Survivors:
        """What top-k, top-p and min-p leave, in that order, for every score that hidden tokens can have."""
        sampling, bound = self.sampling, field.bound
        count = len(field.values)
        first = int(np.count_nonzero(field.values > bound))  # ranks that are known
        places = sampling.top_k or len(field.hidden)
        sure = min(first, places)
        floor = -math.inf
        if sure == places or (sure == count and bound == -math.inf):
            possible, floor = sure, math.inf
        else:
            possible = count
        if sure and sampling.top_p < 1:
            least, most = self._top_p_counts(field, sure, places)
            if most <= sure:
                possible, floor = most, math.inf
            sure = min(sure, least)
        if sure and sampling.min_p > 0:
            lowest = float(field.values[0]) + math.log(sampling.min_p)
            near = int(np.count_nonzero(field.values >= lowest))
            sure, possible, floor = min(sure, near), min(possible, near), max(floor, lowest)
        return _Survivors(sure, possible, floor)

    def _top_p_counts(self, field: _Field, sure: int, places: int) -> tuple[int, int]:
        """How many tokens top-p leaves at least and at most, where the first ``sure`` ranks are known."""
        top_p, values = self.sampling.top_p, field.values
        known = values[:sure]
        others = len(values) - sure + int(np.count_nonzero(field.hidden > -math.inf))
        slots = min(places - sure, others)
        if slots <= 0:
            count = top_p_count(known, None, top_p)
            return count, count
        # No other token weighs more than the best of them could.
        highest = max(field.bound, float(values[sure]) if sure < len(values) else -math.inf)
        weights = np.exp(known - known[0]).cumsum()
        total = float(weights[-1])
        most = total + slots * math.exp(highest - float(known[0]))
        least = int(np.searchsorted(weights, top_p * total * (1 - _MARGIN))) + 1
        return least, int(np.searchsorted(weights, top_p * most * (1 + _MARGIN))) + 1

    def _drawn_surely(self, field: _Field, tokens: Sequence[int]) -> int | None:
        """The token that the noise chooses; None where one that may be left out, or is not named, could win."""
        left = self._survivors_of(field)
        if not left.sure:
            return None
        if left.possible == left.sure == 1 and field.bound < left.floor:
            return int(field.ids[0])
        noisy = self._perturbed(field.values[: left.possible], tokens, field.ids[: left.possible])
        best = int(noisy[: left.sure].argmax())
        if left.possible > left.sure and noisy[left.sure :].max() >= noisy[best]:
            return None
        rivals = np.flatnonzero(field.hidden >= max(left.floor, _LEAST))
        if len(rivals):
            highest = self._perturbed(field.hidden[rivals].astype(np.float64), tokens, rivals).max()
            if highest >= noisy[best]:
                return None
        return int(field.ids[best])


def _only_hidden(field: _Field) -> int | None:
    """The token where no named one is allowed; None where no other one is.

    Raises:
        Undecided: there are several.
    """
    left = np.flatnonzero(field.hidden > -math.inf)
    if len(left) > 1:
        raise Undecided
    return int(left[0]) if len(left) else None


def _lowest(logits: Scores) -> float:
    """The lowest logit that is named; ``inf`` where none is."""
    return float(np.min(logits, where=logits > -math.inf, initial=math.inf))
