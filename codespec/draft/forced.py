"""Text that the grammar leaves no choice about, as a draft: free of cost, and nearly always right."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codespec.protocols import GrammarState, Proposal, Sampler, Vocabulary

TAIL = 4
"""Tokens before the forced text that are tokenized along with it."""


class ForcedDraft:
    """Proposes the tokens of the text that the grammar forces.

    Forced text is not forced tokens: the model may cut it in more than one way. So it is tokenized as the
    model would have met it, behind the text before it, and its last token is left out, which might merge with
    what follows. The target verifies the rest like any other proposal.
    """

    source = "forced"

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

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
        """What the grammar forces behind ``tokens``, without its last token."""
        text = whole_characters(grammar.forced()) if grammar is not None else ""
        return self._tokenize_after(tokens[-TAIL:], text)[:-1] if text else []

    def _tokenize_after(self, tail: Sequence[int], text: str) -> list[int]:
        """Tokens of ``text`` as it is cut behind ``tail``; on its own where the two would merge."""
        for start in range(len(tail)):
            before = [self._vocabulary.token_bytes(token) for token in tail[start:]]
            try:
                joined = b"".join(before).decode()
            except UnicodeDecodeError:
                continue  # begins inside a character
            if not all(before):
                continue  # control tokens are not text
            ids = self._vocabulary.tokenize(joined + text)
            if ids[: len(before)] == list(tail[start:]):
                return ids[len(before) :]
            break
        return self._vocabulary.tokenize(text)


def whole_characters(data: bytes) -> str:
    """The text of ``data`` without a character that is cut off at its end; empty where it is not UTF-8."""
    for end in range(len(data), max(len(data) - 4, -1), -1):
        try:
            return data[:end].decode()
        except UnicodeDecodeError:
            continue
    return ""
