"""Text that occurred before, as a draft: learnt online from the prompt, open files and what was accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from codespec.draft.sequence import common_prefix
from codespec.protocols import GrammarState, Proposal, Sampler

GRAM = 2
"""Tokens that must have occurred together before what followed them is proposed."""

LONGEST_MATCH = 32
CANDIDATES = 8
"""Earlier places that are compared; of more, the most recent."""

SURE_FOLLOWING = 4
"""Tokens after the cursor that must be the same for a place to count as the cursor's own."""

BREAK = -1
"""Between two texts of an index; no token."""


@dataclass(frozen=True)
class Match:
    """An earlier place like the end of the text.

    Attributes:
        index: where it lies.
        place: of the token that followed there.
        length: how many tokens before it are the same.
        agreed: whether no other place of half that length or more was followed by another token.
    """

    index: NgramIndex
    place: int
    length: int
    agreed: bool

    def token(self, ahead: int, proposed: Sequence[int]) -> int:
        """The token that came ``ahead`` places later; past the end of the text it repeats what was ``proposed``."""
        place = self.place + ahead
        held = self.index.tokens
        if place < len(held):
            return held[place]
        beyond = place - len(held)
        return proposed[beyond] if self.index.grows and beyond < len(proposed) else BREAK


class NgramIndex:
    """Every place of a text by the two tokens before it: hash chains, most recent first, as in LZ77 coders.

    Args:
        grows: whether the end of the text is the end of what is generated.
    """

    def __init__(self, grows: bool = False) -> None:
        self.tokens: list[int] = []
        self.grows = grows
        self._latest: dict[tuple[int, int], int] = {}
        self._earlier: list[int] = []  # for each place the previous one with the same two tokens before it

    def extend(self, tokens: Iterable[int]) -> None:
        """Append tokens."""
        held, latest, earlier = self.tokens, self._latest, self._earlier
        before = len(held)
        text = [*held[-GRAM:], *tokens]
        held += text[min(GRAM, before) :]
        earlier += [-1] * (min(GRAM, len(held)) - min(GRAM, before))
        for place, key in enumerate(pairwise(text[:-1]), max(before, GRAM)):
            earlier.append(latest.get(key, -1))
            latest[key] = place

    def truncate(self, length: int) -> None:
        """Forget what comes after the first ``length`` tokens."""
        held, latest, earlier = self.tokens, self._latest, self._earlier
        while len(held) > length:
            held.pop()
            before = earlier.pop()
            if len(held) >= GRAM:
                key = (held[-2], held[-1])
                if before < 0:
                    del latest[key]
                else:
                    latest[key] = before

    def forget_oldest(self, kept: int) -> None:
        """Keep the last ``kept`` tokens only; every place becomes another one."""
        newest = self.tokens[max(0, len(self.tokens) - kept) :]
        self.tokens, self._latest, self._earlier = [], {}, []
        self.extend(newest)

    def holds(self, tokens: Sequence[int], start: int, end: int) -> int:
        """How many of ``tokens[start:end]`` followed, at best, when the two tokens before ``start`` came lately."""
        held, earlier = self.tokens, self._earlier
        place = self._latest.get((tokens[start - 2], tokens[start - 1]), -1)
        best = 0
        for _ in range(CANDIDATES):
            if place < 0:
                break
            length, reach = 0, min(end - start, len(held) - place)
            while length < reach and held[place + length] == tokens[start + length]:
                length += 1
            best = max(best, length)
            place = earlier[place]
        return best

    def places(self, tail: Sequence[int]) -> list[tuple[int, int]]:
        """(length of the match, place) of the most recent places after the last tokens of ``tail``."""
        found: list[tuple[int, int]] = []
        held, earlier = self.tokens, self._earlier
        place = self._latest.get((tail[-2], tail[-1]), -1)
        most = min(LONGEST_MATCH, len(tail))
        while place >= 0 and len(found) < CANDIDATES:
            length = GRAM
            reach = min(most, place)
            while length < reach and held[place - 1 - length] == tail[-1 - length]:
                length += 1
            if held[place] != BREAK:
                found.append((length, place))
            place = earlier[place]
        return found


class NgramDraft:
    """Proposes what followed the last time: in the text itself, or in what it was taught.

    Args:
        learnt: an index of other texts, which may be shared and grow; None: only the text itself.

    Attributes:
        learnt: may be exchanged between two generations.
        following: tokens that stand after the cursor. What was learnt may hold the very file that is completed, where
            they follow what is before the cursor; but the text to come is another one.
    """

    source = "ngram"

    def __init__(self, learnt: NgramIndex | None = None) -> None:
        self.learnt = learnt
        self.following: list[int] = []
        self._text = NgramIndex(grows=True)

    def sync(self, tokens: Sequence[int]) -> None:
        """Bring the index of the text in step with ``tokens``."""
        index = self._text
        kept = common_prefix(index.tokens, tokens)
        index.truncate(kept)
        index.extend(tokens[kept:])

    def match(self, tail: Sequence[int], synced: bool = True) -> Match | None:
        """The longest match of the end of ``tail``, the most recent of equals, the text's own before learnt ones."""
        if len(tail) < GRAM:
            return None
        best: Match | None = None
        best_length = 0
        votes: list[tuple[int, int]] = []
        for index in (self._text, self.learnt):
            if index is None:
                continue
            for length, place in index.places(tail):
                if index is self.learnt and self._is_following(index, place):
                    continue
                votes.append((length, index.tokens[place]))
                if length > best_length:
                    best_length, best = length, Match(index, place, length, True)
        if best is None:
            return None
        token = best.index.tokens[best.place]
        if all(other == token for length, other in votes if 2 * length >= best_length):
            return best
        return Match(best.index, best.place, best.length, False)

    def _is_following(self, index: NgramIndex, place: int) -> bool:
        following = self.following
        return len(following) >= SURE_FOLLOWING and index.tokens[place : place + len(following)] == following

    def propose(
        self,
        tokens: Sequence[int],
        grammar: GrammarState | None,
        sampler: Sampler,
        more: Callable[[float], bool],
    ) -> Proposal:
        """As ``protocols.Draft.propose``."""
        self.sync(tokens)
        match = self.match(tokens[-LONGEST_MATCH:])
        proposed: list[int] = []
        while match is not None and more(1.0):
            token = match.token(len(proposed), proposed)
            if token == BREAK or (grammar is not None and not grammar.accept((token,))):
                break
            proposed.append(token)
        return Proposal(tuple(proposed), source=self.source)
