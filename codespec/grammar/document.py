"""A grammar in the middle of a file: its state at any position of a document that is being edited.

One matcher has accepted the text up to the last line that was asked for, and remembers the number of tokens at the end
of every line. After an edit it is rolled back to the line that changed (microseconds, at any depth) and fed from there
(1 to 3 ms per kilobyte of Python).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from codespec.grammar.indentation import detect, inside, opener, opens
from codespec.patience import check
from codespec.protocols import Aborted, CodespecError, GrammarState

LONGEST_PREFIX = 200_000
"""Characters before the cursor that are fed from the start of the file; beyond, only the enclosing block is."""
ROOT, BLOCK = "root", "statements"
"""Start symbols: of a file, and of what a block holds."""
MOST_STARTS = 8
"""Positions that are tried as starts where the file's beginning does not match."""
MOST_FEEDS, MOST_REFUSALS = 3, 64
"""Matchers that are kept for a document besides the one of the whole file, and texts known to be refused."""

Levels = tuple[str, ...] | None
Open = Callable[[str, Levels], GrammarState | None]
"""(start symbol, levels) to a state at the start; None where the grammar has no such symbol."""


class Start(Protocol):
    """A position from which the text may be parsed on its own; see ``codespec.syntax.tree``."""

    @property
    def offset(self) -> int: ...
    @property
    def top_level(self) -> bool: ...


@dataclass(frozen=True)
class GrammarPosition:
    """The grammar at one position of a document.

    Attributes:
        state: a copy that has accepted the text before it; None where that is not in the language.
        note: ``python``, ``python (from line 40)`` or ``none (python: line 12 does not match it)``.
        outside: given what follows the cursor, and where in it the state refused to go on, whether that lies outside
            of the block that the state began in; None where it began with the file.
    """

    state: GrammarState | None
    note: str
    outside: Callable[[str, int], bool] | None = None


class Feed:
    """A matcher that is fed a text by lines, from one position on."""

    def __init__(self, state: GrammarState, tokenize: Callable[[str], Sequence[int]]) -> None:
        self._state, self._tokenize = state, tokenize
        self._lines: list[str] = []
        self._counts = [0]
        self._partial = 0

    def reach(self, lines: Sequence[str]) -> int | None:
        """Feed the state up to the end of ``lines`` (with line ends; the last one, up to the cursor, is not kept).

        Returns:
            None, or the index of the first line that it refused.

        Raises:
            CodespecError: the engine gave up; this object is of no use any more.
            Aborted: there is no time for more (``codespec.patience``); the lines up to there are kept.
        """
        whole = lines[:-1]
        kept = _common_lines(self._lines, whole)
        self._state.rollback(self._counts[-1] - self._counts[kept] + self._partial)
        self._partial = 0
        del self._lines[kept:], self._counts[kept + 1 :]
        for index in range(kept, len(whole)):
            check()
            if not self._take(whole[index]):
                return index
        tokens = self._tokenize(lines[-1])
        self._partial = self._state.accept(tokens)
        return None if self._partial == len(tokens) else len(whole)

    def _take(self, line: str) -> bool:
        tokens = self._tokenize(line)
        taken = self._state.accept(tokens)
        if taken < len(tokens):
            self._state.rollback(taken)
            return False
        self._lines.append(line)
        self._counts.append(self._counts[-1] + taken)
        return True

    def copy(self) -> GrammarState:
        """The state where ``reach`` has brought it."""
        return self._state.copy()


