"""What llama.vim keeps: answers, and a ring of chunks of files for the context. See ``infill``."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

# s:default_config
MAX_CACHE_KEYS = 250
RING_N_CHUNKS, RING_CHUNK_SIZE = 16, 64
RING_QUEUED = 16


@dataclass(frozen=True)
class Chunk:
    """A piece of a file, for the context."""

    lines: tuple[str, ...]
    filename: str


class Ring:
    """Chunks that wait (``s:ring_queued``) and chunks that are sent with every request (``s:ring_chunks``)."""

    def __init__(self, chooser: Random) -> None:
        self._random = chooser
        self._chunks: list[Chunk] = []
        self._queued: list[Chunk] = []

    def pick(self, text: list[str], filename: str, evict: bool) -> None:
        """``s:pick_chunk``: queue a piece of ``text``.

        Args:
            evict: in the place of those that are much like it; else it is passed over where there are any.
        """
        if len(text) < 3:
            return
        chunk = Chunk(tuple(text if len(text) + 1 < RING_CHUNK_SIZE else self._part(text)), filename)
        if any(each.lines == chunk.lines for each in self._chunks + self._queued):
            return
        for kept in (self._queued, self._chunks):
            if not evict and any(similarity(each.lines, chunk.lines) > 0.9 for each in kept):
                return
            _evict(chunk.lines, kept, 0.9)
        if len(self._queued) == RING_QUEUED:
            self._queued.pop(0)
        self._queued.append(chunk)

    def evict_similar(self, text: list[str]) -> None:
        """Drop chunks that are like a part of ``text``, which they would have the model repeat."""
        _evict(self._part(text), self._chunks, 0.5)

    def advance(self) -> bool:
        """Whether a chunk has come from the queue into the ring."""
        if not self._queued:
            return False
        if len(self._chunks) == RING_N_CHUNKS:
            self._chunks.pop(0)
        self._chunks.append(self._queued.pop(0))
        return True

    def extra(self) -> list[dict[str, str]]:
        """``input_extra`` of a request."""
        return [{"text": "\n".join(each.lines) + "\n", "filename": each.filename} for each in self._chunks]

    def _part(self, text: list[str]) -> list[str]:
        half = RING_CHUNK_SIZE // 2
        first = self._random.randint(0, max(0, len(text) - half))
        return text[first : first + half + 1]


def _evict(lines: Sequence[str], kept: list[Chunk], limit: float) -> None:
    kept[:] = [each for each in kept if similarity(each.lines, lines) <= limit]


class Cache:
    """Answers by the text around them; of too many, the one that was least lately used goes (``s:cache_insert``)."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, str] = OrderedDict()

    def insert(self, key: str, content: str) -> None:
        """Keep an answer."""
        if len(self._kept) > MAX_CACHE_KEYS - 1:
            self._kept.popitem(last=False)
        self._kept[key] = content
        self._kept.move_to_end(key)

    def get(self, key: str) -> str | None:
        """The answer, or None."""
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)


def similarity(one: Sequence[str], other: Sequence[str]) -> float:
    """``s:chunk_sim``: 0 to 1."""
    words, others = (re.split(r"\W+", "\n".join(lines)) for lines in (one, other))
    known = set(words)
    total = len(words) + len(others)
    return 2.0 * sum(word in known for word in others) / total if total else 1.0
