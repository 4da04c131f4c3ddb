"""Text that the grammar leaves no choice about, as a draft: free of cost, and nearly always right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

from codespec.draft.text import TAIL, tokenize_after, whole_characters
from codespec.protocols import GrammarState, Proposal, Sampler, Vocabulary
from codespec.recent import Recent

FORCED = 1_024
"""Texts whose tokens are kept."""
SPELLED, KEY = 4_096, 24
"""Places whose token the target has chosen before that are kept, and the bytes of forced text that tell them apart."""


class ForcedDraft:
    """Proposes the tokens of the text that the grammar forces.

    Forced text is not forced tokens: the model may cut it in more than one way. So it is tokenized as the
    model would have met it, after the text before it, and its last token is left out, which might merge with
    what follows. Under a grammar a model often spells otherwise, as ``{"`` ``n`` ``ame``: the next time, forced text
    is proposed in the tokens that the target chose for it. The target verifies the rest like any other proposal.
    """

    source = "forced"

    def __init__(self, vocabulary: Vocabulary) -> None:
        # What a grammar forces comes again and again.
        self._tokenize = lru_cache(FORCED)(partial(tokenize_after, vocabulary))
        self._vocabulary = vocabulary
        # How often the target chose each token, by the one before and the forced text.
        self._chosen: Recent[tuple[int, bytes], dict[int, int]] = Recent(SPELLED)
        self._asked = 0, b""  # at which length of the text what was forced last

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
        self._learn(tokens)
        self._asked = len(tokens), text.encode()
        own, rest = self._own_spelling(tokens[-1] if tokens else -1, text.encode())
        return own + self._tokenize((*tokens[-TAIL:], *own)[-TAIL:], rest)[:-1] if rest else own

    def _learn(self, tokens: Sequence[int]) -> None:
        """Remember how the target has spelled the text that was forced last."""
        length, rest = self._asked
        before = tokens[length - 1] if 0 < length <= len(tokens) else -1
        for token in tokens[length:]:
            piece = self._vocabulary.token_bytes(token)
            if not piece or not rest.startswith(piece):
                break
            counts = self._chosen.setdefault((before, rest[:KEY]), {})
            counts[token] = counts.get(token, 0) + 1
            before = token
            rest = rest[len(piece) :]

    def _own_spelling(self, before: int, text: bytes) -> tuple[list[int], bytes]:
        """The tokens that the target chose for the beginning of ``text`` before, and the rest of it."""
        own: list[int] = []
        while text:
            counts = self._chosen.use((before, text[:KEY]))
            if not counts:
                break
            token = max(counts, key=counts.__getitem__)
            own.append(token)
            before = token
            text = text[len(self._vocabulary.token_bytes(token)) :]
        return own, text
