"""Zeta's first layout: an instruction, edits as diffs, and a region between two names that are text, not tokens.

Source: ``zeta1`` in Zed's crate ``zeta_prompt``.
"""

from __future__ import annotations

from codespec.edits.formats import PromptParts, WindowPrompt, cut, new_window
from codespec.edits.formats.diffs import beginning_of, end_of, unified

CURSOR = "<|user_cursor_is_here|>"
START_OF_FILE = "<|start_of_file|>"
START, END = "<|editable_region_start|>", "<|editable_region_end|>"

CONTEXT = 1_000
"""Characters on each side of the window that are shown."""

_INSTRUCTION = (
    "### Instruction:\n"
    "You are a code completion assistant and your task is to analyze user edits and then rewrite an excerpt that the "
    "user provides, suggesting the appropriate edits within the excerpt, taking into account the cursor location.\n\n"
    "### User Edits:\n\n"
)


class Zeta1:
    """The layout of Zeta, version 1."""

    name = "zeta 1"
    stop = (END, "<|endoftext|>", "<|im_end|>")
    reserved = (CURSOR, START_OF_FILE, START, END)
    around = (10, 10)

    def prompt(self, prompt: WindowPrompt) -> PromptParts:
        """The instruction, the edits, the excerpt, and whose turn it is."""
        edits = "\n\n".join(f"User edited {each.path}:\n```diff\n{unified(each)}\n```" for each in prompt.recent)
        above = end_of(prompt.before, CONTEXT)
        top = f"{START_OF_FILE}\n" if above == prompt.before else ""
        region, rest = _region(prompt)
        shown = region[: prompt.cursor] + CURSOR + region[prompt.cursor :]
        excerpt = f"```{prompt.path}\n{top}{above}{START}\n{shown}\n{END}{rest}\n```"
        return (f"{_INSTRUCTION}{edits}\n\n### User Excerpt:\n\n{excerpt}\n\n### Response:\n",)

    def unchanged(self, prompt: WindowPrompt) -> str:
        """The region between its names."""
        return f"{START}\n{_region(prompt)[0]}\n{END}"

    def read(self, text: str, prompt: WindowPrompt) -> str | None:
        """What stands between the names."""
        _, found, inside = text.partition(START)
        return new_window(
            cut(inside if found else text, self.stop).removeprefix("\n").replace(CURSOR, ""), prompt.window
        )


def _region(prompt: WindowPrompt) -> tuple[str, str]:
    """The window, which ends with its last line, the empty one at the end of a file included; and what follows it."""
    if not prompt.after:
        return prompt.window, ""
    return prompt.window.removesuffix("\n"), "\n" + beginning_of(prompt.after, CONTEXT)
