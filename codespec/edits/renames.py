"""A rename that was begun: its other uses need no model to be found. One thread at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from codespec.edits.difference import Hunk, word_hunks
from codespec.edits.lines import lines_of
from codespec.edits.request import EditRequest
from codespec.edits.reversal import Done, done
from codespec.languages import by_id
from codespec.syntax.scopes import Uses, still_called

_NAME = re.compile(r"[^\W\d]\w*")


def rest_of_rename(request: EditRequest) -> list[Hunk]:
    """The changes that finish a rename which the last edit began, anywhere in the document; empty where it did not.

    It did where it put one name in place of another that stands for nothing else there, and the other one still
    stands for the same thing elsewhere.
    """
    for old, new, uses in _begun(request):
        if uses.same:
            return [_renamed(at, at + len(old), new, shorthand) for at, shorthand in uses.same]
    return []


def renames_another(request: EditRequest, changes: Sequence[Hunk]) -> bool:
    """Whether changes of the document go on with a rename where something else has the name."""
    return any(
        change.start <= at + len(old) and change.end >= at and _becomes(request.text, change, at, old, new)
        for old, new, uses in _begun(request)
        for at in uses.other
        for change in changes
    )


def _begun(request: EditRequest) -> Iterator[tuple[str, str, Uses]]:
    """The names that the last edit replaced by others, where it is known what they stand for."""
    last = request.recent[-1] if request.recent else None
    if last is None or last.path != request.path:
        return
    parts = done(request.text, request.path, request.recent)
    for old, new in _replaced(last.before, last.after):
        found = [match.start() for match in re.finditer(rf"\b{re.escape(new)}\b", request.text)]
        places = [place for place in found if _put_in(parts, place)]
        uses = still_called(by_id(request.language), request.text, places, old, new)
        if uses is not None:
            yield old, new, uses


def _renamed(start: int, end: int, new: str, shorthand: bool) -> Hunk:
    return Hunk(end, end, f": {new}") if shorthand else Hunk(start, end, new)


def _becomes(text: str, change: Hunk, at: int, old: str, new: str) -> bool:
    """Whether the name at ``at`` is another one after a change."""
    low, high = min(change.start, at), max(change.end, at + len(old))
    after = text[low : change.start] + change.text + text[change.end : high]
    before = text[low:high]
    return len(re.findall(rf"\b{re.escape(new)}\b", after)) > len(re.findall(rf"\b{re.escape(new)}\b", before))


def _replaced(before: str, after: str) -> list[tuple[str, str]]:
    """The names of lines that became others, one for one."""
    if len(lines_of(before)) != len(lines_of(after)):
        return []
    found: dict[str, str] = {}
    for hunk in word_hunks(before, after):
        old, new = before[hunk.start : hunk.end], hunk.text
        if not (_NAME.fullmatch(old) and _NAME.fullmatch(new)) or found.setdefault(old, new) != new:
            return []
    return list(found.items())


def _put_in(parts: Sequence[Done], place: int) -> bool:
    return any(start <= place < end for part in parts for start, end in part.put_in)
