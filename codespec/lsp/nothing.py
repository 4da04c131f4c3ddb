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
        """Plain data."""
        return asdict(self)


PRIVATE = Nothing("private file", "This file is private or seems to hold a secret: it is neither read nor completed")
NOT_FITTING = Nothing("did not fit", "What the model wrote does not fit what follows the cursor")
TIME = Nothing("time was up", "The time for an answer was up before a line was whole (`time_budget_ms`)")
NO_MORE = Nothing("nothing to add", "The model would end the text here")
FOREIGN = Nothing("other language", "This cell, or its line, is in another language than the notebook")
SWITCHED_OFF = Nothing("off here", "Completions are switched off for this language")
FAILED = Nothing("failed", "The completion failed; the log says why")


def why_nothing(completions: Sequence[Completion]) -> Nothing:
    """The reason why none of the models' answers has a text."""
    first = next(iter(completions), None)
    if first is not None and first.finish_reason == "time":
        return TIME
    return NOT_FITTING if first is not None and first.report.get("gate") == "dropped" else NO_MORE
