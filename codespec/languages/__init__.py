"""What codespec knows of each language: a row of ``table``, and where it needs code of its own a folder, which the row
names and nothing else imports.
"""

from __future__ import annotations

from pathlib import PurePath

from codespec.languages.language import Language, MadeEdits, load
from codespec.languages.table import LANGUAGES

__all__ = [
    "LANGUAGES", "PLAIN", "USUAL", "Language", "MadeEdits", "by_id", "by_path", "load", "output_name",
    "sharing_a_draft",
]  # fmt: skip

PLAIN = Language("plaintext", (), quotes=())
USUAL = "python"
"""The language whose draft is used for a text of which no language is said."""


def by_id(identifier: str) -> Language:
    """The language of an LSP identifier; an unknown one is plain text of that name."""
    return LANGUAGES.get(identifier) or Language(identifier, (), quotes=())


def by_path(path: str) -> Language:
    """The language of a file name; plain text where none is known."""
    suffix = PurePath(path).suffix.lower()
    return next((language for language in LANGUAGES.values() if suffix in language.suffixes), PLAIN)


def sharing_a_draft(identifier: str) -> tuple[str, ...]:
    """A language, and those that are so much like it that one draft is for all of them."""
    draft = by_id(identifier).draft
    return tuple(each.id for each in LANGUAGES.values() if draft and each.draft == draft) or (identifier,)


def output_name(grammar: str) -> str:
    """A file name for a text that matches a shipped grammar; empty where its name does not tell the kind of file."""
    suffixes = (language.suffixes[0] for language in LANGUAGES.values() if grammar and language.grammar == grammar)
    suffix = next(suffixes, "")
    return f"output{suffix}" if suffix else ""
