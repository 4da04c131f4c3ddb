"""One proposal, put together token by token from all sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codespec.draft.acceptance import GuessKind, beside, contested, model_bin
from codespec.draft.copying import Follower, Guess
from codespec.draft.costs import LONGEST
from codespec.draft.draft_budget import ExpectedSaving
from codespec.draft.draft_length import FixedLength
from codespec.draft.growing_proposal import GrowingProposal
from codespec.draft.ledger import Ledger
from codespec.draft.model_calls import ModelCalls
from codespec.protocols import CodespecError, Draft, GrammarState, Sampler

PROBE = 32
"""Rounds without the model after which it is asked for one token, only to see how good it is."""

REFUSED = 7
"""Rounds in which the model is not asked for the first token after that has turned out not to pay."""

_HOPELESS = 0.02
_OTHER_VOCABULARY: GuessKind = ("foreign", 4)  # the name under which profiles on disks have it
_FORCED: GuessKind = ("forced", 0)


class ProposalRound:
    """Puts a proposal together.

    Args:
        followers: of the sources that copy; they follow the end of the proposal.

    Attributes:
        proposal: what is proposed so far.
        calls: of the draft model.
        taken: tokens of the proposal that the grammar has taken: it is asked for many at once.
    """

    def __init__(
        self,
        ledger: Ledger,
        tokens: Sequence[int],
        grammar: GrammarState | None,
        sampler: Sampler,
        followers: Sequence[Follower],
        began: float,
    ) -> None:
        self._ledger, self._grammar, self._sampler = ledger, grammar, sampler
        self._followers, self._began = followers, began
        self.proposal = GrowingProposal(tokens, ledger.costs.at(len(tokens)), ledger.costs.again_ms)
        self.calls = ModelCalls(ledger, self.proposal, began)
        self.taken = 0
        self._cut = 0  # times that the grammar refused some
        self._forced: list[int] = []
        self._shadow: list[Guess] = []  # said about the first token and not proposed
        self._asked_other_vocabulary = False

    def said(self) -> list[list[Guess]]:
        """Every guess at each position of the proposal, the proposed one first."""
        guesses = self.proposal.guesses
        if not self._shadow:
            return guesses
        return [[*guesses[0], *self._shadow], *guesses[1:]] if guesses else [self._shadow]

    def run(self, more: Callable[[float], bool]) -> None:
        """Extend the proposal for as long as that may pay."""
        ledger, proposal, grammar = self._ledger, self.proposal, self._grammar
        if ledger.forced is not None and grammar is not None:
            self._forced = ledger.forced.tokens(proposal.text, grammar)
        asked = ledger.begin_round()
        if self.calls.model is not None and asked >= PROBE and not self._forced:
            self._probe()
        while len(proposal.guesses) < LONGEST - 1 and proposal.product >= _HOPELESS and more(proposal.product):
            if not self._extend() and self._agreed():
                break
            over = grammar is not None and self.taken == len(proposal.guesses) and grammar.finished
            # Where the grammar refused a token something else may be said; once, since a grammar may contradict itself.
            if over or self._cut > 1 or proposal.text[-1] in ledger.end_tokens:
                break
        self._agreed()

    def _agreed(self) -> bool:
        """Let the grammar take what it has not seen of the proposal; False where it refused some: that is cut off."""
        proposal = self.proposal
        pending = proposal.text[proposal.start + self.taken :]
        if self._grammar is None or not pending:
            return True
        taken = self._grammar.accept(pending)
        self.taken += taken
        if taken == len(pending):
            return True
        self._cut += 1
        proposal.cut(self.taken)
        for each in self._followers:
            each.refused(proposal.tokens)
        self._forced = []
        return False

    def best_length(self) -> int:
        """The length of the proposal with the most expected tokens per millisecond, all time until now counted."""
        self.proposal.spent = self.spent_ms()
        return self.proposal.best_length()

    def spent_ms(self) -> float:
        """Milliseconds of this round so far."""
        return (self._ledger.clock() - self._began) * 1e3

    def _extend(self) -> bool:
        """Append the most promising token, or cut off what the grammar refuses; False where nothing more may pay."""
        if self._forced:
            return self._append([(self._forced.pop(0), _FORCED)])
        copied = self._copied_guesses()
        if copied:
            token, kind = copied[0]
            chance = self._ledger.acceptance.chance(kind, len(self.proposal.guesses))
            if self.calls.model is None or not self._model_may_better(chance):
                return self._append(copied)
            if not self._agreed():
                return True
            if self._grammar is not None and not self._grammar.allows(token):
                copied = []
        if not copied:
            if self._ledger.other_vocabulary is not None:
                return not self._agreed() or self._ask_other_vocabulary(self._ledger.other_vocabulary)
            if self.calls.model is None or not self._model_may_pay():
                return False
        return not self._agreed() or self._ask_model(copied)

    def _copied_guesses(self) -> list[Guess]:
        """What is copied next, the likeliest first."""
        said = [guess for each in self._followers if (guess := each.guess()) is not None]
        if len(said) < 2:
            return said
        if any(token != said[0][0] for token, _ in said):
            said = [(token, beside(kind)) for token, kind in said]
        depth, acceptance = len(self.proposal.guesses), self._ledger.acceptance
        return sorted(said, key=lambda guess: acceptance.chance(guess[1], depth), reverse=True)

    def _append(self, guesses: list[Guess]) -> bool:
        """Append the first of ``guesses``, which the grammar may still refuse."""
        token, kind = guesses[0]
        chance = self._ledger.acceptance.chance(kind, len(self.proposal.guesses))
        self.proposal.append(guesses, chance)
        for each in self._followers:
            each.step(token)
        return True

    def _model_may_pay(self) -> bool:
        """Whether asking the model for the next token is expected to save more than it takes, where nothing else says
        anything."""
        ledger, proposal, calls = self._ledger, self.proposal, self.calls
        if ledger.refused > 0 and not proposal.guesses:
            ledger.refused -= 1  # nothing has changed since it was not worth it
            return False
        step = calls.step_ms()
        worth, rate = proposal.worth(ledger.spread.groups, step)
        if worth * ledger.trust.factor <= step:
            if not proposal.guesses:
                ledger.refused = REFUSED
            return False
        if calls.asked is None:
            calls.asked = ExpectedSaving(len(proposal.guesses), worth * rate, rate, proposal.costs)
        return True

    def _model_may_better(self, chance: float) -> bool:
        """Whether to ask the model is expected to save more than it takes where an n-gram is right with a chance."""
        return self.proposal.worth_of_better(chance, self._ledger.spread.mean) > self.calls.step_ms()

    def _ask_model(self, copied: list[Guess]) -> bool:
        """Append the model's next token, or what was ``copied`` where that is likelier."""
        pick = self.calls.pick(self._grammar, self._sampler)
        if pick is None:
            return False
        token, place = pick.token, model_bin(pick.confidence)
        if not copied:
            return self._append([(token, ("model", place))])
        if any(guess[0] == token for guess in copied):
            return self._append([(token, ("both", place)), *copied])
        own, other = (token, ("contested", place)), (copied[0][0], contested(copied[0][1]))
        acceptance, depth = self._ledger.acceptance, len(self.proposal.guesses)
        if acceptance.chance(other[1], depth) > acceptance.chance(own[1], depth):
            return self._append([other, own])
        return self._append([own, other])

    def _ask_other_vocabulary(self, draft: Draft) -> bool:
        """Append as much of a draft with a pace of its own as is expected to pay; its time is counted afterwards."""
        if self._asked_other_vocabulary:
            return False
        self._asked_other_vocabulary = True
        ledger, proposal = self._ledger, self.proposal
        wanted = proposal.further(ledger.acceptance.chance(_OTHER_VOCABULARY, len(proposal.guesses)))
        if wanted == 0 and ledger.rounds_without_model < PROBE:
            return False
        ledger.rounds_without_model = 0
        try:
            length = FixedLength(LONGEST).more(max(1, wanted))
            proposed = draft.propose(proposal.text, self._grammar, self._sampler, length)
        except CodespecError:
            return False
        for token in proposed.tokens:
            self._append([(token, _OTHER_VOCABULARY)])
        self.taken = len(proposal.guesses)  # the draft has advanced the grammar over them
        return bool(proposed.tokens)

    def _probe(self) -> None:
        """Ask the model what it would say, if that is cheap, and propose nothing for it."""
        if not self.calls.probe_is_cheap(self.proposal.costs[1]):
            return
        pick = self.calls.pick(self._grammar, self._sampler)
        if pick is not None:
            self._shadow = [(pick.token, ("model", model_bin(pick.confidence)))]
