"""The text after the cursor as it may become: with its brackets in pairs, where those of other lines are not yet.

Who writes a file from its beginning to its end leaves blocks open above the cursor, and who changes one has signs after
it whose beginning is gone. No text at the cursor should be made to mend that.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from typing import NamedTuple

from codespec.completion.ending.brackets import CLOSERS, OPENERS
from codespec.completion.ending.stop_rule import indentation
from codespec.languages import Language

_BLANKS = re.compile(r"[ \t]*")


class _Opened(NamedTuple):
    """A bracket that is open.

    Attributes:
        indent: of its line, in columns.
        owed: whether the text at the cursor has to close it: the cursor's line opens it, or the text does close it.
    """

    at: int
    closer: str
    indent: int
    owed: bool


def mended(
    text: str, offset: int, brackets: Sequence[tuple[int, str]], language: Language, closes: int = 0
) -> str | None:
    """What follows ``offset`` with the closing brackets that other lines than the cursor's want, and up to the line of
    one that closes nothing.

    Args:
        brackets: those in the code of ``text``.
        closes: how many of the brackets before the cursor a text at the cursor closes.

    Returns:
        None where brackets are in pairs, but for those that the cursor's line opens; where one that closes nothing
        stands before the cursor, or so near behind it that the text may be what it belongs to; and for data, which
        always has to be whole.
    """
    if language.brackets != "always" or language.data:
        return None
    owed = _innermost(brackets, offset, closes)
    # Brackets with code behind them on the cursor's line may be closed by later lines, or are the text's to close.
    for alone in (False, True):
        found = _Mending(text, offset, alone, owed)
        stray = found.read(brackets)
        if stray is not None:
            end = text.rfind("\n", offset, stray) + 1
            if not text[offset:end].partition("\n")[2].strip():
                return None
            found = _Mending(text[:end], offset, alone, owed)
            found.read([each for each in brackets if each[0] < end])
        suffix = found.suffix
        if suffix != text[offset:]:
            return suffix
    return None


def _innermost(brackets: Sequence[tuple[int, str]], offset: int, count: int) -> Container[int]:
    """Where the last ``count`` brackets stand that are open at ``offset``."""
    waiting: list[int] = []
    for at, sign in brackets if count else ():
        if at >= offset:
            break
        if sign in OPENERS:
            waiting.append(at)
        elif waiting:
            waiting.pop()
    return frozenset(waiting[-count:] if count else ())


class _Mending:
    """Pairs the brackets of a document from its beginning to its end.

    Indentation tells which bracket was left open. A line after the cursor is outside of a bracket if it stands no
    deeper than the bracket's line. A closing bracket that begins a line stands as deep as the line of its opening one.
    """

    def __init__(self, text: str, offset: int, alone: bool, owed: Container[int] = ()) -> None:
        """
        Args:
            alone: whether no later line closes what the cursor's line opens and says more behind.
            owed: where brackets stand that the text closes, on whatever line.
        """
        self._text, self._offset, self._alone, self._owed = text, offset, alone, owed
        self._line = text.rfind("\n", 0, offset) + 1
        self._waiting: list[_Opened] = []
        self._parts: list[str] = []
        self._done = offset  # up to where the suffix is among the parts

    def read(self, brackets: Sequence[tuple[int, str]]) -> int | None:
        """Where a bracket stands that closes nothing, the first; None without."""
        waiting = iter([*brackets, (len(self._text), "")])
        at, sign = next(waiting)
        begin = 0
        while begin <= len(self._text):
            newline = self._text.find("\n", begin)
            end = newline if newline >= 0 else len(self._text)
            blanks = _BLANKS.match(self._text, begin, end)
            assert blanks is not None
            indent, first = indentation(blanks.group()), blanks.end()
            if begin > self._offset and first < end:
                self._leave(begin, indent + (self._text[first] in CLOSERS))
            while at < end:
                if sign in OPENERS:
                    owed = self._line <= at < self._offset or at in self._owed
                    self._waiting.append(_Opened(at, OPENERS[sign], indent, owed))
                elif not self._close(at, sign, indent if at == first else -1):
                    return at
                at, sign = next(waiting)
            if self._alone and begin <= self._offset <= end:
                self._drop()
            begin = end + 1
        return None

    def _drop(self) -> None:
        """Forget what the cursor's line opens and says more behind."""
        last = len(self._text[self._line : self._offset].rstrip()) + self._line - 1
        while self._waiting and self._line <= self._waiting[-1].at < last:
            self._waiting.pop()

    def _leave(self, begin: int, indent: int) -> None:
        """Close before a line what opened no less deep than ``indent``."""
        while self._waiting and self._waiting[-1].at < self._offset and self._waiting[-1].indent >= indent:
            self._insert(begin, [self._waiting.pop()], "\n")

    def _close(self, at: int, sign: str, indent: int) -> bool:
        """Pair a closing bracket; ``indent`` is that of its line if that begins with it, else -1."""
        waiting = self._waiting
        if waiting and waiting[-1].at < self._offset <= at and waiting[-1].indent < indent:
            return False
        if not any(each.closer == sign for each in (waiting[-1:] if at < self._offset else reversed(waiting))):
            return False
        missing = []
        while waiting[-1].closer != sign:
            missing.append(waiting.pop())
        waiting.pop()
        self._insert(at, missing)
        return True

    def _insert(self, at: int, missing: Sequence[_Opened], behind: str = "") -> None:
        """Close brackets at a place, but for those that the text has to."""
        closers = _closers(missing)
        if closers:
            self._parts += [self._text[self._done : at], closers, behind]
            self._done = at

    @property
    def suffix(self) -> str:
        """What follows the cursor, mended."""
        closers = _closers(self._waiting[::-1])
        return "".join((*self._parts, self._text[self._done :], f"\n{closers}" if closers else ""))


def _closers(missing: Sequence[_Opened]) -> str:
    return "".join(each.closer for each in missing if not each.owed)
