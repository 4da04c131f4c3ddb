"""Real edits that carry on what was begun: hunks between two versions of a file that replace the same by the same."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise

from benchmarks.training.edits.examples import Example, window_around
from benchmarks.training.edits.source import EDITED, LARGEST
from benchmarks.training.edits.versions import Hunk, hunks, is_small
from codespec.edits.formats.replaced import WORDS, added
from codespec.edits.request import RecentEdit
from codespec.text_difference import changes
from codespec.train.corpus import CorpusDocument

OF_GROUP = 6
"""Examples of the hunks of a file that do the same."""

JUMP = 0.25
"""How often a window lies around the next place, not around the last edit."""

NOTHING = 0.3
"""Examples in which nothing follows, for one in which something does."""

_NAME = re.compile(r"[^\W\d]\w*")

Said = tuple[tuple[str, str], ...]


def alike(old: CorpusDocument, new: CorpusDocument, rnd: random.Random, around: int = 0) -> Iterator[Example]:
    """Examples of two versions of a file: of hunks that do the same some have been made, and the others in the window
    are wanted; among them some of a hunk that nothing follows from. What else was edited is as it was, or as it will
    be.

    Args:
        around: lines of the window on each side; 0: a random number of them.
    """
    if old.language not in EDITED or max(len(old.text), len(new.text)) > LARGEST:
        return
    lines = old.text.splitlines(keepends=True)
    found = list(by_line(lines, hunks(lines, new.text.splitlines(keepends=True))))
    groups: dict[Said, list[Hunk]] = {}
    for hunk in found:
        groups.setdefault(said(lines, hunk), []).append(hunk)
    groups.pop((), None)
    count = 0
    for what, group in groups.items():
        for _ in range(min(OF_GROUP, len(group)) if len(group) > 1 else 0):
            example = _carried_on(old, lines, found, group, what, rnd, around)
            if example is not None:
                count += 1
                yield example
    alone = [each for group in groups.values() if len(group) == 1 for each in group if is_small(each)]
    rnd.shuffle(alone)
    for hunk in alone[: round(NOTHING * count + rnd.random())]:
        others = [each for each in found if each is not hunk] if rnd.random() < 0.5 else []
        yield _example("none", old, _Versions(lines, others), [hunk], [], hunk, rnd, around)


def by_line(old: Sequence[str], found: Iterable[Hunk]) -> Iterator[Hunk]:
    """Hunks, those with as many lines before as after line for line."""
    for hunk in found:
        if hunk.end - hunk.start != len(hunk.lines):
            yield hunk
            continue
        for at, line in enumerate(hunk.lines, hunk.start):
            if line != old[at]:
                yield Hunk(at, at + 1, (line,))


def said(old: Sequence[str], hunk: Hunk) -> Said:
    """What a hunk replaces by what, in words; empty where that says nothing of other places."""
    if not is_small(hunk) or hunk.start == hunk.end:
        return ()
    lines = old[hunk.start : hunk.end]
    if not hunk.lines:
        gone = "".join(lines).strip()
        return ((gone, ""),) if _NAME.search(gone) else ()
    if len(lines) == len(hunk.lines) == 1 and (more := added(lines[0], hunk.lines[0])) is not None:
        return ((f"{more.function}(", more.argument),)
    before, after = WORDS.findall("".join(lines)), WORDS.findall("".join(hunk.lines))
    found = {("".join(before[a:b]), "".join(after[c:d])) for a, b, c, d in changes(before, after)}
    pairs = tuple(sorted(found))
    return pairs if 0 < len(pairs) <= 3 and any(_NAME.search(old + new) for old, new in pairs) else ()


class _Versions:
    """A file between two versions.

    Args:
        made: the hunks that are in it whatever else is done.
    """

    def __init__(self, lines: Sequence[str], made: Sequence[Hunk]) -> None:
        self.lines, self.made = lines, made

    def text(self, more: Sequence[Hunk]) -> str:
        """The file with more hunks made."""
        parts: list[str] = []
        at = 0
        for each in sorted({*self.made, *more}, key=lambda each: (each.start, each.end)):
            parts += [*self.lines[at : each.start], *each.lines]
            at = each.end
        return "".join([*parts, *self.lines[at:]])

    def line(self, hunk: Hunk, more: Sequence[Hunk]) -> int:
        """Where a hunk's lines stand with others made."""
        return hunk.start + sum(
            len(each.lines) - (each.end - each.start) for each in {*self.made, *more}
            if each.end <= hunk.start and each != hunk
        )  # fmt: skip


def _carried_on(
    old: CorpusDocument, lines: Sequence[str], found: Sequence[Hunk], group: Sequence[Hunk], what: Said,
    rnd: random.Random, around: int,
) -> Example | None:  # fmt: skip
    first = rnd.randrange(len(group)) if rnd.random() < 0.6 else 0
    order = [*group[first:], *group[:first]]
    steps = min(rnd.choices([1, 2, 3], [75, 17, 8])[0], len(order) - 1)
    done, left = order[:steps], order[steps:]
    others = [each for each in found if each not in group] if rnd.random() < 0.5 else []
    anchor = done[-1]
    if rnd.random() < JUMP:
        anchor = min(left, key=lambda each: abs(each.start - done[-1].start))
    example = _example("real", old, _Versions(lines, others), done, left, anchor, rnd, around)
    return example if example.text != example.updated and _follows(example, what) else None


def _follows(example: Example, what: Said) -> bool:
    """Whether the window does not hold as many places again where the same was not done."""
    prompt, updated = example.prompt()
    keys = [old for old, _ in what if _NAME.fullmatch(old.rstrip("("))]
    if len(what) > 1 or not keys:
        return True
    before, after = prompt.window.splitlines(), updated.splitlines()
    kept = set(after)
    holding = [line for line in before if re.search(rf"(?<!\w){re.escape(keys[0])}", line)]
    stay = [line for line in holding if line in kept]
    return len(stay) < len(holding) - len(stay) or len(before) != len(after)


def _example(
    kind: str, old: CorpusDocument, file: _Versions, done: Sequence[Hunk], left: Sequence[Hunk], anchor: Hunk,
    rnd: random.Random, around: int,
) -> Example:  # fmt: skip
    text = file.text(done)
    line = file.line(anchor, done) + (max(0, len(anchor.lines) - 1) if anchor in done else 0)
    starts = [0, *accumulate(map(len, text.splitlines(keepends=True)))]
    line = min(line, max(0, len(starts) - 2))
    above, below = (around, around) if around else (rnd.randrange(3, 11), rnd.randrange(5, 13))
    window = window_around(text, line, above, below)
    wanted = [
        each for each in left
        if window[0] <= (at := file.line(each, done)) and at + each.end - each.start <= window[1]
    ]  # fmt: skip
    updated = file.text([*done, *wanted])
    recent = tuple(_recent(old.path, file, done))
    offset = max(starts[line], starts[line + 1] - 1)
    return Example(kind, old.package, old.path, old.language, text, updated, offset, window, recent)


def _recent(path: str, file: _Versions, done: Sequence[Hunk]) -> Iterator[RecentEdit]:
    """Edits of neighbouring lines, one after the other, are one."""
    runs: list[list[Hunk]] = [[done[0]]]
    for previous, each in pairwise(done):
        if each.start == previous.end:
            runs[-1].append(each)
        else:
            runs.append([each])
    made: list[Hunk] = []
    for run in runs:
        before = "".join(file.lines[run[0].start : run[-1].end])
        after = "".join(line for each in run for line in each.lines)
        yield RecentEdit(path, file.line(run[0], made), before, after)
        made += run
