"""Python: what ``compile`` of the Python that runs codespec refuses.

A document is not compiled whole: it may be unfinished elsewhere, be of another version of Python, or be long. What is
compiled is an excerpt around the text that a completion brings (``python_excerpt``), and where that is refused for
something else than the text, the same without the text, and less of both.
"""

from __future__ import annotations
import __future__

import ast
import re
from time import thread_time
from typing import Any, NamedTuple

from codespec.early_errors.python_compiler import Refusal, shared
from codespec.early_errors.python_excerpt import Cut, Excerpt
from codespec.early_errors.walk import EarlyError, TooMuchToJudge

_ANNOTATIONS = b"from __future__ import annotations"
_LINE = re.compile(r" on line \d+")
SECONDS = 2.0
"""Of the processor, for all statements of a document; hundreds on one line take more."""
NO_ANSWER = "the compiler gave no answer"


class _Found(NamedTuple):
    """The first error of an excerpt.

    Attributes:
        statement: start and end, in bytes, of the innermost statement that the range touches.
    """

    error: EarlyError
    statement: tuple[int, int]


class PythonErrors:
    """The errors that texts bring into a document at one position.

    Args:
        root: of the tree of the document as it is.
        place: byte offset at which texts are inserted.
        path: of the file in small letters; in a notebook ``await`` may stand outside functions.
    """

    def __init__(self, root: Any, data: bytes, place: int, path: str) -> None:
        self._place, self._size, self._path = place, len(data), path
        self._cut = Cut(root, data, place, place)
        self._data = data
        self._before: dict[tuple[bool, bool], _Found | None] = {}
        self._silent = False

    def added(self, root: Any, data: bytes, strict: bool) -> list[EarlyError]:
        """The first error that comes with a text, if any.

        Args:
            root: of the tree of the document with the text.
            data: the document with the text, UTF-8.
            strict: whether errors that were there before count, too, if the text touches them.
        """
        size = len(data) - self._size
        cut = Cut(root, data, self._place, self._place + size)
        for narrow in (False, True):
            found = None if self._silent else self._judge(cut, data, narrow)
            if self._silent:  # it would not answer the next time, either
                return [EarlyError(NO_ANSWER, self._place, self._place + size)]
            if found is None:
                return []
            if self._is_of_text(found, size, narrow, strict):
                return [found.error]
        return []

    def _is_of_text(self, found: _Found, size: int, narrow: bool, strict: bool) -> bool:
        """Whether an error came with a text of ``size`` bytes."""
        error = found.error
        # The compiler reports some errors at all of a function: a text in there may have nothing to do with them.
        touches = error.start <= self._place + size and error.end >= self._place and error.start >= found.statement[0]
        touches = touches or self._is_missing(error, size)
        if strict and touches:
            return True
        before = self._as_it_is(narrow, False)
        if before is None:
            return True
        if self._same(error, before.error, size):
            return False
        if touches or found.statement[0] <= error.start <= found.statement[1]:
            return touches
        # An error at the cursor hides those elsewhere, unless it goes with its statement.
        without = self._as_it_is(narrow, True)
        return without is None or not self._same(error, without.error, size)

    def _is_missing(self, error: EarlyError, size: int) -> bool:
        """Whether a block is missing where the text is: the compiler says so of what follows."""
        behind = self._data[self._place : max(self._place, error.start - size)]
        return error.kind.startswith("expected an indented block") and error.start >= self._place and not behind.strip()

    def _same(self, after: EarlyError, before: EarlyError, size: int) -> bool:
        start = after.start - size if after.start >= self._place + size else after.start
        return (after.kind, start) == (before.kind, before.start)

    def _as_it_is(self, narrow: bool, hollow: bool) -> _Found | None:
        """The error of the document without a text; where it is ``hollow`` without the statement there, too."""
        key = narrow, hollow
        if key not in self._before:
            self._before[key] = self._judge(self._cut, self._data, *key)
        return self._before[key]

    def _judge(self, cut: Cut, data: bytes, narrow: bool, hollow: bool = False) -> _Found | None:
        found = _refused(cut, data, self._path, narrow, hollow)
        self._silent = self._silent or (found is not None and found.error.kind == NO_ANSWER)
        return found

    @staticmethod
    def of_all(root: Any, data: bytes, path: str) -> set[EarlyError]:
        """The errors of a whole document: the first one of each statement of the file, in which more may be hidden.

        Raises:
            TooMuchToJudge: it takes longer than ``SECONDS``.
        """
        whole = Cut(root, data, 0, len(data))
        first = _refused(whole, data, path)
        if first is None:
            return set()
        found = {first.error}
        end = thread_time() + SECONDS
        for statement in root.children:
            if thread_time() > end:
                raise TooMuchToJudge
            another = _refused(whole.at(statement.end_byte, statement.end_byte), data, path, narrow=True)
            if another is not None and statement.start_byte <= another.error.start <= statement.end_byte:
                found.add(another.error)
        return found


def _refused(cut: Cut, data: bytes, path: str, narrow: bool = False, hollow: bool = False) -> _Found | None:
    """The first error of an excerpt, without what only a newer Python knows where that may be the reason."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if ".ipynb" in path else 0
    if _ANNOTATIONS in data:
        flags |= __future__.annotations.compiler_flag
    excerpt = cut.excerpt(narrow, hollow)
    refusal = shared.refusal(excerpt.text.decode("utf-8", "replace"), flags)
    if refusal is not None and refusal.message and cut.has_newer_syntax(excerpt):
        excerpt = cut.excerpt(narrow, hollow, older=True)
        refusal = shared.refusal(excerpt.text.decode("utf-8", "replace"), flags)
    return None if refusal is None else _Found(_located(refusal, data, excerpt), excerpt.statement)


def _located(refusal: Refusal, data: bytes, excerpt: Excerpt) -> EarlyError:
    """A refusal in bytes of the document; all of the excerpt where it names no place."""
    start, end = excerpt.start, excerpt.start + len(excerpt.text)
    if refusal.start[0] > 0:
        lines = data[start:].splitlines(keepends=True)[: max(refusal.start[0], refusal.end[0])]
        start = excerpt.start + _offset(lines, refusal.start)
        end = excerpt.start + _offset(lines, refusal.end) if refusal.end >= refusal.start else start
    return EarlyError(_LINE.sub("", refusal.message) or NO_ANSWER, start, end)


def _offset(lines: list[bytes], place: tuple[int, int]) -> int:
    """A line and column as bytes."""
    line, column = place
    here = lines[line - 1] if line <= len(lines) else b""
    return sum(map(len, lines[: line - 1])) + len(here.decode("utf-8", "replace")[: max(0, column - 1)].encode())
