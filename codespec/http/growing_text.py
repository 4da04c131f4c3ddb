"""A text that grows by tokens, and what is told of them in step with it."""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

from codespec.engine.engine import TextVocabulary
from codespec.http.order import ToldToken
from codespec.http.stops import Stops
from codespec.protocols import TokenChance


class GrowingText:
    """Follows a text up to its first stop text. What comes of it does not depend on how many tokens come at a time.

    Attributes:
        stopped_by: the stop text that ended it; empty before.
    """

    def __init__(self, vocabulary: TextVocabulary, stops: Sequence[str]) -> None:
        self._vocabulary = vocabulary
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._stops = Stops(stops)
        self._held: deque[ToldToken] = deque()
        self._made = self._shown = 0  # characters

    @property
    def stopped_by(self) -> str:
        return self._stops.found

    def add(self, tokens: Sequence[int], chances: Sequence[TokenChance], last: bool) -> tuple[str, int]:
        """The text that is certain once tokens were added, and how many of them belong to it: all of them, or those up
        to the one that a stop text ends in.

        Args:
            chances: of the tokens, or none.
            last: whether the text ends with them by itself.
        """
        parts, count = [], 0
        for count, token in enumerate(tokens, 1):
            text = self._decoder.decode(self._vocabulary.token_bytes(token), final=last and count == len(tokens))
            if chances:
                self._held.append(self._told(chances[count - 1], text))
            self._made += len(text)
            parts.append(self._stops.add(text))
            if self.stopped_by:
                break
        else:
            if last and not tokens:
                parts.append(self._stops.add(self._half_character()))
            if last and not self.stopped_by:
                parts.append(self._stops.end())
        shown = "".join(parts)
        self._shown += len(shown)
        return shown, count

    def end(self) -> str:
        """The rest of a text to which no token is added any more."""
        return self.add((), (), True)[0]

    def told(self, over: bool) -> Iterator[ToldToken]:
        """The tokens whose text is certain by now, each once; with ``over``, all others that begin in the text, the
        last one with what a stop text has left of it."""
        natural = over and not self.stopped_by
        while self._held:
            token = self._held[0]
            end = token.offset + len(token.shown)
            if not natural and (token.offset >= self._shown or not (over or end <= self._shown)):
                return
            self._held.popleft()
            yield token if end <= self._shown else replace(token, shown=token.shown[: self._shown - token.offset])

    def _half_character(self) -> str:
        """What stands for the bytes of a character that never ends; the last token adds it."""
        text = self._decoder.decode(b"", final=True)
        if text and self._held:
            token = self._held.pop()
            self._held.append(replace(token, shown=token.shown + text))
        self._made += len(text)
        return text

    def _told(self, chance: TokenChance, shown: str) -> ToldToken:
        text = self._vocabulary.token_bytes
        best = tuple((token, text(token), logprob) for token, logprob in chance.best)
        return ToldToken(chance.token, text(chance.token), chance.logprob, best, shown, self._made)
