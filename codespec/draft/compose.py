"""Several drafts as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codespec.protocols import CodespecError, Draft, GrammarState, Proposal, Sampler


class FirstOf:
    """The proposal of the first draft that has one: put the cheap and certain ones in front.

    A draft that fails is passed over; its error is raised only where no other draft has anything to propose.
    """

    def __init__(self, drafts: Sequence[Draft]) -> None:
        self._drafts = tuple(drafts)

    def propose(
        self,
        tokens: Sequence[int],
        grammar: GrammarState | None,
        sampler: Sampler,
        more: Callable[[float], bool],
    ) -> Proposal:
        """As ``protocols.Draft.propose``."""
        nothing = Proposal(())
        if not more(1.0):
            return nothing
        failure: CodespecError | None = None
        for draft in self._drafts:
            try:
                proposal = draft.propose(tokens, grammar, sampler, _asked_once(more))
            except CodespecError as error:
                failure = error
                continue
            if proposal.tokens:
                return proposal
        if failure is not None:
            raise failure
        return nothing


def _asked_once(more: Callable[[float], bool]) -> Callable[[float], bool]:
    """``more`` for a draft on whose behalf it has already said yes to the first token."""
    first = True

    def asked(confidence: float) -> bool:
        nonlocal first
        if first:
            first = False
            return True
        return more(confidence)

    return asked
