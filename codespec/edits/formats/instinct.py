"""Instinct's layout: a chat, in which the region to be written anew lies between two names that are text, not tokens.

Source: ``core/nextEdit`` of continuedev/continue (``constants.ts``, ``templating/instinct.ts`` and
``templating/NextEditPromptEngine.ts``), Apache License 2.0; the words of ``SYSTEM`` and ``TASK`` are its authors'.
"""

from __future__ import annotations

from collections.abc import Iterator

from codespec.edits.formats import Marker, PromptParts, WindowPrompt, cut, new_window
from codespec.edits.formats.diffs import unified

CURSOR = "<|user_cursor_is_here|>"
START, END = "<|editable_region_start|>", "<|editable_region_end|>"
FILE, SNIPPET = "<|context_file|>", "<|snippet|>"
TURN, OVER = Marker("<|im_start|>"), Marker("<|im_end|>")
LINES = 25
"""That are shown on each side of the cursor."""

SYSTEM = """\
You are Instinct, an intelligent next-edit predictor developed by Continue.dev. Your role as an AI agent is to help \
developers complete their code tasks by predicting the next edit that they will make within the section of code \
marked by <|editable_region_start|> and <|editable_region_end|> tags.

You have access to the following information to help you make informed suggestions:

- Context: In the section marked "### Context", there are context items from potentially relevant files in the \
developer's codebase. Each context item consists of a <|context_file|> marker, the filepath, a <|snippet|> marker, \
and then some content from that file, in that order. Keep in mind that not all of the context information may be \
relevant to the task, so use your judgement to determine which parts to consider.
- User Edits: In the section marked "### User Edits:", there is a record of the most recent changes made to the \
code, helping you understand the evolution of the code and the developer's intentions. These changes are listed \
from most recent to least recent. It's possible that some of the edit diff history is entirely irrelevant to the \
developer's change. The changes are provided in a unified line-diff format, i.e. with pluses and minuses for \
additions and deletions to the code.
- User Excerpt: In the section marked "### User Excerpt:", there is a filepath to the developer's current file, and \
then an excerpt from that file. The <|editable_region_start|> and <|editable_region_end|> markers are within this \
excerpt. Your job is to rewrite only this editable region, not the whole excerpt. The excerpt provides additional \
context on the surroundings of the developer's edit.
- Cursor Position: Within the user excerpt's editable region, the <|user_cursor_is_here|> flag indicates where the \
developer's cursor is currently located, which can be crucial for understanding what part of the code they are \
focusing on. Do not produce this marker in your output; simply take it into account.

Your task is to predict and complete the changes the developer would have made next in the editable region. The \
developer may have stopped in the middle of typing. Your goal is to keep the developer on the path that you think \
they're following. Some examples include further implementing a class, method, or variable, or improving the \
quality of the code. Make sure the developer doesn't get distracted by ensuring your suggestion is relevant. \
Consider what changes need to be made next, if any. If you think changes should be made, ask yourself if this is \
truly what needs to happen. If you are confident about it, then proceed with the changes.

# Steps

1. **Review Context**: Analyze the context from the resources provided, such as recently viewed snippets, edit \
history, surrounding code, and cursor location.
2. **Evaluate Current Code**: Determine if the current code within the tags requires any corrections or \
enhancements.
3. **Suggest Edits**: If changes are required, ensure they align with the developer's patterns and improve code \
quality.
4. **Maintain Consistency**: Ensure indentation and formatting follow the existing code style.

# Output Format

- Provide only the revised code within the tags. Do not include the tags in your output.
- Ensure that you do not output duplicate code that exists outside of these tags.
- Avoid undoing or reverting the developer's last change unless there are obvious typos or errors."""

TASK = """\
Reference the user excerpt, user edits, and the snippets to understand the developer's intent. Update the editable \
region of the user excerpt by predicting and completing the changes they would have made next. This may be a deletion, \
addition, or modification of code."""


class Instinct:
    """The layout of Instinct."""

    name = "instinct"
    stop = ("<|im_end|>", "<|endoftext|>", END)
    reserved = (CURSOR, START, END)
    around = (1, 5)

    def prompt(self, prompt: WindowPrompt) -> PromptParts:
        """What the model is, and the task: other files, edits, the most recent first, and the excerpt."""
        context = "\n\n".join(f"{FILE}: {each.path}\n{SNIPPET}\n{each.text.rstrip()}" for each in prompt.snippets)
        edits = "\n".join(_edits(prompt))
        task = (
            f"{TASK}\n\n### Context:\n{context}\n\n### User Edits:\n\n{edits}\n\n"
            f"### User Excerpt:\n{prompt.path}\n\n{_excerpt(prompt)}```\n### Response:"
        )
        return (TURN, f"system\n{SYSTEM}", OVER, "\n", TURN, f"user\n{task}", OVER, "\n", TURN, "assistant\n")

    def unchanged(self, prompt: WindowPrompt) -> str:
        """What the model writes where it changes nothing: the window without its last line break."""
        return prompt.window.removesuffix("\n")

    def read(self, text: str, prompt: WindowPrompt) -> str | None:
        """The window as the model wrote it, without markers; None where it is empty or the old one."""
        found = cut(text, self.stop).removeprefix(f"{START}\n").replace(CURSOR, "")
        return new_window(found, prompt.window)


def _edits(prompt: WindowPrompt) -> Iterator[str]:
    for change in reversed(prompt.recent):
        # Its authors leave out blank lines, and those that look like the header of a diff.
        lines = [line for line in unified(change).split("\n") if line.strip() and line[:3] not in ("---", "+++")]
        yield "\n".join([f'User edited file "{change.path}"', "", "```diff", *lines, "```"])


def _excerpt(prompt: WindowPrompt) -> str:
    window = (prompt.window[: prompt.cursor] + CURSOR + prompt.window[prompt.cursor :]).removesuffix("\n")
    row = prompt.window.count("\n", 0, prompt.cursor)
    below = LINES - (window.count("\n") - row)
    above = prompt.before.split("\n")[:-1][-max(1, LINES - row) :] if row < LINES else []
    after = prompt.after.split("\n")[: max(0, below)]
    return "\n".join([*above, START, *window.split("\n"), END, *(after if prompt.after else [])])
