"""How far a draft may run ahead."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codespec.draft.costs import LONGEST
from codespec.protocols import Draft, GrammarState, Proposal, Sampler


class FixedLength:
    """A limit on proposals: always the same number of tokens."""

    def __init__(self, length: int) -> None:
        if length < 0:
            raise ValueError(f"a draft of {length} tokens")
        self.length = length

    def more(self, limit: int) -> Callable[[float], bool]:
        """The callback of one proposal (``protocols.Draft.propose``) of at most ``limit`` useful tokens."""
        left = min(self.length, limit)

        def ask(confidence: float) -> bool:
            nonlocal left
            left -= 1
            return left >= 0

        return ask


class FixedLengthDraft:
    """Another draft, always asked for the same number of tokens."""

    def __init__(self, draft: Draft, length: int) -> None:
        self._draft, self._length = draft, length

    def propose(
        self, tokens: Sequence[int], grammar: GrammarState | None, sampler: Sampler, more: Callable[[float], bool]
    ) -> Proposal:
        counted = FixedLength(self._length).more(LONGEST)
        return self._draft.propose(
            tokens, grammar, sampler, lambda confidence: counted(confidence) and more(confidence)
        )
