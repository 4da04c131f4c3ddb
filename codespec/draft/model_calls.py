"""The draft model during one round: what it holds of the text, what to ask it takes, and what it took."""

from __future__ import annotations

from collections.abc import Sequence

from codespec.draft.costs import LONGEST
from codespec.draft.draft_budget import ExpectedSaving
from codespec.draft.growing_proposal import GrowingProposal
from codespec.draft.ledger import Ledger
from codespec.protocols import CodespecError, GrammarState, Pick, Sampler

HORIZON = 16
"""Rounds over which the time to decode what the model has not seen is spread."""


class ModelCalls:
    """Asks the draft model for the tokens of one proposal.

    Args:
        proposal: its ``spent`` is kept up.
        began: the round, in seconds of the ledger's clock.

    Attributes:
        model: None where it is not, or no longer, asked.
        passes: (tokens, milliseconds) of each.
        asked: what the round expected to save by it, once it was asked because of that.
    """

    def __init__(self, ledger: Ledger, proposal: GrowingProposal, began: float) -> None:
        self._ledger, self._proposal, self._began = ledger, proposal, began
        self.model = ledger.model
        self._kept: int | None = None
        self._costs: Sequence[float] = ()
        self.passes: list[tuple[int, float]] = []
        self.asked: ExpectedSaving | None = None

    @property
    def kept(self) -> int:
        """Tokens of the text that the model holds; computed once, where it matters."""
        if self._kept is None:
            self._kept = self.model.kept(self._proposal.text) if self.model is not None else 0
        return self._kept

    def step_ms(self) -> float:
        """The model's next token; bringing it in step first is paid for over some rounds."""
        if not self._costs:
            self._costs = self._ledger.model_costs.at(self._proposal.start)
        costs, missing = self._costs, len(self._proposal.text) - self.kept
        if missing <= 3:
            return costs[missing]
        return costs[1] + _sync_ms(costs, missing - 1) / HORIZON

    def pick(self, grammar: GrammarState | None, sampler: Sampler) -> Pick | None:
        """The model's next token."""
        assert self.model is not None
        ledger, proposal, text = self._ledger, self._proposal, self._proposal.text
        ledger.rounds_without_model = 0
        began = ledger.clock()
        kept = min(self.kept, len(text) - 1)
        try:
            pick = self.model.next(text, kept, grammar, sampler)
        except CodespecError:
            self.model = None  # its context is full, say; the other sources go on
            return None
        took, missing = (ledger.clock() - began) * 1e3, len(text) - kept
        proposal.spent = (began - self._began) * 1e3 + took
        if not self.passes or self.passes[-1][0] != missing:
            self._costs = ledger.model_costs.at(proposal.start, missing)
        self.passes.append((missing, took))
        self._kept = len(text)
        if self.asked is not None and len(proposal.guesses) > self.asked.depth:
            self.asked.further_ms += took
        return pick

    def probe_is_cheap(self, target_ms: float) -> bool:
        """Whether it takes less than a hundredth of what the target took since the model was last in step.

        Args:
            target_ms: a pass of the target over one token.
        """
        costs = self._ledger.model_costs.at(self._proposal.start)
        if costs[LONGEST] >= 0.01 * LONGEST * target_ms:
            return False  # whatever is missing
        missing = len(self._proposal.text) - self.kept
        return _sync_ms(costs, missing) < 0.01 * missing * target_ms


def _sync_ms(costs: Sequence[float], tokens: int) -> float:
    """Passes over many tokens, from the curve of short ones."""
    return costs[tokens] if tokens <= LONGEST else costs[LONGEST] * tokens / LONGEST
