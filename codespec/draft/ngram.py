"""Text that occurred before, as a draft: learnt online from the prompt, open files and what was accepted."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from codespec.draft.acceptance import ngram_bin
from codespec.draft.copying import Guess
from codespec.draft.sequence import common_prefix
from codespec.protocols import GrammarState, Proposal, Sampler

GRAM = 2
"""Tokens that must have occurred together before what followed them is proposed."""

LONGEST_MATCH = 32
LONGEST_PROPOSAL = 64
CANDIDATES = 8
"""Earlier places that are compared; of more, the most recent."""

LONGEST_CHAIN = 64
"""Places of a chain that are looked at."""

SURE_FOLLOWING = 4
"""Tokens after the cursor that must be the same for a place to count as the cursor's own."""

GENERATED = 4_096
"""Tokens of earlier generations that are kept."""

SURE_MATCH = 10
"""Tokens of a match, all others agreeing, from which on it is nearly certain to go on."""
BREAK = -1
"""Between two texts of an index; no token."""

_FIRST, _SECOND = 0x9E3779B1, 0x85EBCA77


@dataclass(frozen=True)
class NgramMatch:
    """An earlier occurrence of the tokens at the end of the text.

    Attributes:
        index: that holds it.
        place: position in ``index`` of the token that followed.
        length: how many tokens before it are the same.
        agreed: whether no other match of half that length or more was followed by another token.
    """

    index: NgramIndex
    place: int
    length: int
    agreed: bool

    def run(self, count: int) -> list[int]:
        """The tokens that followed, ``count`` at most; past the end of a text that grows they repeat themselves."""
        held = self.index.tokens
        found = held[self.place : self.place + count].tolist()
        if BREAK in found:
            return found[: found.index(BREAK)]
        period = len(held) - self.place
        while self.index.grows and len(found) < count:
            found.append(found[-period])
        return found


class NgramIndex:
    """Every position of a text by the two tokens before it: hash chains, most recent first, as in LZ77 coders.

    A token takes 8 bytes; different pairs may share a chain, so the text itself is compared.

    Args:
        grows: whether the end of the text is the end of what is generated.
        chains: a power of two; best as many as there are different pairs of tokens.
    """

    def __init__(self, grows: bool = False, chains: int = 1 << 13) -> None:
        self.tokens = array("i")
        self.grows = grows
        self._latest = array("i", [-1]) * chains
        self._earlier = array("i")  # for each place the previous one of its chain

    def _chain(self, first: int, second: int) -> int:
        return (first * _FIRST + second * _SECOND) & (len(self._latest) - 1)

    def extend(self, tokens: Sequence[int]) -> None:
        """Append tokens, so that they can be proposed; linear in their number."""
        held, latest, earlier = self.tokens, self._latest, self._earlier
        before = len(held)
        held.extend(tokens)
        earlier.extend([-1] * (min(GRAM, len(held)) - min(GRAM, before)))
        begin, mask = max(before, GRAM), len(latest) - 1
        for place, (first, second) in enumerate(pairwise(held[begin - 2 : -1]), begin):
            slot = (first * _FIRST + second * _SECOND) & mask  # as ``_chain``, without a call for each token
            earlier.append(latest[slot])
            latest[slot] = place

    def truncate(self, length: int) -> None:
        """Forget what comes after the first ``length`` tokens."""
        if 2 * length < len(self.tokens):
            self._begin_anew(self.tokens[:length])
            return
        held, earlier = self.tokens, self._earlier
        while len(held) > length:
            held.pop()
            before = earlier.pop()
            if len(held) >= GRAM:
                self._latest[self._chain(held[-2], held[-1])] = before

    def forget_oldest(self, kept: int) -> None:
        """Keep the last ``kept`` tokens only; positions change."""
        self._begin_anew(self.tokens[max(0, len(self.tokens) - kept) :])

    def _begin_anew(self, tokens: Sequence[int]) -> None:
        self.tokens, self._earlier = array("i"), array("i")
        self._latest = array("i", [-1]) * len(self._latest)
        self.extend(tokens)

    def _after(self, first: int, second: int) -> Iterator[int]:
        """The positions after these two tokens, the most recent first; not those far back in a chain."""
        held, earlier = self.tokens, self._earlier
        place = self._latest[self._chain(first, second)]
        for _ in range(LONGEST_CHAIN):
            if place < 0:
                break
            if held[place - 1] == second and held[place - 2] == first:
                yield place
            place = earlier[place]

    def holds(self, tokens: Sequence[int], start: int, end: int) -> int:
        """How many of ``tokens[start:end]`` followed, at best, when the two tokens before ``start`` came lately."""
        held = self.tokens
        best = 0
        for place in islice(self._after(tokens[start - 2], tokens[start - 1]), CANDIDATES):
            length, reach = 0, min(end - start, len(held) - place)
            while length < reach and held[place + length] == tokens[start + length]:
                length += 1
            best = max(best, length)
        return best

    def places(self, tail: Sequence[int]) -> list[tuple[int, int]]:
        """(length of the match, position after it) of the latest occurrences of the end of ``tail``."""
        found: list[tuple[int, int]] = []
        held = self.tokens
        most = min(LONGEST_MATCH, len(tail))
        for place in self._after(tail[-2], tail[-1]):
            if held[place] == BREAK:
                continue
            length = GRAM
            reach = min(most, place)
            while length < reach and held[place - 1 - length] == tail[-1 - length]:
                length += 1
            found.append((length, place))
            if len(found) == CANDIDATES:
                break
        return found


