"""A window of which the model had time for a part."""

from __future__ import annotations

from difflib import SequenceMatcher

from codespec.edits.lines import lines_of

LEAST = 3
"""Lines that are as they were, after which the rest is taken to be, too."""


def completed(part: str, window: str) -> str | None:
    """The new window that begins with the lines of ``part``; None where they have not come back to the old one."""
    old, new = lines_of(window), lines_of(part)
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()[:-1]
    if not blocks:
        return None
    last = blocks[-1]
    if last.size < LEAST or last.b + last.size < len(new):
        return None
    found = "".join([*new, *old[last.a + last.size :]])
    return found if found != window else None
