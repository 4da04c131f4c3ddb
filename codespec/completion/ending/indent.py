"""The indentation of a generated text: the document's tabs or spaces, their width, and the level at the cursor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from codespec.completion.ending.brackets import scan
from codespec.completion.ending.stop_rule import (
    READ,
    first_line_of_block,
    indentation,
    may_be_indented,
    opens_block,
    previous_line,
)
from codespec.languages import Language

STYLE_LINES = 200
"""Lines on either side of the cursor that tell how a document is indented."""
TAB = 4
"""Columns that a tab counts for."""


@dataclass(frozen=True)
class Style:
    """How a document is indented: with tabs, or with so many spaces for each level."""

    tabs: bool
    width: int

    def blanks(self, columns: int) -> str:
        """White space of so many columns."""
        return "\t" * (columns // TAB) + " " * (columns % TAB) if self.tabs else " " * columns

    def has(self, line: str) -> bool:
        """Whether the white space that ``line`` begins with may stand in the document."""
        blanks = line[: len(line) - len(line.lstrip(" \t"))]
        return not blanks.startswith("  ") if self.tabs else "\t" not in blanks


def style_of(prefix: str, suffix: str) -> Style | None:
    """The style of the lines around the cursor; None where none of them is indented."""
    lines = prefix[-READ:].split("\n")[-STYLE_LINES - 1 : -1] + suffix[:READ].split("\n")[1:STYLE_LINES]
    tabs = sum(line.startswith("\t") for line in lines)
    spaces = sum(line.startswith("  ") for line in lines)
    if not tabs and not spaces:
        return None
    depths = [indentation(line) for line in lines if line.strip()]
    steps = Counter(b - a for a, b in pairwise(depths) if 1 < b - a <= 8)
    return Style(tabs > spaces, TAB if tabs > spaces else max(steps, key=lambda s: (steps[s], -s), default=TAB))


def indented(body: str, prefix: str, style: Style | None, language: Language) -> str:
    """``body``, which comes after ``prefix``, with its lines indented as the document is.

    Lines that begin within a comment or string are left alone, and so is the text before the cursor.
    """
    line = prefix.rsplit("\n", 1)[-1]
    if not body.strip() or ("\n" not in body and line.strip()):
        return body
    lines = (line + body).split("\n")
    read = scan(body, language)
    begins = [0, *(body.count("\n", 0, at) + 1 for at in sorted([*read.newlines, *read.between]))]
    own = [index for index in begins if lines[index].strip() and (index > 0 or not line.strip())]
    if not own:
        return body
    widths = {index: indentation(lines[index]) for index in own}
    moved = _moved(body, prefix, line, widths, style or Style(False, TAB), language)
    wanted = {index: width + moved for index, width in _scaled(lines, widths, style, language).items()}
    if moved < 0 and min(wanted.values()) < wanted[own[0]]:
        wanted = {**widths, own[0]: wanted[own[0]]}  # the others are right as they are
    for index in own:
        if wanted[index] == widths[index] and (style is None or style.has(lines[index])):
            continue
        text, columns = lines[index].lstrip(" \t"), max(0, wanted[index])
        blanks = (style or Style(False, TAB)).blanks(columns)
        if index == 0:
            blanks = line + (style or Style(False, TAB)).blanks(max(0, columns - indentation(line)))
        lines[index] = blanks + text
    return "\n".join(lines)[len(line) :]


def _scaled(lines: Sequence[str], widths: dict[int, int], style: Style | None, language: Language) -> dict[int, int]:
    """The columns of lines with steps of the document's width where blocks have steps of twice that."""
    if style is None or style.tabs or style.width != 2:
        return widths
    steps = {widths[b] - widths[a] for a, b in pairwise(widths) if opens_block(lines[a], language)}
    least = min(widths.values())
    if 4 not in steps or any((width - least) % 4 for width in widths.values()):
        return widths
    return {index: least + (width - least) // 2 for index, width in widths.items()}


def _moved(body: str, prefix: str, line: str, widths: dict[int, int], style: Style, language: Language) -> int:
    """How many columns the lines are to be moved to the right."""
    before = line + body.split("\n", 1)[0] if line.strip() else previous_line(prefix)
    first = first_line_of_block(line, body)
    if first is None:
        return 0
    columns, outer = indentation(first), indentation(before)
    if opens_block(before, language):
        if before.rstrip().endswith(":") and columns <= outer and may_be_indented(body, first):
            return outer + style.width - columns
        too_deep = 0 < indentation(line) < columns and indentation(line) > outer
    else:
        ended = language.indented or before.rstrip().endswith((";", "}"))
        too_deep = 0 < indentation(line) < columns and indentation(line) <= outer and ended
    if line.strip() or not too_deep or 0 not in widths:
        return 0
    between = language.indented and scan(prefix[-READ:], language).open
    return 0 if between else indentation(line) - columns
