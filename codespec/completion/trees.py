"""The tree of the document that a completion is wanted in, with what its parser cannot read blanked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import NamedTuple

from codespec.completion.ending.lexical import State, read
from codespec.languages import Language
from codespec.recent import Recent
from codespec.syntax.macros import Blanking, Error, default, search
from codespec.syntax.parsing import TooMuchToParse
from codespec.syntax.tree import SyntaxTree, syntax_tree

MOST_DOCUMENTS = 64
"""Whose blankings are remembered."""
LARGEST = 200_000
"""Characters of a document that is searched."""
CHANGED_LINES = 50
"""By which a document must have become longer or shorter before another search."""


REST = 20.0
"""A document that took its parser too long is left alone for so many times that time: it may be typed in."""


class _Found(NamedTuple):
    """What a search found, and in how many lines."""

    blanking: Blanking
    lines: int


class Trees:
    """Parses documents, and remembers what has to be blanked in each."""

    def __init__(self) -> None:
        self._last: tuple[tuple[str, str, str, int], SyntaxTree | None] | None = None
        self._found: Recent[tuple[str, str], _Found] = Recent(MOST_DOCUMENTS)
        self._resting: Recent[str, float] = Recent(MOST_DOCUMENTS)  # until when no parse is tried

    def at(self, path: str, language: Language, text: str, offset: int) -> SyntaxTree | None:
        """The tree of a version of a document in which the cursor is at ``offset``; None without a parser, or where
        the document takes it too long, for a while."""
        key = (path, language.id, text, offset if language.preprocessed else 0)
        if self._last is None or self._last[0] != key:
            self._last = key, None
            if monotonic() > self._resting.get(path, 0.0):
                began = monotonic()
                self._last = key, self._parse(path, language, text, offset)
                if self._last[1] is None and language.parser:
                    self._resting[path] = monotonic() + REST * (monotonic() - began)
        return self._last[1]

    def _parse(self, path: str, language: Language, text: str, offset: int) -> SyntaxTree | None:
        if not language.preprocessed:
            return syntax_tree(language, text)
        found = self._found.get((path, language.id))
        cursor = len(text[:offset].encode("utf-8", "replace"))
        blanking = found.blanking if found is not None else default(text.encode("utf-8", "replace"))
        tree = syntax_tree(language, text, _blank(blanking, cursor))
        lines = text.count("\n")
        if tree is None or not tree.problems.count or (found is not None and abs(lines - found.lines) < CHANGED_LINES):
            return tree
        # Where a bracket is missing, that is what makes the errors.
        if len(text) > LARGEST or read(text, language, State(), len(text)).unfinished:
            return tree
        blanking = find_blanking(language, text, cursor)
        self._found[path, language.id] = _Found(blanking, lines)
        return syntax_tree(language, text, _blank(blanking, cursor))


def find_blanking(language: Language, text: str, cursor: int = -1) -> Blanking:
    """What has to be blanked for errors elsewhere than on the cursor's line, which may be unfinished.

    Args:
        cursor: in bytes.
    """
    tree = syntax_tree(language, text)
    if tree is None or not language.preprocessed:
        return Blanking()
    data = text.encode("utf-8", "replace")
    # The line break behind a last line that has none.
    start, end = (data.rfind(b"\n", 0, cursor) + 1, (data + b"\n").find(b"\n", cursor)) if cursor >= 0 else (0, -1)

    def errors(of: bytes) -> list[Error]:
        return [error for error in map(Error._make, tree.errors_in(of)) if not start <= error.start <= end]

    try:
        found = errors(default(data)(data, cursor))
        return search(data, errors, found, language.defined) if found else default(data)
    except TooMuchToParse:
        return default(data)


def _blank(blanking: Blanking, cursor: int) -> Callable[[bytes], bytes] | None:
    return partial(blanking, cursor=cursor) if blanking else None
