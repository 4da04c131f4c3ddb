"""The text after the cursor as it may become: with its brackets in pairs, where those of other lines are not yet.

Who writes a file from its beginning to its end leaves blocks open above the cursor, and who changes one has signs after
it whose beginning is gone. No text at the cursor should be made to mend that.
"""

from __future__ import annotations

from collections.abc import Sequence

from codespec.completion.ending.tidy import BALANCED, DATA
from codespec.languages import Language
from codespec.syntax.brackets import OPENERS


def mended(text: str, offset: int, brackets: Sequence[tuple[int, str]], language: Language) -> str | None:
    """What follows ``offset`` with the closing brackets that other lines than the cursor's want, and up to the line of
    one that closes nothing.

    Args:
        brackets: those in the code of ``text``.

    Returns:
        None where brackets are in pairs, but for those that the cursor's line opens; where one that closes nothing
        stands before the cursor, or so near behind it that the text may be what it belongs to; and for data, which
        always has to be whole.
    """
    if language.id not in BALANCED - DATA:
        return None
    end = len(text)
    line = text.rfind("\n", 0, offset) + 1
    waiting: list[tuple[str, int]] = []  # closing signs, and where they were opened
    parts, done = [], offset
    for at, sign in brackets:
        if sign in OPENERS:
            waiting.append((OPENERS[sign], at))
            continue
        if not any(closer == sign for closer, _ in reversed(waiting)) or (at < offset and waiting[-1][0] != sign):
            end = text.rfind("\n", offset, at) + 1
            if not text[offset:end].partition("\n")[2].strip():
                return None
            break
        missing = ""
        while waiting[-1][0] != sign:
            closer, opened = waiting.pop()
            missing += "" if line <= opened < offset else closer
        waiting.pop()
        if missing:
            parts += [text[done:at], missing]
            done = at
    at_the_end = "".join(closer for closer, opened in reversed(waiting) if not line <= opened < offset and opened < end)
    if not parts and not at_the_end and end == len(text):
        return None
    return "".join((*parts, text[done:end], f"\n{at_the_end}" if at_the_end else ""))
