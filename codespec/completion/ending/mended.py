"""The text after the cursor as it may become: with its brackets in pairs, where those of other lines are not yet.

Who writes a file from its beginning to its end leaves blocks open above the cursor, and who changes one has signs after
it whose beginning is gone. No text at the cursor should be made to mend that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from codespec.completion.ending.stop_rule import indentation
from codespec.completion.ending.tidy import BALANCED, DATA
from codespec.languages import Language
from codespec.syntax.brackets import OPENERS


class _Opened(NamedTuple):
    """A bracket that is open; ``indent`` is that of its line."""

    at: int
    closer: str
    indent: int


def mended(text: str, offset: int, brackets: Sequence[tuple[int, str]], language: Language) -> str | None:
    """What follows ``offset`` with the closing brackets that other lines than the cursor's want, and up to the line of
    one that closes nothing.

    Args:
        brackets: those in the code of ``text``.

    Returns:
        None where brackets are in pairs, but for those that the cursor's line opens; where one that closes nothing
        stands before the cursor, or so near behind it that the text may be what it belongs to; and for data, which
        always has to be whole.
    """
    if language.id not in BALANCED - DATA:
        return None
    # Brackets with code behind them on the cursor's line may be closed by later lines, or are the text's to close.
    for alone in (False, True):
        found = _Mending(text, offset, alone)
        stray = found.read(brackets)
        if stray is not None:
            end = text.rfind("\n", offset, stray) + 1
            if not text[offset:end].partition("\n")[2].strip():
                return None
            found = _Mending(text[:end], offset, alone)
            found.read([each for each in brackets if each[0] < end])
        suffix = found.suffix
        if suffix != text[offset:]:
            return suffix
    return None


class _Mending:
    """Pairs the brackets of a document from its beginning to its end.

    Where code is indented, a line after the cursor that stands no deeper than the one with an open bracket is outside
    of it, and a line that begins with a closing bracket stands as deep as that of its opening one.
    """

    def __init__(self, text: str, offset: int, alone: bool) -> None:
        """
        Args:
            alone: whether no later line closes what the cursor's line opens and says more behind.
        """
        self._text, self._offset, self._alone = text, offset, alone
        self._line = text.rfind("\n", 0, offset) + 1
        self._waiting: list[_Opened] = []
        self._parts: list[str] = []
        self._done = offset  # up to where the suffix is among the parts

    def read(self, brackets: Sequence[tuple[int, str]]) -> int | None:
        """Where a bracket stands that closes nothing, the first; None without."""
        text, newline = self._text, self._text.find("\n", self._offset)
        for at, sign in brackets:
            if at >= self._offset:
                self._end_cursor_line(at)
            while 0 <= newline < at:
                newline = self._end_lines(newline + 1)
            begin = text.rfind("\n", 0, at) + 1
            indent = indentation(text[begin : at + 1])
            if sign in OPENERS:
                self._waiting.append(_Opened(at, OPENERS[sign], indent))
            elif not self._close(at, sign, indent if not text[begin:at].strip() else -1):
                return at
        while newline >= 0:
            newline = self._end_lines(newline + 1)
        return None

    def _end_cursor_line(self, at: int) -> None:
        """Drop what the cursor's line opens, once a bracket stands behind it."""
        if self._alone and self._text.find("\n", self._offset, at) >= 0:
            self._alone = False
            while self._waiting and self._waiting[-1].at >= self._line:
                if not self._text[self._waiting[-1].at + 1 : self._offset].strip():
                    break
                self._waiting.pop()

    def _end_lines(self, begin: int) -> int:
        """End what the line that begins there is no longer in; where it ends, -1 for the last."""
        end = self._text.find("\n", begin)
        line = self._text[begin : end if end >= 0 else None]
        if line.strip():
            closes = line.strip()[0] in OPENERS.values()
            indent = indentation(line)
            while self._waiting and self._waiting[-1].at < self._offset:
                if self._waiting[-1].indent < indent + closes:
                    break
                self._insert(begin, [self._waiting.pop()], "\n")
        return end

    def _close(self, at: int, sign: str, indent: int) -> bool:
        """Pair a closing bracket; ``indent`` is that of its line if that begins with it, else -1."""
        waiting = self._waiting
        fits = [each.closer == sign for each in waiting[-1:]] == [True]
        if at < self._offset:
            return fits and bool(waiting.pop())
        if waiting and waiting[-1].at < self._offset and waiting[-1].indent < indent:
            return False
        if not any(each.closer == sign for each in reversed(waiting)):
            return False
        missing = []
        while waiting[-1].closer != sign:
            missing.append(waiting.pop())
        waiting.pop()
        self._insert(at, missing)
        return True

    def _insert(self, at: int, missing: Sequence[_Opened], behind: str = "") -> None:
        """Close brackets at a place, but for those that the cursor's line opens: the text has to."""
        closers = "".join(each.closer for each in missing if not self._line <= each.at < self._offset)
        if closers:
            self._parts += [self._text[self._done : at], closers, behind]
            self._done = at

    @property
    def suffix(self) -> str:
        """What follows the cursor, mended."""
        closers = "".join(each.closer for each in reversed(self._waiting) if not self._line <= each.at < self._offset)
        return "".join((*self._parts, self._text[self._done :], f"\n{closers}" if closers else ""))
