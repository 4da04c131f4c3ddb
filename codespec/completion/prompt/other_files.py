"""The chunks of other files that a prompt shows: a ring of those edited or viewed lately, chosen by relevance.

The ring is llama.vim's idea. The chunks stand at the start of a prompt, so that a change of them costs prefilling
nearly all of it again: they are chosen anew seldom, and one that stays keeps its position.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import monotonic

from codespec.protocols import Snippet
from codespec.recent import Recent

SIMILAR = 0.9
"""A new chunk replaces those that share more than this part of their lines with it."""
REPEATED = 0.5
"""A chunk with more than this part of its lines near the cursor is redundant."""
BUDGET = 12_000
"""Characters of all snippets of a prompt together."""
LEAST_LINES = 3
"""Lines of a chunk; shorter ones are not kept."""
MOST_LINE = 400
"""Characters of a line that a chunk keeps; a chunk of longer ones is data."""
MOVED_LINES = 20
"""How far the cursor moves before other chunks may become more relevant."""
EVERY_S = 10.0
"""Seconds between two choices for a cursor that does not move that far."""
RELEVANT = 0.12
"""The relevance that a chunk of an open document needs to be shown. Between chunks of two modules of Python's library
97 % are less relevant (the median is 0.07), of two in one folder of this package 40 % (0.13)."""
GAIN = 1.5
"""The factor by which a chunk must be more relevant than a shown one to replace it."""
DOCUMENTS = 32
"""Documents whose choice of chunks, and whose text while they are open, is kept."""
PIECES = 16
"""Chunks of an open document that are kept, those around its latest position."""

_NAME = re.compile(r"(?<!\w)[^\W\d]\w{2,}")


@dataclass(frozen=True, eq=False)  # they are many, and kept where they are the same
class FileChunk:
    """Some lines of a document.

    Attributes:
        document: its URI.
        group: chunks are shown only to documents of the same one: the workspace folder.
        path: as a prompt shows it.
        lines: without their ends.
        words: the identifiers in them.
        number: counts up with time. 0: a chunk of an open document as it is, not of a position worked on.
    """

    document: str
    group: str
    path: str
    lines: tuple[str, ...]
    words: frozenset[str]
    number: int = 0

    @property
    def snippet(self) -> Snippet:
        return Snippet(self.path, "\n".join(self.lines) + "\n")

    @cached_property
    def size(self) -> int:
        """Characters of path and lines, with a line end for each."""
        return len(self.path) + sum(map(len, self.lines)) + len(self.lines)


class Ring:
    """The chunks around the latest positions in all documents, the oldest first, and those of open documents.

    Args:
        size: how many latest chunks are kept; 0 keeps no chunks at all.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._chunks: list[FileChunk] = []
        self._count = 0
        self._changes: Counter[str] = Counter()
        self._open: Recent[str, list[FileChunk]] = Recent(
            DOCUMENTS, dropped=lambda document, _: self._changes.update((document,))
        )

    @property
    def chunks(self) -> tuple[FileChunk, ...]:
        return tuple(self._chunks)

    def resize(self, size: int) -> None:
        """Keep so many chunks from now on."""
        self._size = size
        self._limit()

    def add(self, document: str, group: str, path: str, lines: Sequence[str]) -> bool:
        """Add the chunk around a position that was edited or viewed; False where it is too short or known."""
        kept = _trimmed(lines)
        if len(kept) < LEAST_LINES or any(len(line) > MOST_LINE for line in kept):
            return False
        same = [each for each in self._chunks if each.document == document and each.lines == kept]
        if same and same[-1] is self._chunks[-1]:
            return False
        older = [
            each
            for each in self._chunks
            if each in same or (each.group == group and similarity(each.lines, kept) > SIMILAR)
        ]
        for each in older:
            self._chunks.remove(each)
            self._changes[each.document] += each not in same
        self._count += 1
        # What was there before as it is now is the same chunk: to those who show it, nothing has changed.
        fresh = FileChunk(document, group, path, kept, words("\n".join(kept)), self._count)
        self._chunks.append(same[-1] if same else fresh)
        if not same:
            self._changes[document] += 1
        self._limit()
        return True

    def open(self, document: str, group: str, path: str, found: Iterable[Sequence[str]]) -> None:
        """A document is open, or has changed: its chunks may be shown, however long ago they were viewed.

        Args:
            found: its chunks, from first to last.
        """
        old = {each.lines: each for each in self._open.pop(document, [])}
        kept: dict[tuple[str, ...], FileChunk] = {}
        for lines in found if self._size > 0 else ():
            text = _trimmed(lines)
            if text in old:
                kept[text] = old[text]  # the same as before: to those who show it, nothing has changed
            elif len(text) >= LEAST_LINES and all(len(line) <= MOST_LINE for line in text):
                kept[text] = FileChunk(document, group, path, text, words("\n".join(text)))
        self._changes[document] += kept.keys() != old.keys()
        self._open[document] = list(kept.values())

    def close(self, document: str) -> None:
        """A document is not open any more; its latest chunks stay in the ring."""
        self._changes[document] += bool(self._open.pop(document, None))

    def remove(self, document: str) -> None:
        """Forget all of a document."""
        self.close(document)
        left = [each for each in self._chunks if each.document != document]
        if len(left) < len(self._chunks):
            self._changes[document] += 1
        self._chunks = left

    def others(self, document: str, group: str) -> list[FileChunk]:
        """The chunks that may be shown to a document."""
        pieces = (each for found in self._open.values() for each in found)
        return [each for each in (*self._chunks, *pieces) if each.document != document and each.group == group]

    def version(self, document: str) -> int:
        """Changes when chunks of other documents than this one do."""
        return self._changes.total() - self._changes[document]

    def _limit(self) -> None:
        """Drop the oldest chunks of those documents that have the most: a long session in one drops no other."""
        if self._size <= 0:
            for document in list(self._open):
                self.close(document)
        while len(self._chunks) > self._size:
            counts = Counter(each.document for each in self._chunks)
            most = max(counts.values())
            oldest = next(each for each in self._chunks if counts[each.document] == most)
            self._chunks.remove(oldest)
            self._changes[oldest.document] += 1


