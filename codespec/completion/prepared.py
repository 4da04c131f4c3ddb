"""A request on its way to its texts."""

from __future__ import annotations

from dataclasses import dataclass

from codespec.completion.ending.ending import Ending, GateOutcome
from codespec.completion.open_documents import CursorContext
from codespec.protocols import Limits


@dataclass(frozen=True)
class PreparedRequest:
    """A request with its prompt and its cursor context: all that the texts sampled for it share."""

    prompt: list[int]
    cursor: CursorContext
    language: str
    limits: Limits
    before_ms: float  # preparation; compiling a language's first grammar takes seconds, which the time budget excludes
    suffix: str = ""  # all the text after the cursor

    def ending(self) -> Ending:
        """A fresh end detector for one text."""
        cursor = self.cursor
        without: GateOutcome = "unavailable" if cursor.unavailable else "off"
        return Ending(cursor.rule, cursor.gate, cursor.tidy, without, cursor.names)
