"""Zeta 2 and 2.1: Seed-Coder's suffix-prefix-middle order, the window between conflict marks, or cut by numbered ones.

Source: ``seed_coder`` and ``multi_region`` (version 0318) in Zed's crate ``zeta_prompt``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from codespec.edits.formats import Marker, PromptParts, WindowPrompt, cut, new_window
from codespec.edits.formats.diffs import beginning_of, end_of, unified
from codespec.edits.lines import lines_of

SUFFIX, PREFIX, MIDDLE = Marker("<[fim-suffix]>"), Marker("<[fim-prefix]>"), Marker("<[fim-middle]>")
FILE = Marker("<filename>")
CURSOR = "<|user_cursor|>"
CURRENT, SEPARATOR, UPDATED = "<<<<<<< CURRENT\n", "=======\n", ">>>>>>> UPDATED"
NO_EDITS = "NO_EDITS"
END = "<[end▁of▁sentence]>"

CONTEXT = 240
"""Characters on each side of the window: the models were trained with about as much."""
CHANGES = 6
"""Edits that the models were trained with."""
LEAST_LINES, MOST_LINES, NUDGE = 6, 16, 5
"""Of a block between two marks, and how far one is moved to a better first line."""

_MARK = re.compile(r"<\|marker_(\d+)\|>")


class Zeta2:
    """The layout of Zeta 2: the whole window is written anew."""

    name = "zeta 2"
    stop = (UPDATED, END)
    reserved = (CURSOR, CURRENT, f"\n{SEPARATOR}", UPDATED)
    around = (12, 12)

    def prompt(self, prompt: WindowPrompt) -> PromptParts:
        """What follows the window, other files, edits, what precedes the window, and the window."""
        return _around(prompt, f"{CURRENT}{_ended(_with_cursor(prompt))}{SEPARATOR}")

    def unchanged(self, prompt: WindowPrompt) -> str:
        """What the model writes where it changes nothing: the window and the marker of its end."""
        return _ended(prompt.window) + UPDATED

    def read(self, text: str, prompt: WindowPrompt) -> str | None:
        """The window as the model wrote it, without markers; None for ``NO_EDITS`` or the old one."""
        found = cut(text, self.stop).replace(CURSOR, "")
        return None if found.strip() == NO_EDITS else new_window(found, prompt.window)


class Zeta21:
    """The layout of Zeta 2.1: the window is cut into blocks, and those that change are written anew."""

    name = "zeta 2.1"
    stop = (END,)
    reserved = (CURSOR, "<|marker_", END)
    around = (15, 15)

    def prompt(self, prompt: WindowPrompt) -> PromptParts:
        """As ``Zeta2``, with marks in the window."""
        marks = borders(prompt.window)
        marked, placed = "", False
        for number, (start, end) in enumerate(zip(marks, [*marks[1:], None], strict=True), 1):
            block = prompt.window[start:end] if end is not None else ""
            if not placed and end is not None and start <= prompt.cursor <= end:
                block, placed = block[: prompt.cursor - start] + CURSOR + block[prompt.cursor - start :], True
            marked += f"<|marker_{number}|>{block}"
        return _around(prompt, _ended(marked))

    def unchanged(self, prompt: WindowPrompt) -> str:
        """All blocks between their marks: what comes is a part of it, mostly."""
        marks = borders(prompt.window)
        pairs = enumerate(zip(marks, [*marks[1:], marks[-1]], strict=True), 1)
        return "".join(f"<|marker_{number}|>{prompt.window[start:end]}" for number, (start, end) in pairs)

    def read(self, text: str, prompt: WindowPrompt) -> str | None:
        """The window with the blocks from the first mark to the last as they were written; one mark twice is none."""
        text = cut(text, self.stop).replace(CURSOR, "")
        found = list(_MARK.finditer(text))
        marks = borders(prompt.window)
        numbers = [int(each[1]) - 1 for each in found]
        if len(found) < 2 or not 0 <= numbers[0] < numbers[-1] < len(marks):
            return None
        inside = _MARK.sub("", text[found[0].end() : found[-1].start()])
        window = prompt.window
        return new_window(window[: marks[numbers[0]]] + inside + window[marks[numbers[-1]] :], window)


def borders(window: str) -> list[int]:
    """Where the marks stand, in characters: at both ends, before a line behind blank ones, or where a block is long."""
    if not window:
        return [0, 0]
    lines = [line.strip() for line in lines_of(window)]
    starts = [0]
    for line in lines_of(window):
        starts.append(starts[-1] + len(line))
    found, last, at = [0], 0, 0
    while at < len(lines):
        target = _target(lines, at, at - last)
        if target is not None and starts[target] > found[-1]:
            found.append(starts[target])
            last, at = target, target
        at += 1
    return found if found[-1] == len(window) else [*found, len(window)]


def _target(lines: list[str], at: int, size: int) -> int | None:
    """The line that a block of ``size`` lines ends before; None where it goes on."""
    if size >= LEAST_LINES and lines[at] and at and not lines[at - 1]:
        target = _good_start(lines, at)
        if len(lines) - target >= LEAST_LINES:
            return target
    return _good_start(lines, at) if size >= MOST_LINES else None


def _good_start(lines: list[str], at: int) -> int:
    """The next line that is more than the end of something; ``at`` where that is far."""
    near = range(at, min(len(lines), at + NUDGE))
    return next((each for each in near if lines[each] and not _is_tail(lines[each])), at)


def _is_tail(line: str) -> bool:
    return line[0] in "}])" or line.rstrip(";") in ("break", "continue", "return", "throw", "end")


def _around(prompt: WindowPrompt, window: str) -> PromptParts:
    parts: list[Marker | str] = [SUFFIX, _ended(beginning_of(prompt.after, CONTEXT)), PREFIX]
    for snippet in prompt.snippets:
        parts += [FILE, f"{snippet.path}\n{_ended(snippet.text)}"]
    if prompt.snippets:
        parts.append("\n")
    events = "".join(_events(prompt))
    if events:
        parts += [FILE, f"edit_history\n{events}\n"]
    return (*parts, FILE, f"{prompt.path}\n{end_of(prompt.before, CONTEXT)}{window}", MIDDLE)


def _events(prompt: WindowPrompt) -> Iterator[str]:
    for change in list(prompt.recent)[-CHANGES:]:
        path = change.path.lstrip("/")
        yield f"--- a/{path}\n+++ b/{path}\n{unified(change)}"


def _with_cursor(prompt: WindowPrompt) -> str:
    return prompt.window[: prompt.cursor] + CURSOR + prompt.window[prompt.cursor :]


def _ended(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"
