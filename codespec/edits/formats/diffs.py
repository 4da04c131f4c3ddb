"""Recent edits as unified diffs, and the part of a document that a prompt shows around a window."""

from __future__ import annotations

from codespec.edits.formats import Change
from codespec.edits.lines import lines_of


def unified(change: Change) -> str:
    """The hunk of a change, with its header and context; every line ends."""
    above, below = lines_of(change.context_before), lines_of(change.context_after)
    before, after = lines_of(change.before), lines_of(change.after)
    first = change.line - len(above)
    header = f"@@ {_range('-', first, above, before, below)} {_range('+', first, above, after, below)} @@\n"
    parts = ((" ", above), ("-", before), ("+", after), (" ", below))
    return header + "".join(f"{sign}{_ended(line)}" for sign, lines in parts for line in lines)


def _range(sign: str, first: int, *parts: list[str]) -> str:
    count = sum(map(len, parts))
    return f"{sign}{first + (1 if count else 0)},{count}"


def _ended(line: str) -> str:
    return line if line.endswith("\n") else line + "\n"


def end_of(text: str, characters: int) -> str:
    """The last whole lines of a text that are at most so long."""
    if len(text) <= characters:
        return text
    at = text.find("\n", len(text) - characters - 1)
    return text[at + 1 :] if at >= 0 else ""


def beginning_of(text: str, characters: int) -> str:
    """The first whole lines of a text that are at most so long."""
    return text if len(text) <= characters else text[: text.rfind("\n", 0, characters) + 1]
