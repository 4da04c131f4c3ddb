"""What the user has edited lately: keys typed in a row are one edit, in whole lines."""

from __future__ import annotations

from dataclasses import dataclass

from codespec.edits.lines import lines_of
from codespec.edits.request import RecentEdit
from codespec.line_ends import without_lone_returns
from codespec.recent import Recent
from codespec.text_difference import changes, common_parts

MOST_EDITS = 16
"""That are remembered, of all documents."""
MOST_DOCUMENTS = 64
"""Whose texts are followed; of others the next change is taken for the beginning."""
MOST_LINES = 60
"""Of one edit: what changes more, such as a formatter, tells little of what comes next; typing goes on with another."""
CONTEXT_LINES = 3
"""Unchanged lines that are shown on each side."""
JOIN_S = 10.0
"""Between two changes of lines beside each other that are one edit."""
STALE_S = 300.0
"""After which a change of the same lines begins a new edit."""
APART = 2
"""Unchanged lines between two parts of one change that make them two edits."""


@dataclass
class _Edit:
    """An edit as it grows.

    Attributes:
        line: of the document as it is now.
        before, after: lines with their ends.
        at: when it was last changed.
    """

    path: str
    line: int
    before: list[str]
    after: list[str]
    at: float

    @property
    def end(self) -> int:
        """The index of the line after the edit's last one."""
        return self.line + len(self.after)


class EditHistory:
    """The recent edits of all documents. For one thread; bounded in edits, documents and lines of an edit."""

    def __init__(self) -> None:
        self._texts: Recent[str, list[str]] = Recent(MOST_DOCUMENTS)
        self._edits: list[_Edit] = []

    def opened(self, path: str, text: str) -> None:
        """Follow a document from this text on; edits of it whose lines are there no more are dropped."""
        lines = self._texts[path] = lines_of(without_lone_returns(text))
        self._edits = [each for each in self._edits if each.path != path or lines[each.line : each.end] == each.after]

    def changed(self, path: str, text: str, now: float) -> None:
        """The document's text is another.

        Args:
            now: seconds, of any clock that only goes forward.
        """
        old, new = self._texts.use(path), lines_of(without_lone_returns(text))
        self._texts[path] = new
        if old is None or old == new:
            return
        start, end = common_parts(old, new)
        before, after = old[start : len(old) - end], new[start : len(new) - end]
        if max(len(before), len(after)) > MOST_LINES:
            self._drop(path)
            return
        lines = list(old)
        for offset, gone, come in reversed(_parts(before, after)):  # from the end: what lies above keeps its place
            self._add(path, lines, start + offset, start + offset + gone, come, now)
            lines[start + offset : start + offset + gone] = come
        self._edits = self._edits[-MOST_EDITS:]

    def closed(self, path: str) -> None:
        """Follow a document no longer; what was edited in it stays."""
        self._texts.pop(path, None)

    def forget(self, path: str) -> None:
        """Drop all that is known of a document, which has become private."""
        self.closed(path)
        self._drop(path)

    def recent(self) -> tuple[RecentEdit, ...]:
        """The recent edits of all documents, the most recent last."""
        return tuple(map(self._shown, self._edits))

    def _drop(self, path: str) -> None:
        self._edits = [each for each in self._edits if each.path != path]

    def _shown(self, edit: _Edit) -> RecentEdit:
        lines = self._texts.get(edit.path) or []
        above = lines[max(0, edit.line - CONTEXT_LINES) : edit.line]
        below = lines[edit.end : edit.end + CONTEXT_LINES]
        texts = ("".join(each) for each in (edit.before, edit.after, above, below))
        return RecentEdit(edit.path, edit.line, *texts)

    def _add(self, path: str, lines: list[str], start: int, end: int, come: list[str], now: float) -> None:
        """Note that of a document's ``lines`` those from ``start`` to ``end`` became others."""
        joined, others = [], []
        for each in self._edits:
            if each.path == path and each.line <= end and each.end >= start and self._joins(each, start, end, now):
                joined.append(each)
                continue
            if each.path == path and each.line < end and each.end > start:
                continue  # another edit long ago, whose lines are no more
            if each.path == path and each.line >= end:
                each.line += len(come) - (end - start)
            others.append(each)
        low = min([start, *(each.line for each in joined)])
        high = max([end, *(each.end for each in joined)])
        before, at = [], low
        for each in sorted(joined, key=lambda edit: edit.line):
            before += lines[at : each.line] + each.before
            at = each.end
        before += lines[at:high]
        after = lines[low:start] + come + lines[end:high]
        skipped, behind = common_parts(before, after)
        before, after = before[skipped : len(before) - behind], after[skipped : len(after) - behind]
        if before != after and max(len(before), len(after)) <= MOST_LINES:
            others.append(_Edit(path, low + skipped, before, after, now))
        self._edits = others

    def _joins(self, edit: _Edit, start: int, end: int, now: float) -> bool:
        """Whether a change that touches an edit goes on with it."""
        overlaps = edit.line < end and edit.end > start
        if overlaps or edit.end == edit.line or start == end:
            return now - edit.at <= STALE_S
        return edit is self._edits[-1] and now - edit.at <= JOIN_S


def _parts(before: list[str], after: list[str]) -> list[tuple[int, int, list[str]]]:
    """The changes between two texts that lie apart: offset and count of the old lines, and the new ones."""
    if min(len(before), len(after)) <= APART:
        return [(0, len(before), after)]
    parts: list[tuple[int, int, int, int]] = []
    for low, high, new_low, new_high in changes(before, after):
        if parts and low - parts[-1][1] < APART:
            low, new_low = parts[-1][0], parts[-1][2]
            parts.pop()
        parts.append((low, high, new_low, new_high))
    return [(low, high - low, after[new_low:new_high]) for low, high, new_low, new_high in parts]
