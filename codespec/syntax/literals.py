"""tree-sitter: the text of definitions without the values that are written out in it.

A default value, a constant or an argument of a decorator may be a password or a key that nothing tells as one, so text
of a file that nobody has opened is shown without any: ``password="…"`` for a string, ``…`` for a long number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tree_sitter

MOST_LINE = 160
"""Characters of a first line."""

_STRING, _NUMBER = b'"..."', b"..."
_STRINGS = frozenset({"string", "concatenated_string", "template_string", "regex", "jsx_text"})
_NUMBERS = frozenset({"integer", "float", "number"})
_COMMENTS = frozenset({"comment", "html_comment"})
_TYPES = frozenset({"type", "type_annotation", "literal_type", "template_literal_type", "type_arguments"})
_CALLS = frozenset({"call", "call_expression", "new_expression"})
_LISTS = frozenset({"list", "tuple", "set", "dictionary", "array", "object", "argument_list", "arguments"})

_SHORT = 3
"""Characters of a string that is shown: modes, separators. A password has more."""
_MOST_DIGITS = 5
_MOST_NUMBERS = 4
"""In one list: more may be the bytes of a key."""
_LONGEST = 4_000
"""Bytes that are read of a signature or line."""
_DEEPEST = 60
_QUOTES = re.compile(rb"\A[a-zA-Z]*(?:\"\"\"|'''|[\"'`])|(?:\"\"\"|'''|[\"'`])\Z")


def signature(outer: tree_sitter.Node, body: tree_sitter.Node | None = None) -> str:
    """The text of ``outer`` up to its body; empty where the parser has not understood it."""
    end = min(outer.end_byte if body is None else body.start_byte, outer.start_byte + _LONGEST)
    return _without_values(outer, end).rstrip(" \t\r\n{")


def first_line(node: tree_sitter.Node) -> str:
    """The first line of a node; empty where the parser has not understood it."""
    length = (node.text or b"")[:_LONGEST].find(b"\n")
    end = min(node.end_byte, node.start_byte + (_LONGEST if length < 0 else length))
    line = _without_values(node, end).rstrip()
    return line if len(line) <= MOST_LINE else line[:MOST_LINE] + "…"


def _without_values(node: tree_sitter.Node, end: int) -> str:
    data, parts, at = node.text or b"", [], node.start_byte
    try:
        for start, behind, shown in _values(node, end):
            parts += [data[at - node.start_byte : start - node.start_byte], shown]
            at = behind
    except ValueError:
        return ""
    parts.append(data[at - node.start_byte : max(at, end) - node.start_byte])
    lines = b"".join(parts).decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip() for line in lines)


def _values(
    node: tree_sitter.Node, end: int, in_type: bool = False, typed: bool = True, depth: int = 0
) -> Iterator[tuple[int, int, bytes]]:
    """Where values are written out before ``end``, and what is shown there.

    Args:
        in_type: whether a string is a part of a type.
        typed: whether what the parser calls a type is one; an argument of ``Annotated`` or of a call need not be.

    Raises:
        ValueError: anything may be a value, since there is an error of syntax, or many nodes in each other.
    """
    if node.is_error or node.is_missing or depth > _DEEPEST:
        raise ValueError
    if node.type in _CALLS or _is_generic(node, b"Annotated"):
        in_type = typed = False
    in_type = in_type or (typed and node.type in _TYPES) or _is_generic(node, b"Literal")
    if node.type in _COMMENTS:
        yield node.start_byte, node.end_byte, b""
    elif node.type in _STRINGS and node.is_named:  # and not the type of that name
        if not in_type and len(_QUOTES.sub(b"", node.text or b"")) > _SHORT:
            yield node.start_byte, node.end_byte, _STRING
    elif node.type in _NUMBERS and node.is_named:
        if len(node.text or b"") > _MOST_DIGITS:
            yield node.start_byte, node.end_byte, _NUMBER
    elif node.type in _LISTS and sum(each.type in _NUMBERS for each in node.named_children) > _MOST_NUMBERS:
        yield node.start_byte + 1, node.end_byte - 1, _NUMBER
    else:
        for child in node.children:
            if child.start_byte < end:
                yield from _values(child, end, in_type, typed, depth + 1)


def _is_generic(node: tree_sitter.Node, name: bytes) -> bool:
    """Whether a node is ``name[...]`` of Python, wherever it stands."""
    if node.type not in ("subscript", "generic_type"):
        return False
    value = node.child_by_field_name("value") or node.children[0]
    return (value.text or b"").split(b".")[-1] == name
