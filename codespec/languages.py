"""What codespec knows of each language: one row of one table, and nothing elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True)
class Language:
    """One language.

    Attributes:
        id: the LSP language identifier.
        suffixes: of file names, with the dot.
        line_comment: what starts a comment, or empty.
        indented: whether blocks are made by indentation.
        grammar: name of the shipped grammar, or empty.
        draft: name of the embedded draft, or empty.
        grammar_scope: ``file`` if the grammar is of a whole file, ``line`` if it is of lines from any one on.
    """

    id: str
    suffixes: tuple[str, ...]
    line_comment: str = ""
    indented: bool = False
    grammar: str = ""
    draft: str = ""
    grammar_scope: str = "file"


LANGUAGES = {
    language.id: language
    for language in (
        Language("python", (".py", ".pyi"), "#", indented=True, draft="python", grammar="python", grammar_scope="line"),
        Language("json", (".json",), grammar="json"),
        Language("javascript", (".js", ".mjs", ".cjs", ".jsx"), "//"),
        Language("typescript", (".ts", ".tsx", ".mts"), "//"),
        Language("c", (".c", ".h"), "//"),
        Language("cpp", (".cpp", ".cc", ".hpp", ".cxx"), "//"),
        Language("go", (".go",), "//"),
        Language("rust", (".rs",), "//"),
        Language("java", (".java",), "//"),
        Language("shellscript", (".sh", ".bash"), "#"),
        Language("sql", (".sql",), "--"),
        Language("yaml", (".yaml", ".yml"), "#", indented=True),
        Language("toml", (".toml",), "#"),
        Language("markdown", (".md",)),
        Language("html", (".html", ".htm")),
    )
}

PLAIN = Language("plaintext", ())


def by_id(identifier: str) -> Language:
    """The language of an LSP identifier; an unknown one is plain text of that name."""
    return LANGUAGES.get(identifier) or Language(identifier, ())


def by_path(path: str) -> Language:
    """The language of a file name; plain text where none is known."""
    suffix = PurePath(path).suffix.lower()
    return next((language for language in LANGUAGES.values() if suffix in language.suffixes), PLAIN)
