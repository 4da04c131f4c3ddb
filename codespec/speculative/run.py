"""One text in the making: what the loops of speculative decoding pass on from round to round."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from codespec.protocols import Cancel, Draft, FinishReason, Proposal, Round, Statistics
from codespec.speculative.sampling import LogitSampler
from codespec.speculative.timed import TimedGrammar

NOTHING = Proposal(())


@dataclass
class Run:
    """One generation.

    ``tokens`` is the text, prompt included; the target's KV cache holds all of it but the last generated token.
    ``ahead`` is by how many tokens ``draft_grammar`` has run ahead of it, ``pass_ms`` what the last pass took.
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

    @property
    def room(self) -> int:
        return self.end - len(self.tokens)

    def cancelled(self) -> bool:
        return self.cancel is not None and self.cancel.is_set()

    def interrupted(self) -> FinishReason | None:
        if self.cancelled():
            return "cancelled"
        if self.time_budget_ms is not None and since(self.began) >= self.time_budget_ms:
            return "time"
        return None

    def over_from_the_start(self) -> FinishReason | None:
        if self.grammar is not None and self.grammar.finished:
            return "stop"
        return "length" if self.room < 1 else None

    def ended(self, reason: FinishReason) -> Round:
        """The last round, of no tokens."""
        self.statistics.total_ms = since(self.began)
        return Round((), finish_reason=reason)


def since(began: float) -> float:
    """Milliseconds."""
    return (perf_counter() - began) * 1e3
