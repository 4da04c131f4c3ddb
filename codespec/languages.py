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
        block_comment: what starts and ends a comment of more lines, or empty.
        quotes: around texts of one line.
        long_quotes: around texts of more lines.
        indented: whether blocks are made by indentation.
        grammar: name of the shipped grammar, or empty.
        grammar_versions: of the language that have a shipped grammar of their own, whose name ends in the version.
        draft: name of the embedded draft, or empty.
        preprocessed: whether macros make texts that are in order and that no parser takes, and lines of directives
            stand among those of code.
        parser: the tree-sitter module, and the function that gives the language where it is not ``language``.
    """

    id: str
    suffixes: tuple[str, ...]
    line_comment: str = ""
    block_comment: tuple[str, str] | tuple[()] = ()
    quotes: tuple[str, ...] = ('"', "'")
    long_quotes: tuple[str, ...] = ()
    indented: bool = False
    grammar: str = ""
    grammar_versions: tuple[tuple[int, int], ...] = ()
    draft: str = ""
    preprocessed: bool = False
    parser: str = ""


_C = ("/*", "*/")

LANGUAGES = {
    language.id: language
    for language in (
        Language(
            "python",
            (".py", ".pyi"),
            "#",
            long_quotes=('"""', "'''"),
            indented=True,
            grammar="python",
            grammar_versions=((3, 14),),
            draft="python",
            parser="tree_sitter_python",
        ),
        Language("json", (".json",), quotes=('"',), grammar="json", parser="tree_sitter_json"),
        Language("jsonc", (".jsonc",), "//", _C, quotes=('"',), grammar="jsonc", parser="tree_sitter_json"),
        Language("jsonl", (".jsonl", ".ndjson"), quotes=('"',), grammar="jsonl"),
        Language(
            "javascript",
            (".js", ".mjs", ".cjs"),
            "//",
            _C,
            long_quotes=("`",),
            grammar="javascript",
            draft="javascript",
            parser="tree_sitter_javascript",
        ),
        Language(
            "javascriptreact",
            (".jsx",),
            "//",
            _C,
            long_quotes=("`",),
            draft="javascript",
            parser="tree_sitter_javascript",
        ),
        Language(
            "typescript",
            (".ts", ".mts", ".cts"),
            "//",
            _C,
            long_quotes=("`",),
            grammar="typescript",
            draft="javascript",
            parser="tree_sitter_typescript:language_typescript",
        ),
        Language(
            "typescriptreact",
            (".tsx",),
            "//",
            _C,
            long_quotes=("`",),
            draft="javascript",
            parser="tree_sitter_typescript:language_tsx",
        ),
        Language(
            "c",
            (".c", ".h"),
            "//",
            _C,
            quotes=('"',),
            grammar="c",
            draft="c",
            preprocessed=True,
            parser="tree_sitter_c",
        ),
        Language(
            "cpp",
            (".cpp", ".cc", ".hpp", ".cxx"),
            "//",
            _C,
            quotes=('"',),
            draft="c",
            preprocessed=True,
            parser="tree_sitter_cpp",
        ),
        Language(
            "go",
            (".go",),
            "//",
            _C,
            quotes=('"',),
            long_quotes=("`",),
            grammar="go",
            draft="go",
            parser="tree_sitter_go",
        ),
        Language("rust", (".rs",), "//", _C, quotes=('"',), grammar="rust", draft="rust", parser="tree_sitter_rust"),
        Language(
            "java", (".java",), "//", _C, quotes=('"',), long_quotes=('"""',), grammar="java", parser="tree_sitter_java"
        ),
        Language("shellscript", (".sh", ".bash"), "#", grammar="shell", parser="tree_sitter_bash"),
        Language("sql", (".sql",), "--", _C, grammar="sql", parser="tree_sitter_sql"),
        Language("yaml", (".yaml", ".yml"), "#", indented=True, grammar="yaml", parser="tree_sitter_yaml"),
        Language("toml", (".toml",), "#", long_quotes=('"""', "'''"), grammar="toml", parser="tree_sitter_toml"),
        Language("csv", (".csv",), grammar="csv"),
        Language("markdown", (".md",), quotes=()),
        Language("css", (".css",), block_comment=_C),
        Language("scss", (".scss",), "//", _C),
        Language("html", (".html", ".htm"), block_comment=("<!--", "-->"), quotes=(), parser="tree_sitter_html"),
    )
}

PLAIN = Language("plaintext", (), quotes=())


def by_id(identifier: str) -> Language:
    """The language of an LSP identifier; an unknown one is plain text of that name."""
    return LANGUAGES.get(identifier) or Language(identifier, (), quotes=())


def by_path(path: str) -> Language:
    """The language of a file name; plain text where none is known."""
    suffix = PurePath(path).suffix.lower()
    return next((language for language in LANGUAGES.values() if suffix in language.suffixes), PLAIN)


def sharing_a_draft(identifier: str) -> tuple[str, ...]:
    """A language, and those that are so much like it that one draft is for all of them."""
    together = (("javascript", "javascriptreact", "typescript", "typescriptreact"), ("c", "cpp"))
    return next((each for each in together if identifier in each), (identifier,))


def output_name(grammar: str) -> str:
    """A file name for a text that matches a shipped grammar; empty where its name does not tell the kind of file."""
    suffixes = (language.suffixes[0] for language in LANGUAGES.values() if grammar and language.grammar == grammar)
    suffix = next(suffixes, "")
    return f"output{suffix}" if suffix else ""
