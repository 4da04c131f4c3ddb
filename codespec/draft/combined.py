"""Every source of drafts as one: token by token the most promising, as far as it is expected to save time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from codespec.draft.acceptance import source_of
from codespec.draft.copying import Guess
from codespec.draft.draft_budget import ExpectedSaving
from codespec.draft.ledger import Ledger
from codespec.draft.proposal_round import PROBE, ProposalRound
from codespec.protocols import GrammarState, Proposal, Sampler

WATCHES_ABOVE = 10.0
"""Milliseconds of a target's pass from which on it costs nothing to watch, asleep, what n-grams would have saved."""

_WATCHING = 0.01  # of a target's pass that a model may take only to see what it would have saved
_TAIL = 16
_NOTHING = Proposal(())
_OF_MODEL = frozenset({"model", "both", "contested"})


class FinishedRound(NamedTuple):
    """What is needed of a round to learn from its outcome.

    Attributes:
        text: up to the end of the proposal, which begins at ``start``.
        said: every guess at each position of the proposal, the proposed one first.
        costs: of the target's passes.
        length: what is proposed, or, asleep, would have been.
        copying: whether the text repeats a whole window.
    """

    text: list[int]
    start: int
    said: list[list[Guess]]
    costs: Sequence[float]
    length: int
    took_ms: float
    asked: ExpectedSaving | None
    asleep: bool
    copying: bool


class CombinedDraft(Ledger):
    """Forced text, a window, n-grams and a small model, chosen token by token by what they are expected to save.

    A round begins with the text that the grammar forces. Then, at each token, what is copied is followed where it is
    nearly sure: the window that the text repeats or the n-gram that matched longest, whichever is right more often.
    Elsewhere the model is asked, if what it may save is worth its time. Where several say something they are weighed
    against each other: a token that two propose is taken far more often than one that either does. In the end the
    proposal is cut to the length with the highest expected tokens per millisecond; all lengths are compared, since T(n)
    has jumps, and length 0 is one of them.

    Whether a guess would have been right is learnt from the text as it goes on, verified or not, up to the first
    guess that was wrong.

    Arguments as of ``Ledger``.
    """

    _last: FinishedRound | None = None

    def propose(
        self,
        tokens: Sequence[int],
        grammar: GrammarState | None,
        sampler: Sampler,
        more: Callable[[float], bool],
    ) -> Proposal:
        """As ``protocols.Draft.propose``."""
        self.learn(tokens)
        began = self.clock()
        one = self.costs.kept(len(tokens))[1]
        asleep = self.guard.asleep()
        if asleep and self._last is not None:  # it comes true so far
            return _NOTHING
        self._last = None
        dozes = asleep and one < WATCHES_ABOVE
        if dozes and not self.guard.looks():
            return _NOTHING
        followers = [found for each in self.copying if (found := each.follow(tokens)) is not None]
        if dozes:
            if not any(each.is_sure for each in followers):
                return _NOTHING
            self.guard.wake()
            asleep = False
        elif all(each.guess() is None for each in followers) and self._only_copies(grammar):
            self.begin_round()
            self.refused = max(0, self.refused - 1)
            if not asleep:
                self.guard.learn((began - self.clock()) * 1e3 / one, any(each.repeats_whole for each in followers))
            return _NOTHING
        work = ProposalRound(self, tokens, grammar, sampler, followers, began)
        proposal, calls = work.proposal, work.calls
        if asleep and calls.step_ms() > _WATCHING * proposal.costs[1]:
            calls.model = None
        try:
            work.run(more)
        except BaseException:
            if grammar is not None:
                grammar.rollback(work.taken)
            raise
        self.model_costs.observe_all(calls.passes, proposal.start)
        length = work.best_length()
        if calls.asked is not None:
            calls.asked.length = length
        copying = any(each.repeats_whole for each in followers)
        self._last = FinishedRound(
            proposal.text,
            proposal.start,
            work.said(),
            proposal.costs,
            length,
            work.spent_ms(),
            calls.asked,
            asleep,
            copying,
        )
        count = 0 if asleep else length
        if grammar is not None and count < work.taken:
            grammar.rollback(work.taken - count)
        return Proposal(
            tuple(proposal.tokens[:count]),
            sources=tuple([source_of(guesses[0][1]) for guesses in proposal.guesses[:count]]),
        )

    def _only_copies(self, grammar: GrammarState | None) -> bool:
        """Whether nothing else would say anything in this round: then it is over before it has begun."""
        if self.other_vocabulary is not None or (self.forced is not None and grammar is not None):
            return False
        return self.model is None or (self.refused > 0 and self.rounds_without_model < PROBE)

    def learn(self, tokens: Sequence[int]) -> None:
        """See which guesses of the last round ``tokens``, the text that has gone on, prove right.

        Asleep, the round's proposal is followed for as long as it comes true and not enough is missed to wake.
        """
        last, self._last = self._last, None
        if last is None or not 0 < last.start < len(tokens):
            return
        tail = slice(max(0, last.start - _TAIL), last.start)
        if list(tokens[tail]) != last.text[tail]:
            return
        said, written = last.said, tokens[last.start :]
        seen = min(len(said), len(written))
        right = next((depth for depth in range(seen) if said[depth][0][0] != written[depth]), seen)
        one = self.costs.kept(last.start)[1]
        accepted = min(right, last.length)
        again = self.costs.again_ms if right < last.length else 0.0
        saved = (accepted * one - last.costs[last.length + 1] + one - last.took_ms - again) / one
        if last.asleep and right == len(written) < last.length and not self.guard.wakes(saved):
            self._last = last
            return
        for depth, (guesses, token) in enumerate(zip(said[: right + 1], written, strict=False)):
            for guess, kind in guesses:
                if kind[0] in _OF_MODEL:
                    self.spread.count(self.acceptance.chance(kind, 0))
                self.acceptance.learn(kind, depth, guess == token)
        if last.asked is not None:
            self.trust.learn(last.asked, accepted)
        if last.asleep:
            self.guard.missed(saved)
        else:
            self.guard.learn(saved, last.copying)