@dataclass(frozen=True)
class _Selection:
    """The chunks chosen for a document, and when and for which row."""

    chunks: tuple[FileChunk, ...]
    version: int
    row: int
    at: float
    snippets: tuple[Snippet, ...]


class Chooser:
    """Chooses for each document among the chunks of others, and keeps the choice while somebody types.

    Args:
        clock: seconds.
    """

    def __init__(self, ring: Ring, budget: int = BUDGET, clock: Callable[[], float] = monotonic) -> None:
        self._ring, self._budget, self._clock = ring, budget, clock
        self._selections: Recent[str, _Selection] = Recent(DOCUMENTS)

    def choose(
        self,
        document: str,
        group: str,
        row: int,
        near: Callable[[], Sequence[str]],
    ) -> tuple[Snippet, ...]:
        """Snippets for a position in a document: those shown before in the same order, then new ones. The same object
        as before where nothing has changed.

        Args:
            row: of the cursor.
            near: the lines around it; called only when the choice is made anew.
        """
        now, version = self._clock(), self._ring.version(document)
        old = self._selections.use(document)
        if old is None or old.version != version or abs(row - old.row) > MOVED_LINES or now - old.at > EVERY_S:
            chunks = self._ring.others(document, group)
            shown = old.chunks if old else ()
            found = select(chunks, shown, near(), self._budget) if chunks else ()
            snippets = old.snippets if old and found == shown else tuple(each.snippet for each in found)
            old = self._selections[document] = _Selection(found, version, row, now, snippets)
        return old.snippets

    def forget(self, document: str) -> None:
        """Drop the choice for a document."""
        self._selections.pop(document, None)


