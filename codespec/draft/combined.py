"""Every source of drafts as one: token by token the most promising, as far as it is expected to save time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codespec.draft.ledger import Ledger
from codespec.draft.ngram import LONGEST_MATCH, NgramMatch
from codespec.draft.proposal_round import PROBE, ProposalRound
from codespec.protocols import GrammarState, Proposal, Sampler

WATCHES_ABOVE = 10.0
"""Milliseconds of a target's pass from which on it costs nothing to watch, asleep, what n-grams would have saved."""

WAKES_FROM = 10
"""Tokens that a match must have to be tried while asleep beside a faster target."""

_WATCHING = 0.01  # of a target's pass that a model may take only to see what it would have saved
_TAIL = 16
_SOURCE = {
    "foreign": "model",
    "both": "model",
    "contested": "model",
    "ngram-split": "ngram",
    "ngram-contested": "ngram",
}
_NOTHING = Proposal(())
_OF_MODEL = frozenset({"model", "both", "contested"})


class CombinedDraft(Ledger):
    """Forced text, n-grams and a small model, chosen token by token by what they are expected to save.

    A round begins with the text that the grammar forces. Then, at each token, the n-gram that matched longest is
    followed where it is nearly sure; elsewhere the model is asked, if what it may save is worth its time. Where both
    say something they are weighed against each other: a token that both propose is taken far more often than one
    that either does. In the end the proposal is cut to the length with the highest expected tokens per millisecond;
    all lengths are compared, since T(n) has jumps, and length 0 is one of them.

    Whether a guess would have been right is learnt from the text as it goes on, verified or not, up to the first
    guess that was wrong.

    In rejection sampling neither the source of a token nor the length may depend on what was drawn: there the source
    is chosen before, and nothing is cut afterwards.

    Arguments as of ``Ledger``.
    """

    _last: ProposalRound | None = None

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
        dozes = asleep and one < WATCHES_ABOVE
        if dozes and not self.guard.looks():
            return _NOTHING
        match = self._match(tokens)
        if dozes:
            if match is None or not match.agreed or match.length < WAKES_FROM:
                return _NOTHING
            self.guard.wake()
            asleep = False
        elif match is None and self._only_ngrams(grammar):
            self.begin_round()
            self.refused = max(0, self.refused - 1)
            if not asleep:
                self.guard.learn((began - self.clock()) * 1e3 / one)
            return _NOTHING
        work = ProposalRound(self, tokens, grammar, sampler, match, began)
        if asleep and work.step_ms() > _WATCHING * work.costs[1]:
            work.model = None
        try:
            work.run(more)
        except BaseException:
            if grammar is not None:
                grammar.rollback(work.taken)
            raise
        self.model_costs.observe_all(work.passes, work.start)
        work.length = len(work.guesses) if work.rejection else work.best_length()
        work.asleep, work.took_ms = asleep, work.spent_ms()
        if work.asked is not None:
            work.asked.length = work.length
        self._last = work
        count = 0 if asleep else work.length
        if grammar is not None and count < work.taken:
            grammar.rollback(work.taken - count)
        sources = [guesses[0][1][0] for guesses in work.guesses[:count]]
        return Proposal(
            tuple(work.tokens[:count]),
            tuple(work.probabilities[:count]) if work.rejection else None,
            sources=tuple([_SOURCE.get(source, source) for source in sources]),
        )

    def _match(self, tokens: Sequence[int]) -> NgramMatch | None:
        if self.ngrams is None:
            return None
        self.ngrams.sync(tokens)
        return self.ngrams.match(tokens[-LONGEST_MATCH:])

    def _only_ngrams(self, grammar: GrammarState | None) -> bool:
        """Whether nothing else would say anything in this round: then it is over before it has begun."""
        if self.other_vocabulary is not None or (self.forced is not None and grammar is not None):
            return False
        return self.model is None or (self.refused > 0 and self.rounds_without_model < PROBE)

    def learn(self, tokens: Sequence[int]) -> None:
        """See which guesses of the last round ``tokens``, the text that has gone on, prove right."""
        last, self._last = self._last, None
        if last is None or not 0 < last.start < len(tokens):
            return
        tail = slice(max(0, last.start - _TAIL), last.start)
        if list(tokens[tail]) != last.text[tail]:
            return
        right = 0
        for depth, (said, token) in enumerate(zip(last.said(), tokens[last.start :], strict=False)):
            for guess, kind in said:
                if kind[0] in _OF_MODEL:
                    self.spread.count(self.acceptance.chance(kind, 0))
                self.acceptance.learn(kind, depth, guess == token)
            if said[0][0] != token:
                break
            right += 1
        accepted = min(right, last.length)
        if last.asked is not None:
            self.trust.learn(last.asked, accepted)
        one = self.costs.kept(last.start)[1]
        saved = (accepted * one - last.costs[last.length + 1] + one - last.took_ms) / one
        if last.asleep:
            self.guard.missed(saved)
        else:
            self.guard.learn(saved)
