"""JavaScript and TypeScript: what surrounds a node, and which words may not be names there."""

from __future__ import annotations

from typing import Any, NamedTuple
from unicodedata import category

from codespec.early_errors.walk import Node, Walk

RESERVED = frozenset(
    b"break case catch class const continue debugger default delete do else enum export extends false finally for "
    b"function "
    b"if import in instanceof new null return super switch this throw true try typeof var void while with".split()
)
_STRICT = frozenset(b"implements interface let package private protected public static yield".split())
_OF_NAMES = "$\\℘℮゛゜·"  # signs that Unicode counts as letters of names all the same
_UNASSIGNABLE = frozenset((b"eval", b"arguments"))


class Context(NamedTuple):
    """What surrounds a node.

    Attributes:
        top: whether imports and exports may stand there.
        returns: whether ``return`` may.
        awaits: whether ``await`` may, for certain or as far as anybody knows.
        yields: whether ``yield`` may.
        reserved: ``await`` and ``yield`` in the parameters of a function in which they are no names: neither may stand
            there.
        labels: of statements around.
        loop_labels: those of them that are of loops.
        super_call: whether ``super()`` may stand there, as in the constructor of a derived class.
        privates: the names with ``#`` of the classes around.
    """

    strict: bool = False
    module: bool = False
    typescript: bool = False
    top: bool = False
    returns: bool = False
    awaits: bool = False
    yields: bool = False
    reserved: frozenset[bytes] = frozenset()
    loop: bool = False
    switch: bool = False
    labels: frozenset[bytes] = frozenset()
    loop_labels: frozenset[bytes] = frozenset()
    super_property: bool = False
    super_call: bool = False
    new_target: bool = False
    privates: frozenset[bytes] = frozenset()

    def inside(self, **changes: Any) -> Context:
        """Within a function or the like, of which ``changes`` tell: it has nothing of the statements around it."""
        nothing = frozenset[bytes]()
        fresh = {"returns": True, "awaits": False, "yields": False, "reserved": nothing, **changes}
        return self._replace(top=False, loop=False, switch=False, labels=nothing, loop_labels=nothing, **fresh)


def check_name(walk: Walk, node: Node, context: Context) -> None:
    """Report a word that is no name."""
    text = walk.text(node)
    strict, generator = context.strict and text in _STRICT, context.yields and text == b"yield"
    asynchronous = context.module and text == b"await"
    if text in RESERVED or strict or generator or asynchronous or text in context.reserved or not _is_name(text):
        walk.report("reserved word", node)


def _is_name(text: bytes) -> bool:
    """Whether a name has no signs, such as emojis."""
    letters = "" if text.isascii() else text.decode("utf-8", "replace")
    return all(category(letter)[0] in "LMNC" or category(letter) == "Pc" or letter in _OF_NAMES for letter in letters)


def check_binding(walk: Walk, node: Node, context: Context) -> None:
    """Report a name that may not be given a value."""
    if context.strict and not context.typescript and walk.text(node) in _UNASSIGNABLE:
        walk.report("reserved word", node)
