"""Where the next edit may be: around the cursor, then where the words stand that the last edit did away with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from codespec.edits.difference import hunks, whole_words
from codespec.edits.formats import Snippet
from codespec.edits.request import EditRequest, RecentEdit
from codespec.edits.windows import Window, line_of, window_at
from codespec.languages import by_id
from codespec.syntax.tree import syntax_tree

LEAST_WORD = 2
"""Characters of a name that is looked for elsewhere."""
MOST_PLACES = 4
"""Windows that are tried; the time budget ends it earlier."""
LARGEST = 400_000
"""Characters of another document that is searched."""

MOST_SNIPPETS, SNIPPET_LINES = 3, (8, 8)
"""Parts of other documents that a prompt may show, and their lines above and below the place."""
SHORT_NAME = 3
"""Characters of a name that is in any document."""

_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Place:
    """A window, and where in it the edit is expected.

    Attributes:
        window: of a document.
        offset: in characters of the window.
    """

    window: Window
    offset: int


def places(request: EditRequest, around: tuple[int, int]) -> Iterator[Place]:
    """The most likely first, each window once; whole windows apart from each other.

    Args:
        around: lines of a window above and below its place.
    """
    wanted = names_gone(request.recent)
    cursor = cursor_place(request, around)
    elsewhere = (place_at(*each, around) for each in _occurrences(request, wanted, cursor.window))
    # Where a name is left that was changed everywhere around the cursor, that is the place.
    jumps = bool(wanted) and not _names(cursor.window.inside) & wanted
    first = next(elsewhere, None) if jumps else None
    seen: list[Window] = []
    for place in chain([first] if first is not None else [], [cursor], elsewhere):
        line = place.window.line + place.window.inside.count("\n", 0, place.offset)
        if any(each.path == place.window.path and each.holds(line) for each in seen):
            continue
        yield place
        seen.append(place.window)
        if len(seen) == MOST_PLACES:
            return


def cursor_place(request: EditRequest, around: tuple[int, int]) -> Place:
    """The window around the cursor."""
    return place_at(request.path, request.language, request.text, request.offset, around)


def names_gone(recent: Sequence[RecentEdit]) -> set[str]:
    """The names that the last edit took away without leaving one of them."""
    if not recent:
        return set()
    last = recent[-1]
    gone: set[str] = set()
    for hunk in hunks(last.before, last.after):
        start, end = whole_words(last.before, hunk.start, hunk.end)
        gone |= _names(last.before[start:end])
    return {name for name in gone - _names(last.after) if len(name) >= LEAST_WORD}


def _names(text: str) -> set[str]:
    return set(_NAME.findall(text))


def related(request: EditRequest, path: str) -> Iterator[Snippet]:
    """Where other documents than ``path`` have a name of the last edit: the lines around the first such place."""
    last = request.recent[-1] if request.recent else None
    wanted = (
        {name for name in _names(last.before + last.after) if len(name) > SHORT_NAME} if last is not None else set()
    )
    if not wanted:
        return
    pattern = _pattern(wanted)
    shown = 0
    for other in request.others:
        match = pattern.search(other.text) if other.path != path and len(other.text) <= LARGEST else None
        if match is not None and shown < MOST_SNIPPETS:
            shown += 1
            around = window_at(
                other.path, other.language, other.text, line_of(other.text, match.start()), SNIPPET_LINES
            )
            yield Snippet(other.path, around.inside)


def _pattern(names: set[str]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")


def place_at(path: str, language: str, text: str, offset: int, around: tuple[int, int]) -> Place:
    """The window around a position."""
    window = window_at(path, language, text, line_of(text, offset), around)
    return Place(window, max(0, min(offset - window.start, window.end - window.start)))


def _occurrences(request: EditRequest, wanted: set[str], seen: Window) -> Iterator[tuple[str, str, str, int]]:
    """Where the names stand in code outside the cursor's window: those after it first, then those before it, then
    those in other documents."""
    if not wanted:
        return
    own = list(_in_code(request.language, request.text, wanted))
    ahead = [offset for offset in own if offset >= seen.end]
    behind = [offset for offset in own if offset < seen.start]
    for offset in ahead + behind[::-1]:
        yield request.path, request.language, request.text, offset
    for other in request.others:
        if len(other.text) <= LARGEST:
            for offset in _in_code(other.language, other.text, wanted):
                yield other.path, other.language, other.text, offset


def _in_code(language: str, text: str, wanted: set[str]) -> Iterator[int]:
    """Where names stand outside comments and strings, as far as a parser tells."""
    found = [match.start() for match in _pattern(wanted).finditer(text)]
    if not found:
        return
    tree = syntax_tree(by_id(language), text)
    if tree is None:
        yield from found
        return
    for offset in found:
        tokens = tree.tokens(offset, 1)
        if not tokens or tokens[0].role == "code":
            yield offset
