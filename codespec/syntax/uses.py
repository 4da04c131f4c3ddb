"""tree-sitter: which occurrences of a word are uses of the name that stood at another place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

from codespec.languages import Language
from codespec.syntax.descent import path_to
from codespec.syntax.occurrences import FUNCTIONS, NAMES, kind_of
from codespec.syntax.parsing import TooMuchToParse
from codespec.syntax.tree import syntax_parser

if TYPE_CHECKING:
    import tree_sitter

Use = Literal["same", "other", "no"]
"""What an occurrence is: perhaps a use of the same name (or a word of a comment as well), one of another name of its
letters, or of another sort."""

_VALUES = frozenset({"string", "number"})


class _Name(NamedTuple):
    attribute: bool
    own: bool
    functions: tuple[int, ...]
    """The ids of the functions around it, the innermost first; of the name of a function those around that."""


class Uses:
    """The names of one document.

    Args:
        text: as it is now; syntax errors do no harm.
    """

    def __init__(self, language: Language, text: str) -> None:
        self._text, self._parser, self._unknown = text, syntax_parser(language), False
        self._root: tree_sitter.Node | None = None
        try:
            if self._parser is not None:
                self._root = self._parser.parse(text.encode("utf-8", "replace")).root_node
        except TooMuchToParse:
            self._unknown = True

    def of(self, places: Iterable[int], length: int, edited: int | None) -> list[Use]:
        """What a word is at each of these places; without a parser, all are the same, and none where it takes too long.

        Args:
            places: in characters; ``length``: of the word.
            edited: where the name that stood there was replaced by another one; None: in another document.
        """
        if self._root is None:
            return ["no" if self._unknown else "same" for _ in places]
        if edited is None:
            return ["no" if self._name(place, length) is None else "same" for place in places]
        name = self._name(edited, 1)
        return [_compared(name, self._name(place, length)) for place in places]

    def share_a_function(self, one: int, two: int, length: int) -> bool:
        """Whether a word at two places, in characters, is a name of one sort in one function that is in no other."""
        names = self._name(one, length), self._name(two, length)
        if names[0] is None or names[1] is None or names[0].attribute != names[1].attribute:
            return False
        return bool(names[0].functions and names[1].functions) and names[0].functions[-1] == names[1].functions[-1]

    def _name(self, place: int, length: int) -> _Name | None:
        start = len(self._text[:place].encode("utf-8", "replace"))
        end = start + len(self._text[place : place + length].encode("utf-8", "replace"))
        path = path_to(self._root, start, end) if self._root is not None else []
        if len(path) < 2 or NAMES.get(path[-1].type, "string") in _VALUES:
            return None
        parent, node = path[-2:]
        kind = NAMES[node.type]
        role = next((parent.field_name_for_child(index) for index, child in enumerate(parent.children)
                     if child.start_byte == node.start_byte and child.end_byte == node.end_byte), "") or ""  # fmt: skip
        if kind == "name":
            kind = kind_of(parent.type, role)
        own = parent.type in FUNCTIONS and role == "name"
        around = tuple(each.id for each in reversed(path[:-1]) if each.type in FUNCTIONS)
        return _Name(kind in ("attribute", "keyword"), own, around[1:] if own else around)


def _compared(edited: _Name | None, found: _Name | None) -> Use:
    if edited is None or found is None:
        return "same" if edited is found else "no"
    if edited.own or found.own:
        return "same"
    if edited.attribute != found.attribute:
        return "other"
    if edited.attribute or not edited.functions:
        return "same"
    related = found.functions and (found.functions[0] in edited.functions or edited.functions[0] in found.functions)
    return "same" if related else "other"
