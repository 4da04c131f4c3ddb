"""The sources of drafts and what is expected of each: a round reads this ledger, and its outcome is entered in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

from codespec.draft.acceptance import Acceptance
from codespec.draft.copying import CopyingSource
from codespec.draft.costs import RunningCosts
from codespec.draft.draft_budget import ConfidenceSpread, SavingTrust, SpendingGuard
from codespec.draft.forced import ForcedDraft
from codespec.draft.model import ModelDraft
from codespec.protocols import Draft


class Ledger:
    """The sources of drafts, and what is known of each from round to round.

    Attributes:
        spread: how sure the draft model is of its tokens.
        trust: the share of the expected savings that came true.
        guard: the account of what rounds saved and cost.
        rounds_without_model: rounds since the draft model was asked last.
        refused: rounds left in which the model is not asked for the first token, since that did not pay lately.

    Args:
        costs: of the target, including what the choice of its tokens takes.
        acceptance: how often each kind of guess is right.
        copying: the sources that copy, see ``sources``.
        model, forced: None leaves a source out.
        other_vocabulary: a draft that cannot be asked token by token, in place of `model`; it proposes where nothing is
            copied.
        model_costs: of the model's passes.
        end_tokens: tokens after which there is nothing to propose.
        clock: in seconds.
    """

    def __init__(
        self,
        costs: RunningCosts,
        acceptance: Acceptance,
        copying: Sequence[CopyingSource] = (),
        model: ModelDraft | None = None,
        forced: ForcedDraft | None = None,
        other_vocabulary: Draft | None = None,
        model_costs: RunningCosts | None = None,
        end_tokens: frozenset[int] = frozenset(),
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self.costs, self.acceptance = costs, acceptance
        self.copying, self.model, self.forced, self.other_vocabulary = copying, model, forced, other_vocabulary
        self.model_costs = model_costs or RunningCosts()
        self.end_tokens = end_tokens
        self.clock = clock
        self.spread = ConfidenceSpread()
        self.rounds_without_model = 0
        self.refused = 0
        self.trust = SavingTrust()
        self.guard = SpendingGuard()

    def begin_round(self) -> int:
        """Count a round; returns how many rounds had passed since the draft model was asked."""
        before = self.rounds_without_model
        self.rounds_without_model += 1
        if before:
            self.trust.forget()
        return before
