"""tree-sitter: what a file imports, and the signatures of what it defines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codespec.languages import Language, load
from codespec.syntax.parsing import Parser, TooMuchToParse, new_parser

if TYPE_CHECKING:
    import tree_sitter

EVERYTHING = "*"
"""As the name of an import: all names of the module."""
DEFAULT = "default"
"""As the name of an import or definition: what a JavaScript module exports by default."""

MOST_SIGNATURE = 800
"""Characters of one signature."""
MOST_MEMBERS = 24
"""Of a class."""


@dataclass(frozen=True)
class Import:
    """Names that a file takes from one module.

    Attributes:
        module: as written, without the dots before it in Python: ``a.b``, ``./x``.
        level: of those dots.
        names: what it is called there and here; empty where only the module itself is imported.
        alias: what the module is called here, where it is imported itself.
        exported: whether the names are passed on without being known here (``export … from``).
    """

    module: str
    level: int = 0
    names: tuple[tuple[str, str], ...] = ()
    alias: str = ""
    exported: bool = False


@dataclass(frozen=True)
class Definition:
    """What is known of a name at the top level of a file.

    Attributes:
        names: usually one.
        text: whole lines without the last line end: the header of a function and the first line of what documents
            it, a class with its fields and the headers of its methods, the first line of an assignment.
    """

    names: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Outline:
    """What a file imports and defines, in order."""

    imports: tuple[Import, ...] = ()
    definitions: tuple[Definition, ...] = ()


class Outliner:
    """Reads files. For one thread."""

    def __init__(self) -> None:
        self._parsers: dict[str, Parser | None] = {}

    def read(self, text: str, language: Language) -> Outline:
        """The outline of a file; an empty one where its language has none, or no parser, or it takes too long."""
        if not language.parser or not language.outline:
            return Outline()
        if language.parser not in self._parsers:
            self._parsers[language.parser] = new_parser(language.parser)
        parser = self._parsers[language.parser]
        if parser is None:
            return Outline()
        try:
            root = parser.parse(text.encode("utf-8", "replace")).root_node
        except TooMuchToParse:
            return Outline()
        outline: Callable[[tree_sitter.Node], Outline] = load(language.outline)
        found = outline(root)
        return Outline(found.imports, tuple(each for each in found.definitions if each.text))


def cut(text: str) -> str:
    """Whole lines of a signature that is too long."""
    if len(text) <= MOST_SIGNATURE:
        return text
    return text[: text.rfind("\n", 0, MOST_SIGNATURE)] if "\n" in text[:MOST_SIGNATURE] else text[:MOST_SIGNATURE]


def field_of(node: tree_sitter.Node, name: str) -> str:
    """The text of a node's field; empty without one."""
    found = node.child_by_field_name(name)
    return text_of(found) if found is not None else ""


def text_of(node: tree_sitter.Node) -> str:
    """The text of a node, with line ends of one character."""
    return (node.text or b"").decode("utf-8", "replace").replace("\r\n", "\n")
