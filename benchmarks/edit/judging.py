"""What an offer is worth: right or not, and whether it does harm. Nothing here is shared with what makes offers."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path

from benchmarks.edit.case import Case
from benchmarks.quality.judges import Judge
from codespec.edits.request import Edit

Change = tuple[int, int, str]
"""Start and end in the old text, and what stands there in the new one."""

_WORD = re.compile(r"\w+|[^\w\s]")
_PARTS = re.compile(r"\w+|\s|[^\w\s]")


def apply(text: str, edits: Sequence[Edit]) -> str:
    """The document with edits made."""
    parts, at = [], 0
    for edit in sorted(edits, key=lambda each: each.start):
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def outside(case: Case, edits: Sequence[Edit], lines: int) -> bool:
    """Whether edits reach further than ``lines`` from one another, or overlap: then they are not of one window."""
    ordered = sorted(edits, key=lambda each: each.start)
    span = case.text.count("\n", ordered[0].start, max(each.end for each in ordered))
    return span > lines or any(one.end > two.start for one, two in itertools.pairwise(ordered))


def larger_than_needed(case: Case, edits: Sequence[Edit]) -> bool:
    """Whether an edit rewrites a word that stays at its beginning or end."""
    for each in edits:
        old, new = (_PARTS.findall(text) for text in (case.text[each.start : each.end], each.text))
        if old and new and (old[0] == new[0] or old[-1] == new[-1]):
            return True
    return False


def only_space(case: Case, updated: str) -> bool:
    """Whether nothing but white space is changed."""
    return "".join(case.text.split()) == "".join(updated.split())


def undone(case: Case, edits: Sequence[Edit]) -> bool:
    """Whether a word that the user put into these lines is taken away, or one that was deleted there comes back."""
    for recent in case.recent:
        begin = sum(len(line) + 1 for line in case.text.split("\n")[: recent.line])
        end = begin + len(recent.after)
        if recent.path != case.path or case.text[begin:end] != recent.after:
            continue
        near = [each for each in edits if each.start <= end and each.end >= begin]
        if not near:
            continue
        low, high = min([begin, *(e.start for e in near)]), max([end, *(e.end for e in near)])
        moved = [Edit(e.path, e.start - low, e.end - low, e.text) for e in near]
        before, now = Counter(_WORD.findall(recent.before)), Counter(_WORD.findall(recent.after))
        old, new = case.text[low:high], apply(case.text[low:high], moved)
        was, will = Counter(_WORD.findall(old)), Counter(_WORD.findall(new))
        if any(will[word] < was[word] for word in now - before if word.isidentifier()):
            return True
        if any(will[word] > was[word] for word in before - now if word.isidentifier()):
            return True
        if recent.before.strip() and recent.before in new and recent.before not in old:
            return True
    return False


def worse(judge: Judge, case: Case, updated: str) -> list[str]:
    """The errors of the document with the offer, where it has more of them than without."""
    errors = judge(updated, Path(case.path))
    return errors if len(errors) > len(judge(case.text, Path(case.path))) else []


def characters(case: Case, updated: str) -> tuple[int, int, int]:
    """How many characters are changed as they should be, how many should be, and how many are."""
    wanted, made = _changes(case.text, case.updated), _changes(case.text, updated)
    return sum((wanted & made).values()), sum(wanted.values()), sum(made.values())


def part_of(case: Case, updated: str) -> bool:
    """Whether all that is changed should be, though not all that should be is."""
    wanted, made = _changes(case.text, case.updated), _changes(case.text, updated)
    return bool(made) and made <= wanted


def _changes(old: str, new: str) -> Counter[tuple[int, str, str]]:
    """Each character that is deleted or put in, with the place in the old text."""
    found: Counter[tuple[int, str, str]] = Counter()
    for start, end, text in _hunks(old, new):
        found.update((at, "-", old[at]) for at in range(start, end))
        found.update((start, "+", sign) for sign in text)
    return found


def _hunks(old: str, new: str) -> list[Change]:
    """Words that differ, in the lines that differ."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    found, at = [], 0
    starts = [0]
    for line in before:
        at += len(line)
        starts.append(at)
    for tag, low, high, new_low, new_high in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        one, two = (
            re.findall(r"\w+|\s|[^\w\s]", "".join(part)) for part in (before[low:high], after[new_low:new_high])
        )
        place = starts[low]
        for kind, a, b, c, d in SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
            size = sum(map(len, one[a:b]))
            if kind != "equal":
                found.append((place, place + size, "".join(two[c:d])))
            place += size
    return found
