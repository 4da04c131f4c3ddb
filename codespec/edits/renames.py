"""A rename that was begun: its other uses need no model to be found. One thread at a time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from codespec.edits.difference import Hunk, whole_words, word_hunks
from codespec.edits.lines import lines_of
from codespec.edits.request import EditRequest, OtherDocument, RecentEdit
from codespec.edits.reversal import Done, done
from codespec.edits.windows import Window
from codespec.languages import by_id
from codespec.syntax.scopes.renaming import Use, Uses, other_uses, still_called

_NAME = re.compile(r"[^\W\d]\w*")


def rest_of_rename(request: EditRequest) -> list[Hunk]:
    """The changes that finish a rename which the last edit began, anywhere in the document; empty where it did not.

    It did where it put one name in place of another that stands for nothing else there, and the other one still
    stands for the same thing elsewhere.
    """
    last = request.recent[-1] if request.recent else None
    if last is not None and last.path == request.path:
        for old, new in _replaced(last, only_names=True):
            uses = _uses(request, OtherDocument(request.path, request.language, request.text), old, new)
            if uses.same:
                return [_renamed(each, len(old), new) for each in uses.same]
    return []


def renames_another(request: EditRequest, window: Window, changes: Sequence[Hunk]) -> bool:
    """Whether changes of the document that a window is of carry a name that a recent edit replaced by another one on to
    where that may stand for something else."""
    put_in = {name for change in changes for name in _NAME.findall(_in_whole_words(window.text, change))}
    begun = {(edit.path, *pair) for edit in request.recent for pair in _replaced(edit) if pair[1] in put_in}
    return any(
        change.start <= at + len(old) and change.end >= at and _becomes(window.text, change, at, old, new)
        for path, old, new in begun
        for at in _others(request, path, window, old, new)
        for change in changes
    )


def _others(request: EditRequest, path: str, window: Window, old: str, new: str) -> tuple[int, ...]:
    """Where a name that was replaced in the document of a path stands for something else in that of a window."""
    document = _document(request, path)
    uses = _uses(request, document, old, new) if document is not None else Uses()
    if path == window.path:
        return uses.other
    if uses.wide:
        return other_uses(by_id(window.language), window.text, old, PurePath(path).stem)
    return tuple(match.start() for match in re.finditer(rf"\b{re.escape(old)}\b", window.text))


def _document(request: EditRequest, path: str) -> OtherDocument | None:
    if path == request.path:
        return OtherDocument(request.path, request.language, request.text)
    return next((each for each in request.others if each.path == path), None)


def _uses(request: EditRequest, document: OtherDocument, old: str, new: str) -> Uses:
    """Where a name still stands that edits replaced by another one."""
    text, by = document.text, [edit for edit in request.recent if (old, new) in _replaced(edit)]
    parts = done(text, document.path, by)
    found = [match.start() for match in re.finditer(rf"\b{re.escape(new)}\b", text)]
    places = [place for place in found if _put_in(parts, place)]
    if not places:  # the lines that were edited are others now
        return Uses(other=tuple(match.start() for match in re.finditer(rf"\b{re.escape(old)}\b", text)))
    return still_called(by_id(document.language), text, places, old, new)


def _renamed(use: Use, length: int, new: str) -> Hunk:
    end = use.start + length
    if use.form == "shorthand":  # {old} -> {old: new}
        return Hunk(end, end, f": {new}")
    if use.form == "export":  # export { old } -> export { new as old }
        return Hunk(use.start, use.start, f"{new} as ")
    return Hunk(use.start, end, new)


def _in_whole_words(text: str, change: Hunk) -> str:
    """What a change puts in, with the rest of the words at both ends: a name may only become longer."""
    low, high = whole_words(text, change.start, change.end)
    return text[low : change.start] + change.text + text[change.end : high]


def _becomes(text: str, change: Hunk, at: int, old: str, new: str) -> bool:
    """Whether the name at ``at`` is another one after a change."""
    low, high = min(change.start, at), max(change.end, at + len(old))
    after = text[low : change.start] + change.text + text[change.end : high]
    before = text[low:high]
    return len(re.findall(rf"\b{re.escape(new)}\b", after)) > len(re.findall(rf"\b{re.escape(new)}\b", before))


def _replaced(edit: RecentEdit, only_names: bool = False) -> list[tuple[str, str]]:
    """The names of lines that became others, one for one; where ``only_names``, none if anything else was changed."""
    before, after = edit.before, edit.after
    if only_names and len(lines_of(before)) != len(lines_of(after)):
        return []
    found: dict[str, str] = {}
    for hunk in word_hunks(before, after):
        old, new = before[hunk.start : hunk.end], hunk.text
        names = _NAME.fullmatch(old) and _NAME.fullmatch(new)
        if names and found.setdefault(old, new) == new:
            continue
        if only_names:
            return []
    return list(found.items())


def _put_in(parts: Sequence[Done], place: int) -> bool:
    return any(start <= place < end for part in parts for start, end in part.put_in)
