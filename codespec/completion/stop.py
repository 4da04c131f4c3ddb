"""Where a completion ends: at the end of its line, or of its block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from codespec.languages import Language

Extent = Literal["line", "block"]

BLOCK_OPENERS = ("{", "[", "(")
BLANK_LINES_END_BLOCK = 2


def indentation(line: str) -> int:
    """Columns of white space at the start of a line, a tab up to the next multiple of 4."""
    stripped = line.lstrip(" \t")
    return len(line[: len(line) - len(stripped)].expandtabs(4))


def extent(prefix: str, suffix: str, language: Language) -> Extent:
    """Whether to complete the line or the block: a block where one begins or where the line is still empty."""
    rest = suffix.split("\n", 1)[0]
    if rest.strip():
        return "line"
    before = prefix.rsplit("\n", 1)[-1]
    opener = (*BLOCK_OPENERS, ":") if language.indented else BLOCK_OPENERS
    return "block" if not before.strip() or before.rstrip().endswith(opener) else "line"


@dataclass(frozen=True)
class StopRule:
    """Decides, from the generated text alone, where to cut it.

    The answer for a text never changes when more is appended, so it does not depend on how many tokens
    a round of generation brings.
    """

    extent: Extent
    base_indentation: int = 0
    next_line: str = ""

    @classmethod
    def at(cls, prefix: str, suffix: str, language: Language) -> StopRule:
        """The rule for a cursor between ``prefix`` and ``suffix``."""
        kind = extent(prefix, suffix, language)
        line = prefix.rsplit("\n", 1)[-1]
        following = next((text for text in suffix.split("\n")[1:] if text.strip()), "")
        base = indentation(line)
        if line.strip() and kind == "block":
            base += 1  # what is in the block is deeper than the line that opens it
        return cls(kind, base, following.rstrip())

    def cut(self, text: str) -> int | None:
        """Length to cut ``text`` to, None where it is to go on."""
        return self._end_of_line(text) if self.extent == "line" else self._end_of_block(text)

    def cuts(self, text: str, after: int = -1) -> Iterator[int]:
        """Every length beyond ``after`` that ``text`` may be cut to: the one of ``cut``, then the end of each line.

        The later ones are for when what follows the cursor does not fit behind the first.
        """
        first = self.cut(text)
        if first is None:
            return
        if first > after:
            yield first
        last = max(first, after)
        newline = text.find("\n", first)
        while newline >= 0:
            length = len(text[:newline].rstrip())
            if length > last:
                last = length
                yield length
            newline = text.find("\n", newline + 1)

    def _end_of_line(self, text: str) -> int | None:
        start = len(text) - len(text.lstrip())
        newline = text.find("\n", start)
        return newline if newline >= 0 else None

    def _end_of_block(self, text: str) -> int | None:
        position = text.find("\n")
        blank = 0
        while position >= 0:
            end = text.find("\n", position + 1)
            line = text[position + 1 : end if end >= 0 else len(text)]
            if not line.strip():
                blank += 1
                if end >= 0 and blank >= BLANK_LINES_END_BLOCK:
                    return len(text[:position].rstrip())
            else:
                blank = 0
                left = indentation(line) < self.base_indentation
                repeats = end >= 0 and len(self.next_line.strip()) > 2 and line.rstrip() == self.next_line
                if left or repeats:
                    return len(text[:position].rstrip())
            position = end
        return None
