"""Examples of next edits: what was changed last, a window, and the window as it should be."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.training.edits.changes import MAKERS, Change, Maker, single
from benchmarks.training.edits.source import Names, Replacement, Source, apply
from codespec.edits.formats import WindowPrompt
from codespec.edits.request import RecentEdit

MOST_WINDOW = 1_300
"""Characters of a window."""


@dataclass(frozen=True)
class Shares:
    """How often an example is of what sort.

    Attributes:
        none: nothing is left to change in the window.
        jump: the window lies around the next place, not around the last edit.
        noise: an edit that has nothing to do with it came before.
        definition: what is defined is changed first.
        around: lines of the window on each side; 0: a random number of them.
    """

    none: float = 0.15
    jump: float = 0.25
    noise: float = 0.25
    definition: float = 0.7
    around: int = 0


TRAINING = Shares()


@dataclass(frozen=True)
class Example:
    """One next edit.

    Attributes:
        text: the whole document now.
        updated: the whole document after the right edits in the window.
        window: first and last line of the window, 0-based; the last is not in it any more.
    """

    kind: str
    package: str
    path: str
    language: str
    text: str
    updated: str
    offset: int
    window: tuple[int, int]
    recent: tuple[RecentEdit, ...]

    def prompt(self) -> tuple[WindowPrompt, str]:
        """The prompt, and the window that is wanted."""
        lines, new = self.text.splitlines(keepends=True), self.updated.splitlines(keepends=True)
        first, last = self.window
        after = len(lines) - last
        window = "".join(lines[first:last])
        cursor = self.offset - sum(map(len, lines[:first]))
        found = WindowPrompt(
            self.path, self.language, window, max(0, min(cursor, len(window))), first,
            "".join(lines[:first]), "".join(lines[last:]), recent=self.recent,
        )  # fmt: skip
        return found, "".join(new[first : len(new) - after])


def window_around(text: str, line: int, above: int, below: int) -> tuple[int, int]:
    """Lines around a line, fewer where they are long."""
    lines = text.splitlines(keepends=True)
    first, last = max(0, line - above), min(len(lines), line + below + 1)
    while sum(map(len, lines[first:last])) > MOST_WINDOW and last - first > 3:
        if last - 1 - line >= line - first:
            last -= 1
        else:
            first += 1
    return first, last


def made(
    source: Source,
    rnd: random.Random,
    names: Names,
    makers: Sequence[tuple[float, Maker]] = MAKERS,
    shares: Shares = TRAINING,
) -> Example | None:
    """An example of a change made on a file; None where the dice found nothing to change."""
    (maker,) = rnd.choices([each for _, each in makers], [weight for weight, _ in makers])
    change = maker(source, rnd, names)
    if change is None:
        return None
    noise = single(source, rnd, names) if rnd.random() < shares.noise else None
    if noise is not None and any(noise.start < each.end and each.start < noise.end for each in change.replacements):
        noise = None
    return carried_on(source, change, noise, rnd, shares)


def carried_on(
    source: Source, change: Change, noise: Replacement | None, rnd: random.Random, shares: Shares
) -> Example | None:
    """The example of a change of which a part has been made."""
    count = len(change.replacements)
    first = change.first if rnd.random() < shares.definition else rnd.randrange(count)
    steps = rnd.choices([1, 2, 3, 4], [70, 18, 8, 4])[0]
    none = rnd.random() < shares.none
    order = [*range(first, count), *range(first)]
    if none and rnd.random() < 0.5:
        steps = count
    done = [change.replacements[index] for index in order[:steps]]
    left = [change.replacements[index] for index in order[steps:]]
    history = ([noise] if noise is not None else []) + done
    text = apply(source.text, history)
    recent = history_of(source, history)
    anchor = history[-1]
    if left and rnd.random() < shares.jump:
        anchor = min(left, key=lambda each: abs(each.start - done[-1].start))
    if none and left and rnd.random() < 0.5 and noise is not None:
        anchor = noise
    offset = _moved(anchor.start, history) + (len(anchor.text) if anchor in history else 0)
    line = text.count("\n", 0, offset)
    above, below = (shares.around, shares.around) if shares.around else (rnd.randrange(3, 11), rnd.randrange(5, 13))
    window = window_around(text, line, above, below)
    start, end = _offsets(text, window)
    wanted = [
        Replacement(at, at + each.end - each.start, each.text)
        for each in left
        if start <= (at := _moved(each.start, history)) and at + each.end - each.start <= end
    ]
    if none == bool(wanted):
        return None
    document = source.document
    kind = change.kind if wanted else "none"
    return Example(
        kind, document.package, document.path, document.language, text, apply(text, wanted), offset, window, recent
    )


def history_of(source: Source, history: Sequence[Replacement]) -> tuple[RecentEdit, ...]:
    """The edits as a history tells them: those of one line, or of neighbours, that follow each other are one."""
    groups: list[list[Replacement]] = []
    for each in history:
        line = source.line(each.start)
        if groups and abs(source.line(groups[-1][-1].start) - line) <= 1:
            groups[-1].append(each)
        else:
            groups.append([each])
    recent = []
    before: list[Replacement] = []
    for group in groups:
        first, last = source.line(min(group).start), source.line(max(group).end)
        start = source.line_starts[first]
        end = source.line_starts[last + 1] if last + 1 < len(source.line_starts) else len(source.text)
        old, new = _lines(source.text, start, end, before), _lines(source.text, start, end, [*before, *group])
        line = first + sum(each.text.count("\n") for each in before if each.start < start)
        recent.append(RecentEdit(source.document.path, line, old, new))
        before += group
    return tuple(recent)


def _lines(text: str, start: int, end: int, history: Sequence[Replacement]) -> str:
    inside = [Replacement(each.start - start, each.end - start, each.text)
              for each in history if start <= each.start < end]  # fmt: skip
    return apply(text[start:end], inside)


def _moved(offset: int, history: Sequence[Replacement]) -> int:
    return offset + sum(
        len(each.text) - (each.end - each.start) for each in history if each.end <= offset and each.start < offset
    )


def _offsets(text: str, window: tuple[int, int]) -> tuple[int, int]:
    starts = [0, *(match.end() for match in re.finditer("\n", text)), len(text)]
    return starts[window[0]], starts[min(window[1], len(starts) - 1)]
