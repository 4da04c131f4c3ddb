"""What the embedded model meant where it misspells what it repeats: a small model loses a long name half way."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

from codespec.edits.formats.replaced import Added, Replaced, places

_NAME = re.compile(r"[^\W\d]\w*")


def replaced(said: Replaced, told: Iterable[Replaced | Added]) -> Replaced:
    """The replacement that an edit told of the same piece, unless what is said holds it."""
    for each in told:
        if isinstance(each, Replaced) and each.old == said.old and _NAME.search(each.old):
            return said if each.new in said.new else each
    return said


def added(said: Added, told: Iterable[Replaced | Added]) -> Added:
    """The argument that an edit told of the same function, with its type or value or without, unless what is said
    holds its name."""
    for each in told:
        name = _NAME.search(each.argument) if isinstance(each, Added) and each.function == said.function else None
        if name is not None and isinstance(each, Added):
            forms = (name[0], each.argument, f"{name[0]}={name[0]}")
            if places(said.argument, name[0]):
                return said
            return said._replace(argument=max(forms, key=lambda form: _alike(form, said.argument)))
    return said


def _alike(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()
