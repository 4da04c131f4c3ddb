"""The form of what is known of a language."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Literal


@dataclass(frozen=True)
class MadeEdits:
    """The edits made on a language's files, for models of next edits to learn from.

    Attributes:
        share: of the files that they are made on.
        parameter: how one is declared with its type.
        types: of parameters; none: they are declared without.
        typed: the share of parameters that are declared with their type.
        keywords: whether arguments may be given by name.
        nothing: a value that stands for none; empty: none is passed.
        awaits: whether calls may be awaited.
    """

    share: float
    parameter: str = "{name}: {type}"
    types: tuple[str, ...] = ()
    typed: float = 1.0
    keywords: bool = False
    nothing: str = ""
    awaits: bool = False


@dataclass(frozen=True)
class Language:
    """One language. Code is named by its ``module:name``, or by its module alone, for ``load``.

    Attributes:
        id: the LSP language identifier.
        suffixes: of file names, with the dot.
        line_comment: what starts a comment, or empty.
        block_comment: what starts and ends a comment of more lines, or empty.
        quotes: around texts of one line.
        long_quotes: around texts of more lines.
        brackets: whether those in code come in pairs: ``always``, ``mostly``, or ``never``, as in the ``case`` of a
            shell; nor do they where there are no quotes, in prose.
        data: whether a file is entries one after the other, of which the next may be the same.
        free_blanks: whether white space between tokens means nothing, and nothing else stands there.
        indented: whether blocks are made by indentation.
        unit: the usual indentation of a block.
        grammar: name of the shipped grammar, or empty.
        grammar_versions: of the language that have a shipped grammar of their own, whose name ends in the version.
        version: where there are some, a function that finds the oldest version that a project supports
            (``codespec.completion.language_version``).
        plain_grammar: whether it does without codespec's extensions, and llama.cpp reads it, too.
        draft: name of the embedded draft, or empty; languages that share one are trained together.
        preprocessed: whether macros make texts that are in order and that no parser takes, and lines of directives
            stand among those of code.
        defined: macros that a compiler of the language defines, of those by which files tell languages apart.
        parser: the tree-sitter module, and the function that gives the language where it is not ``language``.
        overflows: a function that says of which texts the parser is not asked, since they might end the process.
        own_parser: a function that raises an error for a text that the parser of the language's makers refuses, where
            one is at hand.
        unique_keys: whether that one alone tells of names that stand twice.
        checker: a function that begins a walk over a tree for early errors, in a module whose ``HANDLERS`` say what to
            do at each type of node (``codespec.early_errors``).
        compiler: a class that asks the language's own compiler or formatter for them instead (likewise).
        scopes: the reader of its names (``codespec.syntax.scopes.reading``).
        outline: a function from the root of a tree to what the file imports and defines (``codespec.syntax.names``).
        modules: a module that finds the files of imports (``codespec.completion.prompt.imports``).
        cells: a module that reads cells of notebooks, which may hold lines of another language
            (``codespec.lsp.workspace.notebooks``).
        magics: names after ``%%`` that say that a cell is of this language.
        share: percent of a target's training texts.
        edits: those that are made for training; None: none are.
    """

    id: str
    suffixes: tuple[str, ...]
    line_comment: str = ""
    block_comment: tuple[str, str] | tuple[()] = ()
    quotes: tuple[str, ...] = ('"', "'")
    long_quotes: tuple[str, ...] = ()
    brackets: Literal["always", "mostly", "never"] = "mostly"
    data: bool = False
    free_blanks: bool = False
    indented: bool = False
    unit: str = " " * 4
    grammar: str = ""
    grammar_versions: tuple[tuple[int, int], ...] = ()
    version: str = ""
    plain_grammar: bool = False
    draft: str = ""
    preprocessed: bool = False
    defined: tuple[str, ...] = ()
    parser: str = ""
    overflows: str = ""
    own_parser: str = ""
    unique_keys: bool = False
    checker: str = ""
    compiler: str = ""
    scopes: str = ""
    outline: str = ""
    modules: str = ""
    cells: str = ""
    magics: tuple[str, ...] = ()
    share: float = 0.0
    edits: MadeEdits | None = None

    def __hash__(self) -> int:
        return hash(self.id)  # of all fields it would take long, and caches ask for it


@cache
def load(name: str) -> Any:
    """The module ``name``, or what the part behind its colon names there; imported when it is first asked for."""
    module, _, attribute = name.partition(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found
