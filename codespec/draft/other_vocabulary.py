"""A smaller model with another vocabulary as the draft: its text, not its tokens, is what the target may take."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from codespec.draft.markers import Markers
from codespec.draft.retokenize import RetokenizedText, cut_alike
from codespec.draft.sequence import HeldSequence, common_prefix
from codespec.draft.text import TAIL, exact_tokens, spelled, tokenize_after, whole_characters
from codespec.protocols import CodespecError, GrammarState, Logits, Proposal, Sampler, Target, Vocabulary

PER_TOKEN = 8
"""Tokens of the draft's own that one token of the target's may cost; a text that cannot be cut must not go on."""
ALIKE = 0.9
"""Share of ends that are cut alike (``cut_alike``) from which on a proposal's last token is worth verifying."""


class OtherVocabularyDraft:
    """Proposes the text that a smaller model with a vocabulary of its own would write, in the target's tokens.

    The model reads the same text in its own tokens, and what it writes is tokenized as the target would have met it.
    The last token may merge with what would follow: it is held back unless the text ended there, or the two
    vocabularies mostly cut alike. The model chooses greedily and knows nothing of the grammar, which takes as much of
    the text as it allows.

    Where the model lacks a control token of the prompt it reads plain text: what stands before the cursor.

    Args:
        model: the small model's own sequence.
        own: its vocabulary.
        target: the target's.
        markers: what the two share beside text.
        context_length: of ``model``; a longer text loses its beginning. None: there is no limit.
        alike: ``cut_alike(own, target)``, where that is known.
    """

    source = "model"

    def __init__(
        self,
        model: Target,
        own: Vocabulary,
        target: Vocabulary,
        markers: Markers | None = None,
        context_length: int | None = None,
        alike: float | None = None,
    ) -> None:
        self._sequence = HeldSequence(model)
        self._own = own
        self._target = target
        self._markers = markers or Markers()
        # An eighth is left for what is proposed.
        self._limit = None if context_length is None else max(8, context_length * 7 // 8)
        self._keeps_last = (cut_alike(own, target) if alike is None else alike) >= ALIKE
        self._forget()

    def _forget(self) -> None:
        # The text: tokens up to the last control token (`_head` of them) in the draft's tokens (None: read as plain
        # text), the others as they grow, after `_before` tokens of the head that are read once more.
        self._seen: list[int] = []
        self._head = 0
        self._mapped: list[int] | None = []
        self._before = 0
        self._text = RetokenizedText(self._own, self._target)

    def forget(self) -> None:
        """Hold nothing: what was decoded is of no use any more."""
        self._sequence.rollback(0)
        self._forget()

    def propose(
        self,
        tokens: Sequence[int],
        grammar: GrammarState | None,
        sampler: Sampler,
        more: Callable[[float], bool],
    ) -> Proposal:
        """As ``protocols.Draft.propose``; ends early where the model ends its text or the grammar refuses it.

        Raises:
            CodespecError, Aborted: the model could not decode; ``grammar`` is as before the call.
        """
        taken = _Taken(grammar)
        if not tokens or not more(1.0):
            return Proposal((), source=self.source)
        try:
            self._follow(tokens)
            context = self._context()
        except BaseException:  # a tokenizer refused: begin anew the next time
            self._forget()
            raise
        if not context or len(self._text.rest) > 3:
            return Proposal((), source=self.source)
        try:
            self._take(tokens[-TAIL:], context, taken, more)
        except BaseException:
            taken.bring_to(())
            raise
        return Proposal(tuple(taken.tokens), source=self.source)

    def _take(self, tail: Sequence[int], context: Sequence[int], taken: _Taken, more: Callable[[float], bool]) -> None:
        """Let the model write until there is enough; ``taken`` gets what the grammar allows of it."""
        allowed, sure = 1, 1.0
        for steps, (data, confidence, ended) in enumerate(self._written(context), 1):
            sure *= confidence
            ids = tokenize_after(self._target, tail, data)
            settled = ids if ended else ids[:-1]
            usable = ids if self._keeps_last else settled
            enough = ended or steps > PER_TOKEN * (len(settled) + 1)
            while not enough and len(usable) >= allowed:
                enough = not more(sure)
                allowed += not enough
                sure = 1.0  # a second token of the same text is as sure as the first
            if not taken.bring_to((usable if enough else settled)[:allowed]) or enough:
                return

    def _written(self, context: Sequence[int]) -> Iterator[tuple[bytes, float, bool]]:
        """What the model writes after the text: all of it so far, the last token's probability, whether it ended."""
        rest = self._text.rest
        written = b""
        logits, _ = self._sequence.bring_to(context)
        while True:
            token, confidence = _best(logits)
            piece = self._own.token_bytes(token)
            written += piece
            if not (written.startswith(rest) or rest.startswith(written)):
                return  # another character than the one that has begun
            data = whole_characters(written).encode()[len(rest) :]
            yield data, confidence, not piece
            if not piece:  # an end token, or the beginning of another file
                return
            logits = self._sequence.extend((token,), 1)

    def _follow(self, tokens: Sequence[int]) -> None:
        """Take notice of the text as it is now."""
        kept = common_prefix(self._seen, tokens)
        new = tokens[kept:]
        self._seen[kept:] = new
        if kept < self._head or not all(map(self._target.token_bytes, new)):
            self._split()
        else:
            self._text.replace(self._before + kept - self._head, new)

    def _split(self, plain: bool = False) -> None:
        """Read the whole text anew, with its control tokens if the model knows them and not ``plain``."""
        tokens = self._seen
        controls = [i for i, token in enumerate(tokens) if not self._target.token_bytes(token)]
        self._head = controls[-1] + 1 if controls else 0
        self._mapped = None if plain else self._map(tokens[: self._head])
        before = self._before_cursor(tokens[: self._head]) if self._mapped is None else []
        self._before = len(before)
        self._text = RetokenizedText(self._own, self._target)
        self._text.replace(0, [*before, *tokens[self._head :]])

    def _map(self, head: Sequence[int]) -> list[int] | None:
        """Control tokens and the text between them in the draft's tokens; None where it has no such tokens."""
        mapped: list[int] = []
        start = 0
        for i, token in enumerate(head):
            if self._target.token_bytes(token):
                continue
            text = whole_characters(spelled(self._target, head[start:i]))
            ids = exact_tokens(self._own, text)
            if token not in self._markers.same or (i > start and not ids):
                return None
            own = self._markers.same[token]
            mapped += ids if own is None else [*ids, own]
            start = i + 1
        return mapped

    def _before_cursor(self, head: Sequence[int]) -> list[int]:
        """The text in front of the cursor, if the markers enclose it (prefix, suffix, middle in this order)."""
        if self._markers.fim is None or not all(marker in head for marker in self._markers.fim):
            return []
        prefix, suffix = map(list(head).index, self._markers.fim)
        return list(head[prefix + 1 : suffix])

    def _context(self) -> list[int]:
        """The text in the draft's tokens, its beginning left out if it is too long."""
        beginning = [] if self._markers.beginning is None else [self._markers.beginning]
        if self._mapped is not None:
            start = self._mapped if self._mapped[:1] == beginning else [*beginning, *self._mapped]
            if self._limit is None or len(start) + len(self._text.tokens) <= self._limit:
                return [*start, *self._text.tokens]
            self._split(plain=True)
        text = self._text.tokens
        if self._limit is not None and len(text) > self._limit:
            # In steps of a quarter: a window that moves with every token would empty the KV cache every time.
            step = max(1, self._limit // 4)
            text = text[-(-(len(text) - self._limit) // step) * step :]
        return [*beginning, *text]


class _Taken:
    """Tokens, and a grammar that has advanced over exactly them."""

    def __init__(self, grammar: GrammarState | None) -> None:
        self._grammar = grammar
        self.tokens: list[int] = []

    def bring_to(self, tokens: Sequence[int]) -> bool:
        """Hold ``tokens``, as far as the grammar takes them; whether more may follow."""
        same = common_prefix(self.tokens, tokens)
        new = tokens[same:]
        if self._grammar is not None:
            if same < len(self.tokens):
                self._grammar.rollback(len(self.tokens) - same)
            new = new[: self._grammar.accept(new)] if new else new
        self.tokens[same:] = new
        return len(self.tokens) == len(tokens) and (self._grammar is None or not self._grammar.finished)


def _best(logits: Logits) -> tuple[int, float]:
    """The best token after the last row, and its probability."""
    row = logits[-1]
    token = int(row.argmax())
    top = float(row[token])
    if not math.isfinite(top):
        raise CodespecError("the draft's logits are not numbers; the model file may be damaged")
    return token, 1 / float(np.exp(row - top).sum())


def other_vocabulary_note(draft: str, target: str, alike: float, difference: str = "") -> str:
    """What it costs that a draft has another vocabulary; ``alike`` is ``cut_alike`` of the two.

    Args:
        difference: the first token that differs, in words.
    """
    if alike >= ALIKE:
        price = f"expect about {1 - alike:.0%} of the last tokens of its proposals to be refused for that alone"
    else:
        price = (
            f"the two end a token at the same place in only {alike:.0%} of cases, so the last token of every proposal "
            "is lost: a proposal costs one draft token more"
        )
    named = f" ({difference})" if difference else ""
    return (
        f"draft {draft} has another vocabulary than target {target}{named}: its text is re-encoded at every round; "
        f"{price}. A draft trained for this target is faster"
    )
