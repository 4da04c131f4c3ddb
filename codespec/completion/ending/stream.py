"""Follows generated texts, one or several side by side, to their ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from time import perf_counter

from codespec.completion.ending.ending import Ended, Ending
from codespec.protocols import Chunk, FinishReason, Round


class TextStream:
    """One text while its chunks arrive.

    Args:
        wanted: see ``Ending.finish``; the grammar state adds the ends that the gate refuses.

    Attributes:
        rounds: the rounds of generation so far.
        times_ms: of each round, since the previous one.
        gate_ms: time spent on finding the end.
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
        """Ids of all tokens that were generated, also of those behind the text's end."""
        return [token for each in self.rounds for token in each.tokens]

    def says_more_than(self, lead: str) -> bool:
        """Whether more than ``lead`` and blanks was generated before the text could end."""
        return bool(self._ending.until_stop(self._text).removeprefix(lead).strip())

    def add(self, chunk: Chunk) -> bool:
        """Take the next chunk; whether the text ends with it."""
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
        """The end, after the last chunk."""
        began = perf_counter()
        ended = self._ended or self._ending.finish(self._text, self._reason, self._wanted)
        self.gate_ms += (perf_counter() - began) * 1e3
        return ended


def follow(chunks: Iterable[Chunk], add: Callable[[Chunk], bool]) -> bool:
    """Take chunks until ``add`` says that the text ends with one, then close the generator; whether it said so."""
    with closing(chunks):  # type: ignore[type-var]  # the engine's are generators
        return any(map(add, chunks))


def follow_all(chunks: Iterator[tuple[int, Chunk]], streams: Sequence[TextStream], stopped: set[int]) -> list[Ended]:
    """Take chunks of several texts until all have ended; adds the index of each text that has ended to ``stopped``."""
    with closing(chunks):  # type: ignore[type-var]
        for index, chunk in chunks:
            if index not in stopped and streams[index].add(chunk):
                stopped.add(index)
    return [stream.end() for stream in streams]
