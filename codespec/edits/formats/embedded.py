"""The embedded model's layout: Sweep's frame, in which the model says of each line of the window what becomes of it.

A model of ten million parameters that copies two hundred tokens right to change three of them gets one of the others
wrong. It says which lines change, and what in them; and it is told which lines hold what the last edits replaced.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import PurePosixPath
from string import ascii_uppercase

from codespec.edits.formats import Change, Marker, PromptParts, WindowPrompt, cut, spelling
from codespec.edits.formats.marks import Told, closed, lines_of, marks, told_by
from codespec.edits.formats.replaced import Added, Replaced, added, difference, replace, with_argument
from codespec.edits.formats.sweep import SEPARATOR

CHANGES = 3
"""Recent edits that the model has learnt to read."""

CHANGED_LINES = 8
"""Of each of them, before and after."""

LABELS = ascii_uppercase
"""Of the lines of a window, and of what stands behind the last: each with a blank before it is one token."""

_LINE = re.compile(r" ([A-Z])([:(+!]?)\n")


class Embedded:
    """The layout of the embedded model.

    A prompt::

        <|file_sep|>a.py.diff
        original:
        def f(count):
        updated:
        def f(total):
        :
        count
        total
        <|file_sep|>current/a.py
        def f(total): A
            return count B*
        <|file_sep|>updated/a.py

    ``*`` marks lines that use the name that was replaced, ``~`` those that use another one of its letters.
    The answer goes through the lines: `` A`` where nothing changes, `` B:`` and two lines that say what is replaced by
    what, `` B(`` and two that name a function and one more argument, `` B+`` and a line that is put in before it,
    `` B!`` where it goes.
    """

    name = "codespec edit"
    stop = ("<|endoftext|>", "<|file_sep|>")
    reserved = ()
    around = (10, 10)

    def prompt(self, prompt: WindowPrompt) -> PromptParts:
        """Recent edits that are short, the labelled window, and whose turn it is."""
        file = _name(prompt.path)
        parts: list[Marker | str] = []
        told: list[Told] = []
        for change in _shown(prompt):
            before, after = closed(change.before), closed(change.after)
            found = list(told_by(change))
            told += found
            pairs = "".join(map(_said, dict.fromkeys(each.what for each in found)))
            parts += [SEPARATOR, f"{_name(change.path)}.diff\noriginal:\n{before}updated:\n{after}{pairs}"]
        lines = zip(lines_of(prompt.window), LABELS, marks(prompt, told), strict=False)
        window = "".join(f"{line[:-1]} {label}{mark}\n" for line, label, mark in lines)
        return (*parts, SEPARATOR, f"current/{file}\n{window}", SEPARATOR, f"updated/{file}\n")

    def unchanged(self, prompt: WindowPrompt) -> str:
        """The labels of all lines."""
        return written(lines_of(prompt.window), lines_of(prompt.window))

    def read(self, text: str, prompt: WindowPrompt) -> str | None:
        """The window with what the model said; None where it said nothing, or nothing that makes sense."""
        told = [each.what for change in reversed(_shown(prompt)) for each in told_by(change)]
        lines = changed(lines_of(prompt.window), cut(text, self.stop), told)
        updated = "".join(lines) if lines is not None else ""
        if not prompt.window.endswith("\n"):
            updated = updated.removesuffix("\n")
        return updated if updated.strip() and updated != prompt.window else None


def written(old: Sequence[str], new: Sequence[str]) -> str:
    """What the model is to write where the lines of a window become others."""
    steps: list[list[str]] = [[] for _ in range(len(old) + 1)]
    kept = [False] * len(old)
    for tag, start, end, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            kept[start:end] = [True] * (end - start)
            continue
        for index, (before, after) in enumerate(zip_longest(old[start:end], new[first:last])):
            at = min(start + index, end)
            label = LABELS[at]
            what = (added(before, after) or difference(before, after)) if before and after else None
            if what is not None:
                steps[at].append(f" {label}{_said(what)}")
            else:
                steps[at].append(f" {label}+\n{after}" if after else "")
                steps[at].append(f" {label}!\n" if before else "")
    for at, keep in enumerate(kept):
        steps[at].append(f" {LABELS[at]}\n" if keep else "")
    return "".join(map("".join, steps))


def changed(old: Sequence[str], text: str, told: Sequence[Replaced | Added] = ()) -> list[str] | None:
    """The lines that an answer makes of those of a window; None where it makes no sense.

    An answer that was cut off counts as far as it goes; what cannot be done to a line is not done.

    Args:
        told: what the edits before it said, the latest first: what the answer misspells of it is put right.
    """
    new: list[str] = []
    lines = [line + "\n" for line in text.split("\n")[:-1]]
    done = at = 0
    while at < len(lines):
        match = _LINE.fullmatch(lines[at])
        if match is None or len(lines) <= at + _ARGUMENTS[match[2]]:
            break
        label = LABELS.index(match[1])
        if not done <= label <= len(old) or (label == len(old) and match[2] != "+"):
            return None
        new += old[done:label]
        done = label
        arguments = lines[at + 1 : at + 1 + _ARGUMENTS[match[2]]]
        at += 1 + len(arguments)
        if match[2] == "+":
            new += arguments
            continue
        done += 1
        if match[2] in (":", "("):
            pair = arguments[0][:-1], arguments[1][:-1]
            if match[2] == ":":
                line = replace(old[label], spelling.replaced(Replaced(*pair), told))
            else:
                line = with_argument(old[label], spelling.added(Added(*pair), told))
            new.append(old[label] if line is None else line)
        elif not match[2]:
            new.append(old[label])
    return [*new, *old[done:]]


_ARGUMENTS = {"": 0, "!": 0, "+": 1, ":": 2, "(": 2}
"""Lines that follow, by what becomes of a line."""


def _said(what: Replaced | Added) -> str:
    return f"{':' if isinstance(what, Replaced) else '('}\n{what[0]}\n{what[1]}\n"


def _name(path: str) -> str:
    return PurePosixPath(path.replace("\\", "/")).name


def _shown(prompt: WindowPrompt) -> list[Change]:
    return [each for each in prompt.recent if _short(each)][-CHANGES:]


def _short(change: Change) -> bool:
    return max(change.before.count("\n"), change.after.count("\n")) <= CHANGED_LINES
