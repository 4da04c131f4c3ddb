"""Follows generated texts, one or several side by side, to their ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from time import perf_counter

from codespec.completion.ending.ending import Ended, Ending
from codespec.protocols import Chunk, FinishReason, Round


class TextStream:
    """One text, as its pieces come.

    Args:
        wanted: grows by the ends that are refused, see ``Ending.finish``.

    Attributes:
        rounds: the passes so far.
        times_ms: of each, since the one before.
        gate_ms: what was spent on looking for the end.
    """

    def __init__(self, ending: Ending, wanted: Sequence[str] = ()) -> None:
        self._ending, self._wanted = ending, wanted
        self._text = ""
        self._reason: FinishReason = "length"
        self._ended: Ended | None = None
        self.rounds: list[Round] = []
        self.times_ms: list[float] = []
        self._latest = perf_counter()
        self.gate_ms = 0.0

    @property
    def tokens(self) -> list[int]:
        """Those that were generated."""
        return [token for each in self.rounds for token in each.tokens]

    def add(self, chunk: Chunk) -> bool:
        """Take the next piece; whether the text has ended with it."""
        self._text += chunk.text
        if chunk.round is not None:
            self.rounds.append(chunk.round)
            now = perf_counter()
            self.times_ms.append((now - self._latest) * 1e3)
            self._latest = now
        began = perf_counter()
        self._ended = self._ending.stop(self._text)
        self.gate_ms += (perf_counter() - began) * 1e3
        self._reason = chunk.finish_reason or self._reason
        return self._ended is not None

    def end(self) -> Ended:
        """The end, after the last piece."""
        began = perf_counter()
        ended = self._ended or self._ending.finish(self._text, self._reason, self._wanted)
        self.gate_ms += (perf_counter() - began) * 1e3
        return ended


def follow(chunks: Iterable[Chunk], stream: TextStream) -> Ended:
    """Take pieces until the text ends, then no more of them."""
    with closing(chunks):  # type: ignore[type-var]  # the engine's are generators
        for chunk in chunks:
            if stream.add(chunk):
                break
    return stream.end()


def follow_all(chunks: Iterator[tuple[int, Chunk]], streams: Sequence[TextStream], stopped: set[int]) -> list[Ended]:
    """Take pieces of several texts until all have ended. ``stopped`` grows by those that need no more."""
    with closing(chunks):  # type: ignore[type-var]
        for index, chunk in chunks:
            if index not in stopped and streams[index].add(chunk):
                stopped.add(index)
    return [stream.end() for stream in streams]
