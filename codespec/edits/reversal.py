"""Whether an edit undoes what the user has just done: takes away what was typed, or brings back what was deleted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from codespec.edits.difference import Hunk, whole_words, word_hunks
from codespec.edits.lines import lines_of
from codespec.edits.request import RecentEdit

_WORD = re.compile(r"\w+")
_SIGN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class Done:
    """What one edit of the user did to a document as it is now.

    Attributes:
        start, end: of the lines that were changed, in characters.
        put_in: start and end of what was put in, in whole words.
        taken: where something was only taken away, and what.
        more, fewer: the words of these lines that there are more and fewer of than before.
    """

    start: int
    end: int
    put_in: tuple[tuple[int, int], ...]
    taken: tuple[tuple[int, str], ...]
    more: frozenset[str]
    fewer: frozenset[str]


def done(text: str, path: str, recent: Iterable[RecentEdit]) -> list[Done]:
    """What the recent edits of a document did; those whose lines stand there no more are left out."""
    lines = lines_of(text)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    found = []
    for edit in recent:
        after = lines_of(edit.after)
        if edit.path == path and edit.line < len(starts) and lines[edit.line : edit.line + len(after)] == after:
            found.append(_done(edit, starts[edit.line]))
    return found


def _done(edit: RecentEdit, base: int) -> Done:
    put_in, taken, shift = [], [], 0
    for hunk in word_hunks(edit.before, edit.after):
        start = base + hunk.start + shift
        if hunk.text:
            put_in.append((start, start + len(hunk.text)))
        gone = edit.before[hunk.start : hunk.end]
        if gone.strip():
            taken.append((start, gone))
        shift += len(hunk.text) - len(gone)
    before, now = Counter(_WORD.findall(edit.before)), Counter(_WORD.findall(edit.after))
    return Done(
        base, base + len(edit.after), tuple(put_in), tuple(taken), frozenset(now - before), frozenset(before - now)
    )


def undoes(changes: Sequence[Hunk], text: str, own: Iterable[Done], swapped: Iterable[tuple[str, str]]) -> bool:
    """Whether any of ``changes`` to ``text`` undoes what was done.

    Args:
        own: what the user did in this document.
        swapped: words that the user replaced, and by what, in any document.
    """
    back = {(new, old) for old, new in swapped}
    if any(_whole_words(change, text) in back for change in changes):
        return True
    for part in own:
        near = [each for each in changes if each.start <= part.end and each.end >= part.start]
        if any(_takes_away(each, part, text) or _brings_back(each, part) for each in near):
            return True
        if near and _words_undone(near, part, text):
            return True
    return False


def without_repeats(changes: Sequence[Hunk], text: str, own: Sequence[Done]) -> list[Hunk]:
    """The changes but for those that put in once more, in the same lines, what the user has just put in there: all of
    one line go together."""
    repeated = {line for change in changes if (line := _repeated_in(change, text, own)) is not None}
    return [each for each in changes if text.count("\n", 0, each.start) not in repeated]


def _repeated_in(change: Hunk, text: str, own: Sequence[Done]) -> int | None:
    """The line of a change that repeats; None where it does not."""
    for part in own:
        come = {text[start:end].strip() for start, end in part.put_in} - {""}
        inside = part.start <= change.start <= part.end
        if inside and change.start == change.end and change.text.strip() in come:
            return text.count("\n", 0, change.start)
    return None


def swaps(recent: Iterable[RecentEdit]) -> set[tuple[str, str]]:
    """The words that were replaced, each with what replaced it."""
    found = set()
    for edit in recent:
        for hunk in word_hunks(edit.before, edit.after):
            old, new = edit.before[hunk.start : hunk.end].strip(), hunk.text.strip()
            if old and new:
                found.add((old, new))
    return found


def _takes_away(change: Hunk, part: Done, text: str) -> bool:
    """Whether something goes that was put in."""
    for start, end in part.put_in:
        low, high = max(change.start, start), min(change.end, end)
        if low < high and text[low:high].strip():
            return True
    return False


def _brings_back(change: Hunk, part: Done) -> bool:
    """Whether what was taken away comes back where it stood."""
    for place, gone in part.taken:
        if change.start <= place <= change.end and _holds(_SIGN.findall(change.text), _SIGN.findall(gone)):
            return True
    return False


def _holds(words: list[str], part: list[str]) -> bool:
    return any(words[at : at + len(part)] == part for at in range(len(words) - len(part) + 1))


def _words_undone(near: Sequence[Hunk], part: Done, text: str) -> bool:
    """Whether the lines have fewer of the words that the user put in, or more of those that were taken away: words
    that are joined with others count, too."""
    low = text.rfind("\n", 0, min(part.start, near[0].start)) + 1
    high = text.find("\n", max(part.end, near[-1].end))
    high = high if high >= 0 else len(text)
    was = Counter(_WORD.findall(text[low:high]))
    will = Counter(_WORD.findall("".join(_applied(text, low, high, near))))
    return any(will[word] < was[word] for word in part.more) or any(will[word] > was[word] for word in part.fewer)


def _applied(text: str, low: int, high: int, changes: Iterable[Hunk]) -> Iterator[str]:
    for change in changes:
        yield text[low : change.start]
        yield change.text
        low = change.end
    yield text[low:high]


def _whole_words(change: Hunk, text: str) -> tuple[str, str]:
    """What is replaced and what by, with the rest of the words at both ends."""
    low, high = whole_words(text, change.start, change.end)
    return text[low:high].strip(), (text[low : change.start] + change.text + text[change.end : high]).strip()
