"""Text that the grammar leaves no choice about, as a draft: free of cost, and nearly always right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

from codespec.draft.text import TAIL, tokenize_after, whole_characters
from codespec.protocols import GrammarState, Proposal, Sampler, Vocabulary

FORCED = 1_024
"""Texts whose tokens are kept."""


class ForcedDraft:
    """Proposes the tokens of the text that the grammar forces.

    Forced text is not forced tokens: the model may cut it in more than one way. So it is tokenized as the
    model would have met it, after the text before it, and its last token is left out, which might merge with
    what follows. The target verifies the rest like any other proposal.
    """

    source = "forced"

    def __init__(self, vocabulary: Vocabulary) -> None:
        # What a grammar forces comes again and again.
        self._tokenize = lru_cache(FORCED)(partial(tokenize_after, vocabulary))

    def propose(
        self,
        tokens: Sequence[int],
        grammar: GrammarState | None,
        sampler: Sampler,
        more: Callable[[float], bool],
    ) -> Proposal:
        """As ``protocols.Draft.propose``; empty without a grammar or where it leaves a choice."""
        ids = self.tokens(tokens, grammar)
        if grammar is None or not ids:
            return Proposal((), source=self.source)
        count = 0
        while count < len(ids) and more(1.0):
            count += 1
        # The grammar has the last word: where the tokenizer did not give the text back, it takes fewer.
        taken = grammar.accept(ids[:count])
        return Proposal(tuple(ids[:taken]), source=self.source)

    def tokens(self, tokens: Sequence[int], grammar: GrammarState | None) -> list[int]:
        """Tokens of the text that the grammar forces after ``tokens``, without the last one."""
        text = whole_characters(grammar.forced()) if grammar is not None else ""
        return self._tokenize(tuple(tokens[-TAIL:]), text.encode())[:-1] if text else []
