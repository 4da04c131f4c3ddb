"""One proposal, put together token by token from all sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codespec.draft.acceptance import GuessKind, beside, contested, model_bin
from codespec.draft.copying import Follower, Guess
from codespec.draft.costs import LONGEST
from codespec.draft.draft_budget import ExpectedSaving
from codespec.draft.draft_length import FixedLength
from codespec.draft.ledger import Ledger
from codespec.protocols import CodespecError, Distribution, Draft, GrammarState, Pick, Sampler

AHEAD = 8
"""Further tokens that count in the decision whether to ask the draft model for the next one."""

PROBE = 32
"""Rounds without the model after which it is asked for one token, only to see how good it is."""

REFUSED = 7
"""Rounds in which the model is not asked for the first token after that has turned out not to pay."""

HORIZON = 16
"""Rounds over which the time to decode what the model has not seen is spread."""

_HOPELESS = 0.02
_SEES = 0.5  # of an n-gram's errors a model is assumed to see
_OTHER_VOCABULARY: GuessKind = ("foreign", 4)  # the name under which profiles on disks have it
_FORCED: GuessKind = ("forced", 0)


class ProposalRound:
    """A proposal while it is put together, and afterwards what is needed to learn from its outcome."""

    def __init__(
        self,
        ledger: Ledger,
        tokens: Sequence[int],
        grammar: GrammarState | None,
        sampler: Sampler,
        followers: Sequence[Follower],
        began: float,
    ) -> None:
        self.began = began
        self.ledger, self.grammar, self.sampler = ledger, grammar, sampler
        self.rejection = sampler.rejection
        self.text = list(tokens)  # and what is proposed
        self.start = len(self.text)
        self.costs, self.again_ms = ledger.costs.at(self.start), ledger.costs.again_ms
        # For each token of the proposal what was said there, the proposed one first, and what it was drawn from.
        self.guesses: list[list[Guess]] = []
        self.probabilities: list[Distribution | None] = []
        self.taken = 0  # of them the grammar has taken: it is asked for many at once
        self.cut = 0  # times that it refused some
        self.shadow: list[Guess] = []  # said about the first token and not proposed
        self.expected = [1.0]  # tokens of the round at each length of the proposal
        self.product = 1.0
        self.best = 0  # the length with the most expected tokens per millisecond so far
        self.spent = 0.0  # milliseconds of this round until the model last answered
        self.model = ledger.model
        self._kept: int | None = None
        self._model_costs: Sequence[float] = ()
        self.passes: list[tuple[int, float]] = []  # of the model: tokens, milliseconds
        self.followers = followers  # of the sources that copy, at the end of the proposal
        self.forced: list[int] = []
        self.asked: ExpectedSaving | None = None
        self.asked_other_vocabulary = False
        # Once it is over:
        self.length = 0  # what is proposed, or would have been
        self.asleep = False
        self.took_ms = 0.0

    @property
    def tokens(self) -> list[int]:
        """The tokens proposed so far."""
        return self.text[self.start :]

    @property
    def kept(self) -> int:
        """Tokens of the text that the model holds; computed once, where it matters."""
        if self._kept is None:
            self._kept = self.model.kept(self.text) if self.model is not None else 0
        return self._kept

    def said(self) -> list[list[Guess]]:
        """Every guess at each position of the proposal, the proposed one first."""
        if not self.shadow:
            return self.guesses
        return [[*self.guesses[0], *self.shadow], *self.guesses[1:]] if self.guesses else [self.shadow]

    def run(self, more: Callable[[float], bool]) -> None:
        """Extend the proposal for as long as that may pay."""
        ledger = self.ledger
        if ledger.forced is not None and self.grammar is not None:
            self.forced = ledger.forced.tokens(self.text, self.grammar)
        asked = ledger.begin_round()
        if self.model is not None and asked >= PROBE and not self.forced and self._probe_is_cheap():
            self._probe()
        while len(self.guesses) < LONGEST - 1 and self.product >= _HOPELESS and more(self.product):
            if not self._extend() and self._agreed():
                break
            over = self.grammar is not None and self.taken == len(self.guesses) and self.grammar.finished
            # Where the grammar refused a token something else may be said; once, since a grammar may contradict itself.
            if over or self.cut > 1 or self.text[-1] in ledger.end_tokens:
                break
        self._agreed()

    def _agreed(self) -> bool:
        """Let the grammar take what it has not seen of the proposal; False where it refused some: that is cut off."""
        pending = self.text[self.start + self.taken :]
        if self.grammar is None or not pending:
            return True
        taken = self.grammar.accept(pending)
        self.taken += taken
        if taken == len(pending):
            return True
        self.cut += 1
        kept = self.taken
        del self.text[self.start + kept :], self.guesses[kept:], self.probabilities[kept:], self.expected[kept + 1 :]
        self.product = self.expected[-1] - self.expected[-2] if kept else 1.0
        self.best = self._best_length()
        for each in self.followers:
            each.refused(self.tokens)
        self.forced = []
        return False

    def best_length(self) -> int:
        """The length of the proposal with the most expected tokens per millisecond."""
        self.spent = self.spent_ms()
        return self._best_length()

    def _best_length(self) -> int:
        rates = [self._rate(length) for length in range(len(self.expected))]
        return rates.index(max(rates))

    def _rate(self, length: int) -> float:
        return self.expected[length] / (self._ms(length) + self.spent)

    def _ms(self, length: int) -> float:
        """What a proposal of this length takes: its pass, and to decode a part of it again if it is rejected."""
        whole = self.expected[length] - self.expected[length - 1] if length else 1.0
        return self.costs[length + 1] + (1 - whole) * self.again_ms

    def spent_ms(self) -> float:
        """Milliseconds of this round so far."""
        return (self.ledger.clock() - self.began) * 1e3

    def _extend(self) -> bool:
        """Append the most promising token, or cut off what the grammar refuses; False where nothing more may pay."""
        if self.forced:
            return self._append([(self.forced.pop(0), _FORCED)])
        copied, chance = self._copied_guesses(), 0.0
        guess = copied[0] if copied else None
        if guess is not None:
            chance = self.ledger.acceptance.chance(guess[1], len(self.guesses))
            if self.rejection:
                alone = chance >= self.ledger.spread.mean
                if alone and self._worth([(1.0, chance)], 0.0)[0] <= 0:
                    return False
            else:
                alone = self.model is None or not self._model_may_better(chance)
            if alone:
                return self._append(copied)
            if not self._agreed():
                return True
            if self.grammar is not None and not self.grammar.allows(guess[0]):
                guess, copied, chance = None, [], 0.0
        if guess is None and self.ledger.other_vocabulary is not None:
            return not self._agreed() or self._ask_other_vocabulary(self.ledger.other_vocabulary)
        if self.model is None:
            return False
        if guess is None or self.rejection:
            pays = self._model_may_pay() if guess is None else self._model_may_better(chance)
            if not pays:
                return False
        return not self._agreed() or self._ask_model([] if self.rejection else copied)

    def _copied_guesses(self) -> list[Guess]:
        """What is copied next, the likeliest first."""
        said = [guess for each in self.followers if (guess := each.guess()) is not None]
        if len(said) < 2:
            return said
        if any(token != said[0][0] for token, _ in said):
            said = [(token, beside(kind)) for token, kind in said]
        depth, acceptance = len(self.guesses), self.ledger.acceptance
        return sorted(said, key=lambda guess: acceptance.chance(guess[1], depth), reverse=True)

    def _append(self, guesses: list[Guess], probabilities: Distribution | None = None) -> bool:
        """Append the first of ``guesses``, which the grammar may still refuse."""
        token, kind = guesses[0]
        depth = len(self.guesses)
        self.text.append(token)
        self.guesses.append(guesses)
        self.probabilities.append(probabilities)
        self.product *= self.ledger.acceptance.chance(kind, depth)
        self.expected.append(self.expected[-1] + self.product)
        if self._rate(depth + 1) > self._rate(self.best):
            self.best = depth + 1
        for each in self.followers:
            each.step(token)
        return True

    def _model_may_pay(self) -> bool:
        """Whether asking the model for the next token is expected to save more than it takes, where nothing else says
        anything."""
        ledger = self.ledger
        if ledger.refused > 0 and not self.guesses:
            ledger.refused -= 1  # nothing has changed since it was not worth it
            return False
        step = self.step_ms()
        worth, rate = self._worth(ledger.spread.groups, step)
        if worth * ledger.trust.factor <= step:
            if not self.guesses:
                ledger.refused = REFUSED
            return False
        if self.asked is None:
            self.asked = ExpectedSaving(len(self.guesses), worth * rate, rate, self.costs)
        return True

    def _model_may_better(self, chance: float) -> bool:
        """Whether to ask the model is expected to save more than it takes where an n-gram is right with a chance."""
        # What the n-gram gets wrong costs a row of the target, and everything after it.
        depth = len(self.guesses)
        reach = min(depth + 5, LONGEST)
        row = max(0.0, (self.costs[reach] - self.costs[depth + 1]) / max(1, reach - depth - 1))
        token_ms = 1 / self._rate(self.best)
        saved = (1 - chance) * (_SEES * row + self.ledger.spread.mean * max(0.0, token_ms - row))
        return self.product * saved > self.step_ms()

    def step_ms(self) -> float:
        """The model's next token; bringing it in step first is paid for over some rounds."""
        if not self._model_costs:
            self._model_costs = self.ledger.model_costs.at(self.start)
        costs, missing = self._model_costs, len(self.text) - self.kept
        if missing <= 3:
            return costs[missing]
        return costs[1] + _sync_ms(costs, missing - 1) / HORIZON

    def _worth(self, groups: Sequence[tuple[float, float]], step: float) -> tuple[float, float]:
        """What a token more, and those that may follow it, are expected to save.

        Args:
            groups: (share, chance) of what the next tokens may be like.
            step: milliseconds to get one.

        Returns:
            Milliseconds, the time to get the first token not counted; and tokens per millisecond as it stands.
        """
        rate, begin = self._rate(self.best), len(self.guesses) + 2
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

    def _ask_model(self, copied: list[Guess]) -> bool:
        """Append the model's next token, or what was ``copied`` where that is likelier."""
        ledger = self.ledger
        ledger.rounds_without_model = 0
        pick = self._pick()
        if pick is None:
            return False
        token, probabilities, place = pick.token, pick.distribution, model_bin(pick.confidence)
        if not copied:
            return self._append([(token, ("model", place))], probabilities)
        if any(guess[0] == token for guess in copied):
            return self._append([(token, ("both", place)), *copied], probabilities)
        own, other = (token, ("contested", place)), (copied[0][0], contested(copied[0][1]))
        depth = len(self.guesses)
        if ledger.acceptance.chance(other[1], depth) > ledger.acceptance.chance(own[1], depth):
            return self._append([other, own])
        return self._append([own, other], probabilities)

    def _ask_other_vocabulary(self, draft: Draft) -> bool:
        """Append as much of a draft with a pace of its own as is expected to pay; its time is counted afterwards."""
        if self.asked_other_vocabulary:
            return False
        self.asked_other_vocabulary = True
        depth = len(self.guesses)
        wanted = self._length_at(self.ledger.acceptance.chance(_OTHER_VOCABULARY, depth))
        if wanted == 0 and self.ledger.rounds_without_model < PROBE:
            return False
        self.ledger.rounds_without_model = 0
        try:
            proposal = draft.propose(self.text, self.grammar, self.sampler, FixedLength(LONGEST).more(max(1, wanted)))
        except CodespecError:
            return False
        for token in proposal.tokens:
            self._append([(token, _OTHER_VOCABULARY)])
        self.taken = len(self.guesses)  # the draft has advanced the grammar over them
        return bool(proposal.tokens)

    def _length_at(self, chance: float) -> int:
        """How many more tokens of one chance are expected to pay most; 0 is none."""
        depth = len(self.guesses)
        gained, product = self.expected[-1], self.product
        rates = [max(tokens / self._ms(n) for n, tokens in enumerate(self.expected))]
        for m in range(1, min(2 * AHEAD, LONGEST - 1 - depth) + 1):
            product *= chance
            gained += product
            rates.append(gained / (self.costs[depth + 1 + m] + (1 - product) * self.again_ms))
        return rates.index(max(rates))

    def _pick(self) -> Pick | None:
        """The model's next token."""
        assert self.model is not None
        began = self.ledger.clock()
        kept = min(self.kept, len(self.text) - 1)
        try:
            pick = self.model.next(self.text, kept, self.grammar, self.sampler)
        except CodespecError:
            self.model = None  # its context is full, say; the other sources go on
            return None
        took = (self.ledger.clock() - began) * 1e3
        self.spent = (began - self.began) * 1e3 + took
        missing = len(self.text) - kept
        if not self.passes or self.passes[-1][0] != missing:
            self._model_costs = self.ledger.model_costs.at(self.start, missing)
        self.passes.append((missing, took))
        self._kept = len(self.text)
        if self.asked is not None and len(self.guesses) > self.asked.depth:
            self.asked.further_ms += took
        return pick

    def _probe_is_cheap(self) -> bool:
        """Whether it takes less than a hundredth of what the target took since the model was last in step."""
        costs = self.ledger.model_costs.at(self.start)
        if costs[LONGEST] >= 0.01 * LONGEST * self.costs[1]:
            return False  # whatever is missing
        missing = len(self.text) - self.kept
        return _sync_ms(costs, missing) < 0.01 * missing * self.costs[1]

    def _probe(self) -> None:
        """Ask the model what it would say, and propose nothing for it."""
        self.ledger.rounds_without_model = 0
        pick = self._pick()
        if pick is not None:
            self.shadow = [(pick.token, ("model", model_bin(pick.confidence)))]


def _sync_ms(costs: Sequence[float], tokens: int) -> float:
    """Passes over many tokens, from the curve of short ones."""
    return costs[tokens] if tokens <= LONGEST else costs[LONGEST] * tokens / LONGEST
