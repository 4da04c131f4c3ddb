"""A proposal that grows token by token, and what each of its lengths is expected to give and to take."""

from __future__ import annotations

from collections.abc import Sequence

from codespec.draft.copying import Guess
from codespec.draft.costs import LONGEST

AHEAD = 8
"""Further tokens that count in the decision whether to ask the draft model for the next one."""

_SEES = 0.5  # of an n-gram's errors a model is assumed to see


class GrowingProposal:
    """The tokens of one proposal, and how many of them are expected to be accepted in what time.

    Args:
        tokens: the text before the proposal.
        costs: of the target's passes, see ``RunningCosts.at``.
        again_ms: to decode what was rejected again.

    Attributes:
        text: and what is proposed; one list, which grows and shrinks.
        start: where the proposal begins in it.
        guesses: for each token what was said there, the proposed one first.
        expected: tokens of the round at each length of the proposal.
        product: the chance that all of the proposal is accepted.
        best: the length with the most expected tokens per millisecond so far.
        spent: milliseconds of this round until the model last answered.
    """

    def __init__(self, tokens: Sequence[int], costs: Sequence[float], again_ms: float) -> None:
        self.text, self.start = list(tokens), len(tokens)
        self.costs, self.again_ms = costs, again_ms
        self.guesses: list[list[Guess]] = []
        self.expected = [1.0]
        self.product = 1.0
        self.best = 0
        self.spent = 0.0

    @property
    def tokens(self) -> list[int]:
        """The tokens proposed so far."""
        return self.text[self.start :]

    def append(self, guesses: list[Guess], chance: float) -> None:
        """Append the first of ``guesses``, which is accepted with ``chance`` where all before it are."""
        self.text.append(guesses[0][0])
        self.guesses.append(guesses)
        self.product *= chance
        self.expected.append(self.expected[-1] + self.product)
        length = len(self.guesses)
        if self.rate(length) > self.rate(self.best):
            self.best = length

    def cut(self, length: int) -> None:
        """Keep the first tokens only."""
        del self.text[self.start + length :], self.guesses[length:], self.expected[length + 1 :]
        self.product = self.expected[-1] - self.expected[-2] if length else 1.0
        self.best = self.best_length()

    def best_length(self) -> int:
        """The length with the most expected tokens per millisecond."""
        rates = [self.rate(length) for length in range(len(self.expected))]
        return rates.index(max(rates))

    def rate(self, length: int) -> float:
        """Expected tokens per millisecond."""
        return self.expected[length] / (self._ms(length) + self.spent)

    def _ms(self, length: int) -> float:
        """What a proposal of this length takes: its pass, and to decode a part of it again if it is rejected."""
        whole = self.expected[length] - self.expected[length - 1] if length else 1.0
        return self.costs[length + 1] + (1 - whole) * self.again_ms

    def worth(self, groups: Sequence[tuple[float, float]], step: float) -> tuple[float, float]:
        """What a token more, and those that may follow it, are expected to save.

        Args:
            groups: (share, chance) of what the next tokens may be like.
            step: milliseconds to get one.

        Returns:
            Milliseconds, the time to get the first token not counted; and tokens per millisecond as it stands.
        """
        rate, begin = self.rate(self.best), len(self.guesses) + 2
        token_ms, before = 1 / rate, self.expected[-1] - self.expected[self.best]
        ahead = self.costs[begin : begin + AHEAD]  # rows as many as there are tokens, and one
        worth = 0.0
        for share, chance in groups:
            gained, product, most = before, self.product, 0.0
            spent = self._ms(self.best)  # what is saved by, less what further tokens take
            for cost in ahead:
                product *= chance
                gained += product
                most = max(most, gained * token_ms - cost - (1 - product) * self.again_ms + spent)
                spent -= step
            worth += share * most
        return worth, rate

    def worth_of_better(self, chance: float, better: float) -> float:
        """Milliseconds that a model, right with the chance ``better``, is expected to save where it replaces a copied
        token, right with ``chance``."""
        # What is copied wrongly costs a row of the target, and everything after it.
        depth = len(self.guesses)
        reach = min(depth + 5, LONGEST)
        row = max(0.0, (self.costs[reach] - self.costs[depth + 1]) / max(1, reach - depth - 1))
        token_ms = 1 / self.rate(self.best)
        return self.product * (1 - chance) * (_SEES * row + better * max(0.0, token_ms - row))

    def further(self, chance: float) -> int:
        """How many more tokens of one chance are expected to pay most; 0 is none."""
        depth = len(self.guesses)
        gained, product = self.expected[-1], self.product
        rates = [max(tokens / self._ms(n) for n, tokens in enumerate(self.expected))]
        for m in range(1, min(2 * AHEAD, LONGEST - 1 - depth) + 1):
            product *= chance
            gained += product
            rates.append(gained / (self.costs[depth + 1 + m] + (1 - product) * self.again_ms))
        return rates.index(max(rates))
