"""Sweep's next-edit layouts: version 1 (0.5B to 3B) and version 2 (7B).

Sources: ``run_model.py`` beside sweepai/sweep-next-edit-1.5B, ``inference.py`` beside sweepai/sweep-next-edit-v2-7B.
"""

from __future__ import annotations

from codespec.edits.formats import Change, Marker, PromptParts, WindowPrompt, cut, new_window
from codespec.edits.lines import lines_of

SEPARATOR = Marker("<|file_sep|>")
CURSOR = "<|cursor|>"
"""Letters, not a token: the model's vocabulary has none of this name."""

CONTEXT_LINES = 150
"""Lines on each side of the cursor that version 2 shows of the document."""


class SweepV1:
    """The layout of sweep-next-edit 0.5B, 1.5B and 3B."""

    name = "sweep"
    stop = ("<|file_sep|>", "<|endoftext|>", "</s>")
    reserved = ()
    around = (10, 10)

    def prompt(self, prompt: WindowPrompt) -> PromptParts:
        """Other files, recent edits, the window before the last edit, the window now, and whose turn it is."""
        parts: list[Marker | str] = []
        for snippet in prompt.snippets:
            parts += [SEPARATOR, f"{snippet.path}\n{_bare(snippet.text)}\n"]
        for change in prompt.recent:
            parts += [SEPARATOR, f"{change.path}.diff\n{_difference(change)}\n"]
        original = prompt.original or prompt.window
        parts += [SEPARATOR, f"original/{prompt.path}\n{_bare(original)}\n"]
        parts += [SEPARATOR, f"current/{prompt.path}\n{_bare(prompt.window)}\n"]
        return (*parts, SEPARATOR, f"updated/{prompt.path}")

    def unchanged(self, prompt: WindowPrompt) -> str:
        """The prompt ends before the end of the line."""
        return "\n" + prompt.window

    def read(self, text: str, prompt: WindowPrompt) -> str | None:
        """The text behind the first end of a line."""
        return new_window(cut(text, self.stop).removeprefix("\n"), prompt.window)


class SweepV2:
    """The layout of sweep-next-edit-v2-7B: lines are numbered, the cursor is shown, and what precedes it is given."""

    name = "sweep 2"
    stop = (
        "<|endoftext|>", "<|file_sep|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
        "<|repo_name|>", "<|im_start|>", "<|im_end|>",
    )  # fmt: skip
    reserved = (CURSOR,)
    around = (10, 10)

    def prompt(self, prompt: WindowPrompt) -> PromptParts:
        """The document around the cursor, other files, recent edits, the window before and now, and what is given."""
        place = f"{prompt.path}:{prompt.line + 1}:{prompt.line + len(lines_of(prompt.window))}"
        parts: list[Marker | str] = [SEPARATOR, f"{prompt.path}\n{_around(prompt)}"]
        for snippet in prompt.snippets:
            parts += ["\n", SEPARATOR, f"{snippet.path}\n{snippet.text}\n"]
        for change in prompt.recent or ("",):
            parts.append("\n")
            if not isinstance(change, str):
                parts += [SEPARATOR, f"{change.path}:{_lines(change)}\n{_difference(change)}"]
        shown = prompt.window[: prompt.cursor] + CURSOR + prompt.window[prompt.cursor :]
        parts += ["\n", SEPARATOR, f"original/{place}\n{prompt.original or prompt.window}\n"]
        parts += [SEPARATOR, f"current/{place}\n{shown}\n"]
        return (*parts, SEPARATOR, f"updated/{place}\n{_given(prompt)}")

    def unchanged(self, prompt: WindowPrompt) -> str:
        """The window from the cursor's line on."""
        return prompt.window[len(_given(prompt)) :]

    def read(self, text: str, prompt: WindowPrompt) -> str | None:
        """The lines above the cursor's, and the text."""
        return new_window(_given(prompt) + cut(text, self.stop), prompt.window)


def _bare(text: str) -> str:
    return text.rstrip("\n")


def _difference(change: Change) -> str:
    above, below = change.context_before, change.context_after
    before, after = (_bare(above + _closed(each, below) + below) for each in (change.before, change.after))
    return f"original:\n{before}\nupdated:\n{after}"


def _closed(text: str, below: str) -> str:
    return text + "\n" if text and below and not text.endswith("\n") else text


def _lines(change: Change) -> str:
    first = change.line - change.context_before.count("\n")
    after = change.context_before + _closed(change.after, change.context_after) + change.context_after
    return f"{first + 1}:{first + max(1, len(lines_of(after)))}"


def _given(prompt: WindowPrompt) -> str:
    return prompt.window[: prompt.window.rfind("\n", 0, prompt.cursor) + 1]


def _around(prompt: WindowPrompt) -> str:
    above = prompt.window[: prompt.cursor].count("\n")
    before = lines_of(prompt.before)
    lines = [*before, *lines_of(prompt.window), *lines_of(prompt.after)]
    at = len(before) + above
    return "".join(lines[max(0, at - CONTEXT_LINES) : at + CONTEXT_LINES])
