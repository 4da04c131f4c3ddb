"""Why nothing is shown: a few words and a sentence, for clients that tell the user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codespec.completion.request import Completion


@dataclass(frozen=True)
class Nothing:
    """A reason.

    Attributes:
        short: a few words, for a status bar.
        why: a sentence without its full stop.
    """

    short: str
    why: str

    def as_json(self) -> dict[str, str]:
        """``short`` and ``why`` as a dict, for JSON."""
        return asdict(self)


PRIVATE = Nothing("private file", "This file is private or seems to hold a secret: it is neither read nor completed")
NOT_FITTING = Nothing("did not fit", "What the model wrote does not fit what follows the cursor")
TIME = Nothing("time was up", "The time for an answer was up before a line was whole (`time_budget_ms`)")
NO_MORE = Nothing("nothing to add", "The model would end the text here")
FOREIGN = Nothing("other language", "This cell, or its line, is in another language than the notebook")
SWITCHED_OFF = Nothing("off here", "Completions are switched off for this language")
BY_KEY = Nothing("by key", "Ghost text comes by its key only (`automatic = false`)")
FAILED = Nothing("failed", "The completion failed; the log says why")


def why_nothing(completions: Sequence[Completion], row: int) -> Nothing:
    """The reason why none of the models' answers has a text, with the cursor in line ``row``, from 0."""
    first = next(iter(completions), None)
    if first is not None and first.finish_reason == "time":
        return TIME
    if first is None or first.report.get("gate") != "dropped":
        return NO_MORE
    if first.invented:
        return Nothing("unknown name", f"The model used `{first.invented}`, which nothing in this file defines")
    if first.broken_line is None:
        return NOT_FITTING
    line = row + first.broken_line + 1
    return Nothing(NOT_FITTING.short, f"What the model wrote would leave line {line} broken")
