"""Which lines of a window hold what the last edits replaced."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from codespec.edits.formats import Change, WindowPrompt
from codespec.edits.formats.replaced import WORDS, Added, Replaced, added, arguments, called, difference, places
from codespec.languages import by_id
from codespec.syntax.uses import Use, Uses
from codespec.text_difference import changes

Mark = Literal["*", "~", ""]

_MARKS: dict[Use, Mark] = {"same": "*", "other": "~", "no": ""}
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_CALLED = re.compile(r"\b(\w+)\(")


class Told(NamedTuple):
    """What an edit says of others like it.

    Attributes:
        what: it replaced, or put in.
        key: the word by which lines like it are known: the one that it replaced, or a function with other arguments or
            something behind its calls; empty where there is none.
        path, line, column: where it stands.
    """

    what: Replaced | Added
    key: str
    path: str
    line: int
    column: int


def told_by(change: Change) -> Iterator[Told]:
    """What an edit of lines says of others."""
    old, new = lines_of(change.before), lines_of(change.after)
    if len(old) != len(new):
        return
    for index, (before, after) in enumerate(zip(old, new, strict=True)):
        more = added(before, after)
        if more is not None:
            yield Told(more, more.function, change.path, change.line + index, 0)
            continue
        for pair, column in _pairs(before, after):
            yield Told(pair, _key(pair, after[:column]), change.path, change.line + index, column)


def _key(pair: Replaced, ahead: str) -> str:
    if _IDENTIFIER.fullmatch(pair.old):
        return pair.old
    match = _CALLED.search(pair.old)
    return match[1] if match else called(ahead, behind=True)


def _pairs(before: str, after: str) -> Iterator[tuple[Replaced, int]]:
    """The words that were replaced one by one, else the one piece that was, and where they stand now."""
    old, new = WORDS.findall(before), WORDS.findall(after)
    found = changes(old, new)
    if all(b - a == d - c == 1 for a, b, c, d in found):
        for a, _, c, _ in found:
            yield Replaced(old[a], new[c]), len("".join(new[:c]))
        return
    pair = difference(before, after)
    if pair is not None:
        yield pair, len("".join(new[: found[0][2]]))


def marks(prompt: WindowPrompt, told: Iterable[Told]) -> list[Mark]:
    """A mark for each line of the window."""
    lines = lines_of(prompt.window)
    found: list[Mark] = ["" for _ in lines]
    keys = {each.key or str(each.what[0]): each for each in told}  # the last edit of a word counts
    uses: Uses | None = None
    text = prompt.before + prompt.window + prompt.after
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    for key, each in keys.items():
        if not each.key and not re.search(r"\w", key):
            continue  # a bracket stands everywhere
        held = [(at, len(prompt.before) + place) for at, place in _held(prompt.window, key)
                if not _done(lines[at], each)]  # fmt: skip
        kinds: list[Use] = ["same" for _ in held]
        if held and each.key:
            uses = uses or Uses(by_id(prompt.language), text)
            renamed = each.key == each.what[0] and each.path == prompt.path and isinstance(each.what, Replaced)
            edited = starts[each.line] + each.column if renamed and 0 <= each.line < len(starts) else None
            kinds = uses.of([place for _, place in held], len(key), edited)
        for (line, _), kind in zip(held, kinds, strict=True):
            found[line] = max(found[line], _MARKS[kind], key=["", "~", "*"].index)
    return found


def _done(line: str, told: Told) -> bool:
    """Whether a line has what an edit put in there."""
    if isinstance(told.what, Added):
        word = _IDENTIFIER.search(told.what.argument)
        calls = arguments(line, told.key)
        return not calls or (word is not None and any(places(line[start:end], word[0]) for start, end in calls))
    return told.key != told.what.old and bool(told.what.new.strip()) and told.what.new in line


def _held(window: str, key: str) -> Iterator[tuple[int, int]]:
    """The lines that hold a word, with its offset in the window."""
    start = 0
    for at, line in enumerate(lines_of(window)):
        for place in places(line, key):
            yield at, start + place
        start += len(line)


def lines_of(text: str) -> list[str]:
    """The lines of a text, each with an end."""
    return [line + "\n" for line in text.removesuffix("\n").split("\n")]


def closed(text: str) -> str:
    """A text with an end of its last line, if it has lines."""
    return text if not text or text.endswith("\n") else text + "\n"
