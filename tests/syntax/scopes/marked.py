"""Documents in which the uses of a name are marked."""

import re

from codespec.languages import by_id
from codespec.syntax.scopes.renaming import Uses, still_called


def uses(language: str, text: str, old: str, new: str) -> Uses:
    """Where ``old`` still stands, when it was replaced wherever ``new`` does."""
    places = [match.start() for match in re.finditer(rf"\b{new}\b", text)]
    return still_called(by_id(language), text, places, old, new)


def check(language: str, marked: str, old: str, new: str) -> None:
    """The uses in angle brackets, and no others, stand for the same thing; all others may stand for another."""
    text = marked.replace(f"<{old}>", old)
    wanted = [match.start() - 2 * index for index, match in enumerate(re.finditer(f"<{old}>", marked))]
    found = uses(language, text, old, new)
    assert [each.start for each in found.same] == wanted
    assert not set(found.other) & set(wanted)
