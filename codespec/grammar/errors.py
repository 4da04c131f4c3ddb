"""The error that every grammar front end raises, and diagnostics for authors of grammars."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from codespec.protocols import CodespecError

OR_IGNORE = ", or ignore it with --lenient"
"""How the remedy ends where a JSON Schema asks for what cannot be enforced."""


class GrammarGaveUp(CodespecError):
    """The engine meets a limit in the middle of a text, of which the grammar allows too many readings."""


class GrammarError(CodespecError):
    """A grammar cannot be used: one line of the form ``NAME:LINE:COLUMN: cause; remedy``.

    Attributes:
        name: file or name of the grammar.
        line, column: from 1, the column in characters; 0 where the error has no position.
        cause: what is wrong.
        remedy: what to do about it; may be empty.
    """

    def __init__(self, name: str, cause: str, remedy: str = "", line: int = 0, column: int = 0) -> None:
        self.name, self.cause, self.remedy = name, one_line(cause), one_line(remedy)
        self.line, self.column = line, column
        where = f"{name}:{line}:{column}" if line else name
        super().__init__(f"{where}: {self.cause}" + (f"; {self.remedy}" if remedy else ""))


@dataclass(frozen=True)
class Diagnostic:
    """An error or warning for the author of a grammar. Line and column from 1; 0 without a position."""

    file: str
    line: int
    column: int
    severity: Literal["error", "warning"]
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{where}: {self.severity}: {self.message}"


def one_line(text: str, limit: int = 300) -> str:
    """``text`` without line breaks, cut to ``limit`` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``did you mean X?`` for the nearest of ``known``, or an empty string."""
    near = difflib.get_close_matches(word, list(known)[:5000], n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else ""