def select(
    chunks: Sequence[FileChunk], shown: Sequence[FileChunk], near: Sequence[str], budget: int
) -> tuple[FileChunk, ...]:
    """The chunks to show: those of ``shown`` that are still among ``chunks``, in their order, then others.

    The most relevant ones that fit are taken, best first. A shown one makes room only for a clearly more relevant one
    (``GAIN``); then all shown ones that are no longer among the best go at once.

    Args:
        near: the lines around the cursor; a chunk that mostly repeats them is never shown.
        budget: characters.
    """
    text = words("\n".join(near))
    around = {line.strip() for line in near}
    scores = {each: relevance(each.words, text) for each in chunks}
    worth = (each for each in scores if each.number or each in shown or scores[each] >= RELEVANT)
    # Of two as relevant the later one.
    order = sorted(worth, key=lambda each: (scores[each], each.number), reverse=True)
    best = _fitting(order, (), budget, around)
    kept = [each for each in shown if each in scores and _repeated(each.lines, around) <= REPEATED]
    if sum(each.size for each in kept) > budget:
        kept = []
    missing = [each for each in best if each not in kept]
    staying = [each for each in kept if each in best]
    worst = min((scores[each] for each in kept if each not in best), default=0.0)
    if len(staying) < len(kept) and missing and scores[missing[0]] > GAIN * worst:
        kept = staying
    return (*kept, *_fitting(order, kept, budget, around))


def _fitting(chunks: Iterable[FileChunk], kept: Sequence[FileChunk], budget: int, around: set[str]) -> list[FileChunk]:
    """Those of ``chunks``, in order, that fit beside ``kept`` and repeat neither them nor the lines ``around`` the
    cursor."""
    found = list(kept)
    left = budget - sum(each.size for each in kept)
    for each in chunks:
        if each.size > left or any(_overlap(each, other) for other in found):
            continue
        if _repeated(each.lines, around) <= REPEATED:
            found.append(each)
            left -= each.size
    return found[len(kept) :]


def _overlap(one: FileChunk, other: FileChunk) -> bool:
    """Whether one is mostly a part of the other."""
    return one.document == other.document and bool(one.lines) and similarity(one.lines, other.lines) > REPEATED


def piece_spans(lines: Sequence[str], row: int, count: int) -> list[range]:
    """A document in pieces of at most ``count`` lines, those around ``row``; they begin with what stands at the top
    level where they can, so that most of them are the same after a change somewhere."""
    starts = [0]
    for index in range(1, len(lines)):
        size = index - starts[-1]
        top_level = not lines[index - 1].strip() and lines[index][:1].strip() not in ("", "}", ")", "]")
        if size >= count or (size >= count // 2 and top_level):
            starts.append(index)
    own = max(number for number, start in enumerate(starts) if start <= max(row, 0))
    first = max(0, min(own - PIECES // 2, len(starts) - PIECES))
    ends = [*starts[1:], len(lines)]
    return [range(*bounds) for bounds in zip(starts, ends, strict=True)][first : first + PIECES]


def around(lines: Sequence[str], row: int, count: int) -> list[str]:
    """``count`` lines around one, three quarters of them before it, without their ends."""
    return without_ends(lines, span(lines, row, count))


def span(lines: Sequence[str], row: int, count: int) -> range:
    """Indices of ``count`` lines around line ``row``, three quarters of them before it; fewer in a shorter file."""
    start = max(0, min(row - count * 3 // 4, len(lines) - count))
    return range(start, min(start + count, len(lines)))


def without_ends(lines: Sequence[str], chosen: range) -> list[str]:
    """Some lines of a document, without their ends."""
    return [line.rstrip("\r\n") for line in lines[chosen.start : chosen.stop]]


def words(text: str) -> frozenset[str]:
    """The identifiers of a text."""
    return frozenset(_NAME.findall(text))


def relevance(one: frozenset[str], other: frozenset[str]) -> float:
    """How much two sets of identifiers have in common, 0 to 1 (Jaccard)."""
    return len(one & other) / (len(one | other) or 1)


def similarity(one: Sequence[str], other: Sequence[str]) -> float:
    """Which part of two chunks' lines they have in common, 0 to 1."""
    first, second = Counter(_told(one)), Counter(_told(other))
    return 2 * (first & second).total() / ((first + second).total() or 1)


def _repeated(lines: Sequence[str], around: set[str]) -> float:
    told = _told(lines)
    return sum(line in around for line in told) / (len(told) or 1)


def _told(lines: Iterable[str]) -> list[str]:
    """The lines that count for a comparison."""
    return [line for each in lines if len(line := each.strip()) > 1]


def _trimmed(lines: Sequence[str]) -> tuple[str, ...]:
    kept = [line.rstrip() for line in lines]
    told = [index for index, line in enumerate(kept) if line]
    return tuple(kept[told[0] : told[-1] + 1]) if told else ()
