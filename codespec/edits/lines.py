"""Texts in lines, which end with a line feed alone: a form feed or U+2028 ends none, in editors either."""

from __future__ import annotations


def lines_of(text: str) -> list[str]:
    """The lines with their ends; the last may have none."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]