class GrammarDocument:
    """The grammar of one open document, through all its versions.

    Args:
        name: of the grammar.
        open_state: returns a state at the start of the grammar, for a start symbol and a set of levels.
        tokenize: the tokens of a text; any cut will do.
        leveled: the grammar depends on the indentations that the document uses.
        indented: whether less indentation ends a block, otherwise a closing bracket does.
    """

    def __init__(
        self,
        name: str,
        open_state: Open,
        tokenize: Callable[[str], Sequence[int]],
        leveled: bool = False,
        indented: bool = False,
    ) -> None:
        self._name, self._open, self._tokenize = name, open_state, tokenize
        self._leveled, self._indented = leveled, indented
        self._detected: tuple[str, tuple[str, ...]] | None = None
        # Both in the order of their last use.
        self._feeds: dict[tuple[str, int, Levels], Feed] = {}
        self._refused: dict[tuple[str, int, Levels], str] = {}

    def at(
        self,
        text: str,
        offset: int,
        starts: Callable[[int], Iterable[Start]] | None = None,
        begins: bool = True,
    ) -> GrammarPosition:
        """The grammar at ``offset`` (in characters) of the current version.

        Args:
            starts: positions from which the text up to an offset may be parsed on its own, outermost first.
            begins: whether ``text`` begins where the document does; where not, only ``starts`` count.

        Raises:
            Aborted: there is no time for more: the first time a document takes some milliseconds for each kilobyte.
                What was read until then stays read.
        """
        prefix = text[:offset]
        levels = self._levels(text, offset)
        refused: int | None = None
        if begins and len(prefix) <= LONGEST_PREFIX:
            state, refused = self._try(ROOT, 0, prefix, levels)
            if state is not None:
                return GrammarPosition(state, self._name)
        found = self._restart(prefix, levels, starts) if starts is not None else None
        if found is not None:
            return found
        if refused is None:
            return GrammarPosition(None, f"none ({self._name}: the text before the cursor is too long)")
        return GrammarPosition(None, f"none ({self._name}: line {refused + 1} does not match it)")

    def _levels(self, text: str, offset: int) -> Levels:
        """The levels of the document; of the cursor's own line, which is unfinished, it counts only whether it opens a
        block."""
        if not self._leveled:
            return None
        start, end = text.rfind("\n", 0, offset) + 1, text.find("\n", offset)
        line, after = text[start : max(end, offset)], text[end:] if end >= 0 else ""
        others = text[:start] + (opener(line) if opens(line, after) else "") + after
        if self._detected is None or self._detected[0] != others:
            self._detected = others, detect(others)
        return self._detected[1]

    def _try(self, symbol: str, start: int, text: str, levels: Levels) -> tuple[GrammarState | None, int | None]:
        """The state after ``text`` parsed as ``symbol``, or the index of the line that it refused."""
        key = (symbol, start, levels)
        refused = self._refused.get(key)
        if refused is not None and text.startswith(refused):  # nothing that follows can change that
            return None, max(0, refused.count("\n") - refused.endswith("\n"))
        lines = _lines(text)
        feed = self._feeds.pop(key, None)
        row: int | None = len(lines) - 1
        try:
            if feed is None:
                fresh = self._open(symbol, levels)
                if fresh is None:
                    return None, None
                feed = Feed(fresh, self._tokenize)
            row = feed.reach(lines)
        except Aborted:
            if feed is not None:
                self._feeds[key] = feed
            raise
        except CodespecError:
            feed = None
        if feed is not None and (row is None or (symbol, start) == (ROOT, 0)):
            self._feeds[key] = feed
            self._forget()
        if row is None:
            assert feed is not None
            return feed.copy(), None
        self._refused.pop(key, None)
        self._refused[key] = "".join(lines[: row + 1])
        while len(self._refused) > MOST_REFUSALS:
            del self._refused[next(iter(self._refused))]
        return None, row

    def _forget(self) -> None:
        """Keep one feed of the whole file, and of the others those that were used last."""
        whole = [key for key in self._feeds if key[:2] == (ROOT, 0)]
        others = [key for key in self._feeds if key[:2] != (ROOT, 0)]
        for key in (*whole[:-1], *others[:-MOST_FEEDS]):
            del self._feeds[key]

    def _restart(self, prefix: str, levels: Levels, starts: Callable[[int], Iterable[Start]]) -> GrammarPosition | None:
        """The state from the outermost enclosing block, or statement in one, whose text up to the cursor matches."""
        near = [start for start in starts(len(prefix)) if len(prefix) - start.offset <= LONGEST_PREFIX]
        for start in near[-MOST_STARTS:]:
            text = prefix[start.offset :]
            indent = text[: len(text) - len(text.lstrip(" \t"))]
            deeper = inside(levels, indent) if levels else None
            for symbol in (ROOT, BLOCK) if start.top_level else (BLOCK,):
                state, _ = self._try(symbol, start.offset, text, deeper)
                if state is not None:
                    row = prefix.count("\n", 0, start.offset) + 1
                    return GrammarPosition(
                        state, f"{self._name} (from line {row})", self._outside(indent, start.top_level)
                    )
        return None

    def _outside(self, indent: str, top_level: bool) -> Callable[[str, int], bool] | None:
        """Whether the refused text comes after the block with the indentation ``indent``."""
        if top_level:
            return None
        return partial(_dedents, len(indent)) if self._indented else _closes


def _closes(text: str, position: int) -> bool:
    return text[position:].lstrip()[:1] == "}"


def _dedents(columns: int, text: str, position: int) -> bool:
    start = text.rfind("\n", 0, position) + 1
    if text[position:].startswith("\n"):
        start = position + 1
    line = next((line for line in text[start:].split("\n") if line.strip()), "")
    return start > 0 and len(line) - len(line.lstrip(" \t")) < columns


def _lines(text: str) -> list[str]:
    """The lines with their ends; the last one has none and may be empty."""
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + lines[-1:]


def _common_lines(old: Sequence[str], new: Sequence[str]) -> int:
    """How many lines both begin with."""
    shorter = min(len(old), len(new))
    # Whole slices first: lists compare in C, and mostly one continues the other.
    if old[:shorter] == new[:shorter]:
        return shorter
    return next(index for index in range(shorter) if old[index] != new[index])
