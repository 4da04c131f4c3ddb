"""One text while an engine streams it: whole characters, held to a grammar state."""

from __future__ import annotations

from collections.abc import Sequence

from codespec.protocols import Chunk, FinishReason, GrammarState, Round, Vocabulary

DAMAGED = "\ufffd"
"""What a character becomes that was cut in two, or lost otherwise."""
MOST_FORCED = 4
"""Times in a row that a grammar is asked for text that it forces at the beginning."""


class StreamedText:
    """Takes the pieces of one text; the grammar's state is advanced over it token by token.

    Args:
        grammar: None allows any text.

    Attributes:
        reason: why the text has ended; None while it has not.
    """

    def __init__(self, vocabulary: Vocabulary, grammar: GrammarState | None) -> None:
        self._vocabulary, self._grammar = vocabulary, grammar
        self._half = ""  # the first half of a character of two UTF-16 units, as JSON may escape it
        self.reason: FinishReason | None = None

    def forced(self) -> str:
        """The beginning that the grammar state forces, such as the word before the cursor, which the document has
        already; in whole characters."""
        return self._grammar.forced().decode("utf-8", "ignore") if self._grammar is not None else ""

    def begin(self) -> str:
        """Advance the state over the beginning that it forces, which it returns: an engine is not to choose it but to
        go on from it."""
        begun: list[int] = []
        for _ in range(MOST_FORCED):
            forced = self.forced()
            if self._grammar is None or not forced:
                break
            tokens = self._vocabulary.tokenize(forced)
            taken = self._grammar.accept(tokens)
            begun += tokens[:taken]
            if taken < len(tokens):
                break
        while begun and not _is_text(self._bytes(begun)):
            begun.pop()  # the refused token was in the middle of a character
            assert self._grammar is not None
            self._grammar.rollback(1)
        return self._bytes(begun).decode()

    def take(self, text: str, ids: Sequence[int] = ()) -> Chunk:
        """The part of ``text`` that the grammar takes; ``reason`` is set where that is not all of it.

        Args:
            ids: the engine's own tokens of it; where they do not spell it, it is cut into tokens here.
        """
        text = self._joined(text)
        damaged = text.find(DAMAGED)
        text = text if damaged < 0 else text[:damaged]
        tokens = list(ids) if ids and self._spell(ids, text) else self._vocabulary.tokenize(text)
        taken = self._grammar.accept(tokens) if self._grammar is not None else len(tokens)
        if taken < len(tokens):
            text = self._bytes(tokens[:taken]).decode("utf-8", "ignore")
        if self._grammar is not None and self._grammar.finished:
            self.reason = "stop"
        elif taken < len(tokens):
            self.reason = "grammar"
        elif damaged >= 0:
            self.reason = "length"
        return Chunk(text, Round(tuple(tokens[:taken])))

    def end(self) -> None:
        """The engine has ended the text: as the grammar wants it, or not."""
        if self.reason is None:
            ends = sorted(self._vocabulary.end_tokens)[:1]
            self.reason = "stop" if self._grammar is None or self._grammar.accept(ends) else "grammar"

    def _joined(self, text: str) -> str:
        """Whole characters of what is there so far; a lone half is damage."""
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def _spell(self, ids: Sequence[int], text: str) -> bool:
        size = self._vocabulary.size
        return all(0 <= token < size for token in ids) and self._bytes(ids) == text.encode()

    def _bytes(self, tokens: Sequence[int]) -> bytes:
        return b"".join(map(self._vocabulary.token_bytes, tokens))


def last(chunk: Chunk, reason: FinishReason) -> Chunk:
    """The same chunk as the last one of its text."""
    tokens = chunk.round.tokens if chunk.round is not None else ()
    return Chunk(chunk.text, Round(tokens, finish_reason=reason), reason)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