class NgramDraft:
    """Proposes what followed the longest earlier occurrence of the last tokens: in the text itself, in what was
    generated lately (every key has nearly the same text generated again), or in an index of other texts.

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
        self._synced: list[int] = []  # what it holds: lists are compared faster
        self._generated = NgramIndex()
        self._document: NgramIndex | None = None

    def read(self, document: Sequence[int]) -> None:
        """Draft from a document, too, until another one is given; none: from no document."""
        self._document = NgramIndex() if document else None
        if self._document is not None:
            self._document.extend(document)

    def remember(self, prompt: Sequence[int], generated: Sequence[int]) -> None:
        """Learn what was generated after a prompt, shown or not."""
        index = self._generated
        index.extend([*prompt[-LONGEST_MATCH:], *generated, BREAK])
        if len(index.tokens) > GENERATED:
            index.forget_oldest(GENERATED // 2)

    def forget_generated(self) -> None:
        """Forget the generated texts; what the workspace taught stays."""
        self._generated = NgramIndex()

    def sync(self, tokens: Sequence[int]) -> None:
        """Bring the index of the text in step with ``tokens``."""
        before = len(self._synced)
        self._synced += tokens[before:]
        if self._synced != tokens:  # it has not only grown; copying both to see where they differ takes longer
            before = min(before, common_prefix(self._synced, tokens))
            self._text.truncate(before)
            self._synced[before:] = tokens[before:]
        self._text.extend(tokens[before:])

    def follow(self, tokens: Sequence[int]) -> NgramFollower | None:
        """As ``CopyingSource.follow``."""
        self.sync(tokens)
        match = self.match(tokens[-LONGEST_MATCH:])
        return NgramFollower(self, tokens[-LONGEST_MATCH:], match) if match is not None else None

    def match(self, tail: Sequence[int]) -> NgramMatch | None:
        """The longest match of the end of ``tail``, the most recent of equals, generated ones before the text's own."""
        if len(tail) < GRAM:
            return None
        best: NgramMatch | None = None
        best_length = 0
        votes: list[tuple[int, int]] = []
        for index in (self._generated, self._text, self._document, self.learnt):
            if index is None:
                continue
            for length, place in index.places(tail):
                if index is self.learnt and self._is_following(index, place):
                    continue
                votes.append((length, index.tokens[place]))
                if length > best_length:
                    best_length, best = length, NgramMatch(index, place, length, True)
        if best is None:
            return None
        token = best.index.tokens[best.place]
        if all(other == token for length, other in votes if 2 * length >= best_length):
            return best
        return NgramMatch(best.index, best.place, best.length, False)

    def _is_following(self, index: NgramIndex, place: int) -> bool:
        following = self.following
        if len(following) < SURE_FOLLOWING or index.tokens[place] != following[0]:
            return False
        return index.tokens[place : place + len(following)].tolist() == following

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
        predicted = match.run(LONGEST_PROPOSAL) if match is not None else []
        count = 0
        while count < len(predicted) and more(1.0):
            count += 1
        if grammar is not None:
            count = grammar.accept(predicted[:count])
        return Proposal(tuple(predicted[:count]), source=self.source)


class NgramFollower:
    """What followed at a match, and at another one where the proposal leaves that; see ``copying.Follower``."""

    repeats_whole = False

    def __init__(self, ngrams: NgramDraft, tail: Sequence[int], match: NgramMatch) -> None:
        self._ngrams, self._tail = ngrams, list(tail)
        self._match: NgramMatch | None = match
        self._predicted = match.run(LONGEST_PROPOSAL)
        self._at = 0

    def guess(self) -> Guess | None:
        """As ``Follower.guess``."""
        if self._match is None or self._at >= len(self._predicted):
            return None
        kind = "ngram" if self._match.agreed else "ngram-split"
        return self._predicted[self._at], (kind, ngram_bin(self._match.length + self._at))

    def step(self, token: int) -> None:
        """As ``Follower.step``."""
        if self._match is None:
            return
        self._tail.append(token)
        if self._at < len(self._predicted) and self._predicted[self._at] == token:
            self._at += 1
            return
        self._match = self._ngrams.match(self._tail[-LONGEST_MATCH:])
        self._predicted = self._match.run(LONGEST_PROPOSAL) if self._match is not None else []
        self._at = 0

    def refused(self, kept: Sequence[int]) -> None:
        """Says nothing more: what is refused would come again."""
        self._match = None

    @property
    def is_sure(self) -> bool:
        """As ``Follower.is_sure``."""
        return self._match is not None and self._match.agreed and self._match.length >= SURE_MATCH
