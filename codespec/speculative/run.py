"""The state of one generation, which the loops of speculative decoding pass on from round to round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from codespec.protocols import Cancel, Draft, FinishReason, Proposal, Round, Statistics
from codespec.speculative.sampling import LogitSampler
from codespec.speculative.timed import TimedGrammar

NOTHING = Proposal(())


@dataclass
class Run:
    """The state of one generation.

    Attributes:
        tokens: the text, prompt included; the target's KV cache holds all of it but the last generated token.
        end: tokens that the text may have, prompt included.
        grammar: at the end of ``tokens``; None where any token is allowed.
        draft_grammar: the draft's state, ``ahead`` tokens further than ``grammar``.
        began: in seconds of ``perf_counter``; ``time_budget_ms`` counts from then.
        pass_ms: of the latest target pass.
        rejected: whether the target has rejected some of the latest proposal.
        undrafted: tokens of ``tokens`` up to which nothing is proposed.
    """

    tokens: list[int]
    end: int
    sampler: LogitSampler
    grammar: TimedGrammar | None
    cancel: Cancel | None
    statistics: Statistics
    time_budget_ms: float | None
    began: float
    draft: Draft | None = None
    draft_grammar: TimedGrammar | None = None
    ahead: int = 0
    pass_ms: float = 0.0
    rejected: bool = False
    undrafted: int = 0

    @property
    def room(self) -> int:
        """Tokens that may still be generated."""
        return self.end - len(self.tokens)

    def cancelled(self) -> bool:
        """Whether the caller asked for the stop."""
        return self.cancel is not None and self.cancel.is_set()

    def interrupted(self) -> FinishReason | None:
        """Why to stop before the next pass, cancelled or out of time; None to go on."""
        if self.cancelled():
            return "cancelled"
        if self.time_budget_ms is not None and since(self.began) >= self.time_budget_ms:
            return "time"
        return None

    def over_from_the_start(self) -> FinishReason | None:
        """Why nothing can be generated at all; None where something can."""
        if self.grammar is not None and self.grammar.finished:
            return "stop"
        return "length" if self.room < 1 else None

    def bring_draft_grammar_along(self, accepted: int, own: Sequence[int]) -> None:
        """Undo what was not accepted of the latest proposal, and advance over the target's ``own`` tokens."""
        if self.draft_grammar is None or self.grammar is None:
            return
        try:
            if self.ahead > accepted:
                self.draft_grammar.rollback(self.ahead - accepted)
            in_step = self.draft_grammar.accept(own) == len(own)
        except ValueError:
            in_step = False
        if not in_step:
            # The draft did not advance its state over what it proposed; the text is safe, later proposals would suffer.
            self.draft_grammar = self.grammar.copy()

    def ended(self, reason: FinishReason) -> Round:
        """The last round, of no tokens."""
        self.statistics.total_ms = since(self.began)
        return Round((), finish_reason=reason)


def since(began: float) -> float:
    """Milliseconds since ``began``, in seconds of ``perf_counter``."""
    return (perf_counter() - began) * 1e3
