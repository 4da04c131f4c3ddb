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
        parser: the tree-sitter module, and the function that gives the language where it is not ``language``.
    """

    id: str
    suffixes: tuple[str, ...]
    line_comment: str = ""
    indented: bool = False
    grammar: str = ""
    draft: str = ""
    parser: str = ""


LANGUAGES = {
    language.id: language
    for language in (
        Language(
            "python",
            (".py", ".pyi"),
            "#",
            indented=True,
            grammar="python",
            draft="python",
            parser="tree_sitter_python",
        ),
        Language("json", (".json",), grammar="json", parser="tree_sitter_json"),
        Language("jsonc", (".jsonc",), "//", grammar="jsonc", parser="tree_sitter_json"),
        Language("jsonl", (".jsonl", ".ndjson"), grammar="jsonl"),
        Language("javascript", (".js", ".mjs", ".cjs"), "//", grammar="javascript", parser="tree_sitter_javascript"),
        Language("javascriptreact", (".jsx",), "//", parser="tree_sitter_javascript"),
        Language(
            "typescript",
            (".ts", ".mts", ".cts"),
            "//",
            grammar="typescript",
            parser="tree_sitter_typescript:language_typescript",
        ),
        Language("typescriptreact", (".tsx",), "//", parser="tree_sitter_typescript:language_tsx"),
        Language("c", (".c", ".h"), "//", grammar="c", parser="tree_sitter_c"),
        Language("cpp", (".cpp", ".cc", ".hpp", ".cxx"), "//", parser="tree_sitter_cpp"),
        Language("go", (".go",), "//", grammar="go", parser="tree_sitter_go"),
        Language("rust", (".rs",), "//", parser="tree_sitter_rust"),
        Language("java", (".java",), "//", parser="tree_sitter_java"),
        Language("shellscript", (".sh", ".bash"), "#", parser="tree_sitter_bash"),
        Language("sql", (".sql",), "--", grammar="sql", parser="tree_sitter_sql"),
        Language("yaml", (".yaml", ".yml"), "#", indented=True, grammar="yaml", parser="tree_sitter_yaml"),
        Language("toml", (".toml",), "#", grammar="toml", parser="tree_sitter_toml"),
        Language("csv", (".csv",), grammar="csv"),
        Language("markdown", (".md",)),
        Language("html", (".html", ".htm"), parser="tree_sitter_html"),
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
