"""Next edits that were applied: whether the user takes them back within half a minute."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codespec.lsp.workspace.documents import Mark, split_lines

if TYPE_CHECKING:
    from codespec.lsp.statistics import UsageStatistics
    from codespec.lsp.workspace.documents import Document

CHECK_S = 30.0
"""Seconds after an edit was applied. ``CODESPEC_EDIT_CHECK_S`` in the environment overrides it."""
MOST_WATCHED = 200
"""Applied edits that are watched at a time; beyond that the oldest are looked at early."""
SLACK = 8
"""Lines around its place in which an edit is searched."""


@dataclass(eq=False)
class _Watch:
    """An applied edit: the ids of its parts; the lines that it has changed, as they were and as they became, without
    their ends."""

    parts: tuple[str, ...]
    document: Document
    language: str
    mark: Mark
    old: tuple[str, ...]
    new: tuple[str, ...]
    timer: asyncio.TimerHandle | None = None


class AppliedEdits:
    """Counts the applied edits, and those that are gone again later. For the thread of the event loop.

    Args:
        statistics: the counts.
        check_s: seconds after which an edit is looked for; as many as ``CHECK_S`` says where it is None.
    """

    def __init__(self, statistics: UsageStatistics, check_s: float | None = None) -> None:
        self._statistics = statistics
        self._check_s = _check_s() if check_s is None else check_s
        self._watched: dict[_Watch, None] = {}

    def add(
        self, parts: tuple[str, ...], document: Document, language: str, row: int, old: Sequence[str],
        new: Sequence[str],
    ) -> None:  # fmt: skip
        """An edit is being applied: lines from ``row`` on, which were ``old``, become ``new``."""
        self._statistics.count(language, "edits_applied")
        if len(self._watched) >= MOST_WATCHED:
            self._check(next(iter(self._watched)))
        watch = _Watch(parts, document, language, Mark(row), tuple(old), tuple(new))
        document.marks.append(watch.mark)
        self._watched[watch] = None
        watch.timer = asyncio.get_running_loop().call_later(self._check_s, self._check, watch)

    def taken_back(self, document: Document) -> Iterator[str]:
        """The parts of edits of a document that were just applied, and are no more: its lines are as they were."""
        for watch in self._watched:
            if watch.document is document and _is_taken_back(watch):
                yield from watch.parts

    def closed(self, document: Document) -> None:
        """Look for the edits of a document that is about to be closed."""
        for watch in [each for each in self._watched if each.document is document]:
            self._check(watch)

    def finish(self) -> None:
        """Look for all of them, at the end of the session."""
        for watch in list(self._watched):
            self._check(watch)

    def _check(self, watch: _Watch) -> None:
        if watch not in self._watched:
            return
        del self._watched[watch]
        if watch.timer is not None:
            watch.timer.cancel()
        if _is_taken_back(watch):
            self._statistics.count(watch.language, "edits_reverted")
        watch.document.marks.remove(watch.mark)


def _is_taken_back(watch: _Watch) -> bool:
    around = watch.document.around(watch.mark.row, SLACK, max(len(watch.old), len(watch.new)) + SLACK)
    lines = [line.rstrip("\r\n") for line in split_lines(around)]
    return not _holds(lines, watch.new) and _holds(lines, watch.old)


def _check_s() -> float:
    try:
        return float(os.environ.get("CODESPEC_EDIT_CHECK_S", ""))
    except ValueError:
        return CHECK_S


def _holds(lines: Sequence[str], part: Sequence[str]) -> bool:
    """Whether some lines in a row are ``part``."""
    return any(tuple(lines[at : at + len(part)]) == tuple(part) for at in range(len(lines) - len(part) + 1))
