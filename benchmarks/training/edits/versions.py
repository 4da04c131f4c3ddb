"""Real edits: the differences between two versions of a package, of which the first is made and the next one wanted."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from benchmarks.training.edits.examples import Example, window_around
from benchmarks.training.edits.source import EDITED, LARGEST
from codespec.edits.request import RecentEdit
from codespec.train.corpus import CorpusDocument

MOST_LINES = 6
"""Lines of an edit, before and after."""


@dataclass(frozen=True)
class Hunk:
    """Lines ``start`` to ``end`` of the old text become ``lines``."""

    start: int
    end: int
    lines: tuple[str, ...]


def hunks(old: Sequence[str], new: Sequence[str]) -> list[Hunk]:
    """What was edited between two versions; none where nearly all of it was."""
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.quick_ratio() < 0.7:
        return []
    return [Hunk(a, b, tuple(new[c:d])) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]


def real(old: CorpusDocument, new: CorpusDocument, rnd: random.Random, around: int = 0) -> Iterator[Example]:
    """Examples of two versions of a file: some hunks have been made, and the next ones in the window are wanted.

    Args:
        around: lines of the window on each side; 0: a random number of them.
    """
    if old.language not in EDITED or max(len(old.text), len(new.text)) > LARGEST:
        return
    lines = old.text.splitlines(keepends=True)
    found = hunks(lines, new.text.splitlines(keepends=True))
    for index in range(len(found) - 1):
        example = _example(old, lines, found, index, rnd, around)
        if example is not None:
            yield example


def is_small(hunk: Hunk) -> bool:
    """Whether an edit is one that a model could make."""
    return hunk.end - hunk.start <= MOST_LINES and len(hunk.lines) <= MOST_LINES


def _example(
    old: CorpusDocument, lines: Sequence[str], found: Sequence[Hunk], index: int, rnd: random.Random, around: int
) -> Example | None:
    done, last = found[: index + 1], found[index]
    if not is_small(last) or not "".join([*last.lines, *lines[last.start : last.end]]).strip():
        return None
    text = "".join(_with(lines, done))
    shift = sum(len(each.lines) - (each.end - each.start) for each in done[:-1])
    line = max(0, last.start + shift + len(last.lines) - 1)
    above, below = (around, around) if around else (rnd.randrange(3, 11), rnd.randrange(5, 13))
    window = window_around(text, line, above, below)
    shift += len(last.lines) - (last.end - last.start)
    wanted = [each for each in found[index + 1 :] if each.end + shift <= window[1]]
    if not wanted or not all(map(is_small, wanted)) or wanted[0].start + shift < window[0]:
        return None
    updated = "".join(_with(lines, [*done, *wanted]))
    if updated.split() == text.split():
        return None
    starts = "".join(text.splitlines(keepends=True)[: line + 1])
    recent = tuple(_recent(old.path, lines, done, at) for at in range(max(0, index - 2), index + 1))
    return Example(
        "real", old.package, old.path, old.language, text, updated, max(0, len(starts) - 1), window, recent
    )  # fmt: skip


def _with(lines: Sequence[str], made: Sequence[Hunk]) -> Iterator[str]:
    at = 0
    for each in made:
        yield from lines[at : each.start]
        yield from each.lines
        at = each.end
    yield from lines[at:]


def _recent(path: str, lines: Sequence[str], done: Sequence[Hunk], at: int) -> RecentEdit:
    hunk = done[at]
    line = hunk.start + sum(len(each.lines) - (each.end - each.start) for each in done[:at])
    return RecentEdit(path, line, "".join(lines[hunk.start : hunk.end]), "".join(hunk.lines))
