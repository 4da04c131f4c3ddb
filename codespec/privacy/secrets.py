"""Files that hold secrets, told by their names and by their texts; see ``docs/privacy.md``."""

from __future__ import annotations

import re

from codespec.privacy.assignments import holds_manifest, holds_value
from codespec.privacy.budget import private_when_spent
from codespec.privacy.rules import holds_named_token, holds_token
from codespec.privacy.secret_names import has_secret_name

__all__ = ["SECRET", "has_secret_name", "holds_key", "holds_manifest", "holds_token", "is_secret"]

SECRET = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\bAKIA[0-9A-Z]{16}\b|\bghp_[A-Za-z0-9]{36}\b|\bxox[bp]-[0-9A-Za-z-]{20,}"
)
"""Keys that no training text may hold. The forms are fixed, so that the same texts are chosen again."""

_MARKS = ("PRIVATE KEY-----", "AKIA", "ghp_", "xox")
"""All that ``SECRET`` finds holds one of these; looking for them first is twenty times as fast."""


@private_when_spent
def is_secret(path: str, text: str) -> bool:
    """Whether a file may hold secrets, as far as its name (or URI) and its text tell: good enough a reason to keep its
    text off the disk and out of what is shown for another file. A text that is not searched in time counts as one."""
    return has_secret_name(path) or holds_token(text) or holds_named_token(text) or holds_value(path, text)


def holds_key(text: str) -> bool:
    """Whether a text holds a key of the forms of ``SECRET``."""
    return any(mark in text for mark in _MARKS) and bool(SECRET.search(text))
