"""Generated tokens with their probabilities, in step with a text that a stop text may cut."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from codespec.engine.engine import TextVocabulary
from codespec.http.order import ToldToken
from codespec.protocols import TokenChance


class ToldTokens:
    """Tells the tokens of a text once their text is certain."""

    def __init__(self, vocabulary: TextVocabulary) -> None:
        self._vocabulary = vocabulary
        self._held: deque[tuple[int, ToldToken]] = deque()  # with the bytes before it
        self._made = self._shown = 0

    def add(self, chances: Iterable[TokenChance]) -> None:
        """Take tokens that were generated."""
        text = self._vocabulary.token_bytes
        for each in chances:
            best = tuple((token, text(token), logprob) for token, logprob in each.best)
            own = text(each.token)
            self._held.append((self._made, ToldToken(each.token, own, each.logprob, best)))
            self._made += len(own)

    def of(self, text: str, last: bool) -> tuple[ToldToken, ...]:
        """Those that begin in ``text``, which follows what was shown; all of them where the text ends by itself."""
        self._shown += len(text.encode("utf-8", "surrogatepass"))
        found = []
        while self._held and (last or self._held[0][0] < self._shown):
            found.append(self._held.popleft()[1])
        return tuple(found)
