"""The budget of drafting: what a draft model is expected to save, how far to believe that, and when to rest."""

from __future__ import annotations

from collections.abc import Sequence

_CREDIT, _MOST, _ALLOWANCE, _WAKE = 1.5, 2.5, 0.01, 0.3  # passes of the target
_MOST_COPYING = 10.0  # where a window is copied: one long proposal that fails at a difference costs 2 to 5
_LOOKS_AFTER, _LOOKS_AT_LEAST = 8, 512  # rounds asleep


class ConfidenceSpread:
    """How sure a draft model is of its tokens, in two groups: asking it pays because of the surer one.

    Attributes:
        groups: (share, mean chance) of the tokens with at least an even chance, and of the others.
        mean: the mean chance of all.
    """

    def __init__(self) -> None:
        self.groups, self.mean = [(0.5, 0.85), (0.5, 0.35)], 0.6
        self._sums = [[2.0, 1.7], [2.0, 0.7]]

    def count(self, chance: float) -> None:
        """Count a token of the model that was expected to be accepted with probability ``chance``."""
        for sums in self._sums:
            sums[0] *= 0.99
            sums[1] *= 0.99
        sums = self._sums[chance < 0.6]
        sums[0] += 1
        sums[1] += chance
        (good, sure), (bad, doubtful) = self._sums
        self.groups = [(good / (good + bad), sure / good), (bad / (good + bad), doubtful / bad)]
        self.mean = (sure + doubtful) / (good + bad)


class ExpectedSaving:
    """What a round expects to save by asking the draft model, from the first token that it is asked for.

    Args:
        depth: tokens proposed before.
        worth: what the model's tokens were expected to save, in tokens, the time of the first not counted.
        rate: tokens per millisecond without the model.
        costs: of the target.
    """

    def __init__(self, depth: int, worth: float, rate: float, costs: Sequence[float]) -> None:
        self.depth, self.worth, self.rate, self.costs = depth, worth, rate, costs
        self.length = depth  # of the proposal in the end
        self.further_ms = 0.0  # the model's time after the first token

    def saved(self, accepted: int) -> float:
        """Tokens that the round saved in the end, as ``worth`` counts them; negative: it cost more than it gave."""
        ms = self.costs[max(self.length, self.depth) + 1] - self.costs[self.depth + 1] + self.further_ms
        return max(0, accepted - self.depth) - ms * self.rate


class SavingTrust:
    """The share of the expected savings that came true: a factor for the next expectation."""

    def __init__(self) -> None:
        self._expected = self._saved = 4.0

    def learn(self, asked: ExpectedSaving, accepted: int) -> None:
        """Enter the outcome of a round in which the model was asked; the target accepted ``accepted`` tokens."""
        self._expected = self._expected * 0.98 + asked.worth
        self._saved = self._saved * 0.98 + asked.saved(accepted)

    def forget(self) -> None:
        """Enter a round without the model, which makes older outcomes count a little less."""
        self._expected += 0.005 * (4.0 - self._expected)
        self._saved += 0.005 * (4.0 - self._saved)

    @property
    def factor(self) -> float:
        """The factor, between 0 and 1.5."""
        return min(1.5, max(0.0, self._saved / max(self._expected, 1e-3)))


class SpendingGuard:
    """Lets drafting cost no more than it saved, but for a small credit, all its own time included.

    An account in passes of the target: it starts with a credit, every round adds an allowance and what the round
    saved or cost. Overdrawn, the draft sleeps until the allowance has filled the account to ``_WAKE`` again. So a
    text takes at most ``_ALLOWANCE`` longer than the target alone would take, and the credit.

    Asleep it may look now and then for what is nearly sure to pay; each time that did not, it looks more rarely.
    """

    def __init__(self) -> None:
        self._balance = _CREDIT
        self._sleeps = self._woken = False
        self._slept, self._pause = 0, _LOOKS_AFTER

    def learn(self, saved: float, copying: bool = False) -> None:
        """Enter the outcome of a round, in target passes saved; negative: it cost them.

        Args:
            copying: the text repeats a window; then the account may hold more of what was saved.
        """
        self._balance = min(_MOST_COPYING if copying else _MOST, self._balance + max(-2.0, saved) + _ALLOWANCE)
        self._sleeps = self._balance < 0
        if self._woken:
            self._woken = False
            # While it pays, every round; a failure may have cost some passes.
            self._pause = 1 if saved > 0 else min(_LOOKS_AT_LEAST, 4 * self._pause)

    def missed(self, saved: float) -> None:
        """Enter what a skipped round would have saved, in target passes; half of it counts towards waking."""
        if saved > 0:
            self._balance = min(_MOST, self._balance + saved / 2)

    def wakes(self, saved: float) -> bool:
        """Whether to miss so much ends the sleep."""
        return saved > 0 and self._balance + saved / 2 >= _WAKE

    def looks(self) -> bool:
        """Whether a sleeping draft may look at this round for something that is nearly sure to pay."""
        self._slept += 1
        if self._slept < self._pause:
            return False
        self._slept, self._pause = 0, max(_LOOKS_AFTER, self._pause // 2)
        return True

    def wake(self) -> None:
        """A look has found something: this round drafts, and ``learn`` enters what it saved."""
        self._woken = True

    def asleep(self) -> bool:
        """Whether this round must not draft; a sleeping draft gets its allowance."""
        if self._sleeps:
            self._balance += _ALLOWANCE
            self._sleeps = self._balance < _WAKE
        return self._sleeps
