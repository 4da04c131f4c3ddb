"""The times of the latest answers in the server, and the prefill's part of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from codespec.worker.times import KEPT, Times

if TYPE_CHECKING:
    from codespec.completion.request import Completion


@dataclass(frozen=True)
class AnswerTime:
    """One answer; times in milliseconds.

    Attributes:
        line, character: of the cursor, as the client sent it.
        ms: from the start of the request's handler to its result.
        memory: whether the completion cache answered, without a model.
        prefill_tokens: tokens of the prompt that were decoded for it.
        prefill_ms, total_ms: times of the prefill and of the completion.
    """

    line: int
    character: int
    ms: float
    memory: bool
    prefill_tokens: int = 0
    prefill_ms: float = 0.0
    total_ms: float = 0.0


class AnswerTimes:
    """The latest answers of a server."""

    def __init__(self) -> None:
        self._kept: deque[AnswerTime] = deque(maxlen=KEPT)
        self._memory = Times()

    def add(self, line: int, character: int, ms: float, memory: bool, completions: Sequence[Completion]) -> None:
        """Note what an answer at a position took, in milliseconds, and whether it came from memory."""
        if memory:
            self._memory.add(ms)
        report = completions[0].report if completions and not memory else {}
        times = report.get("timings_ms", {})
        tokens, prefill_ms, total_ms = report.get("prefill_tokens", 0), times.get("prefill", 0), times.get("total", 0)
        self._kept.append(AnswerTime(line, character, round(ms, 3), memory, tokens, prefill_ms, total_ms))

    def from_memory(self) -> dict[str, float]:
        """Times of the answers from the completion cache, see ``Times.figures``."""
        return self._memory.figures()

    def latest(self) -> list[dict[str, Any]]:
        """The answers, the oldest first, as plain data."""
        return [asdict(each) for each in self._kept]
