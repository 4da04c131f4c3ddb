"""Python: expressions that only some places allow, targets of assignments, literals."""

from __future__ import annotations

import keyword
import re

from codespec.early_errors.python_context import Context
from codespec.early_errors.walk import Handler, Node, Walk, has_token, named

_KEYWORDS = frozenset(word.encode() for word in keyword.kwlist)
_INTEGER = re.compile(rb"0[0_]*[1-9][\d_]*|\w*[lL]")
_PREFIXES = frozenset((b"", b"r", b"u", b"b", b"f", b"t", b"br", b"rb", b"fr", b"rf", b"tr", b"rt"))
_ESCAPE = re.compile(rb"\\(?:(x(?![0-9a-fA-F]{2}))|(u(?![0-9a-fA-F]{4})|U(?![0-9a-fA-F]{8}))|.)", re.DOTALL)
_STORED = frozenset({"identifier", "attribute", "subscript", "keyword_identifier"})
_GROUPS = frozenset(
    {"pattern_list", "tuple_pattern", "list_pattern", "expression_list", "tuple", "list", "parenthesized_expression"}
)
_SPLATS = frozenset({"list_splat", "list_splat_pattern"})
# Where ``*x`` may not stand; elsewhere it does, or is a part of what it is said of (``*a.b``: an attribute of ``*a``).
_TAKES_NO_SPLAT = frozenset({"expression_statement", "assignment", "return_statement", "parenthesized_expression"})
# Where ``x := y`` may not stand without parentheses.
_TAKES_NO_NAMED = frozenset(
    {
        "expression_statement", "assignment", "augmented_assignment", "return_statement", "keyword_argument",
        "default_parameter", "assert_statement",
    }
)  # fmt: skip


def check_stored(walk: Walk, target: Node, nested: bool = False) -> None:
    """Report what cannot be assigned to, and stars beyond one."""
    kind = target.type
    if kind in _SPLATS:
        if not nested:
            walk.report("starred outside a list", target)
        for child in named(target):
            check_stored(walk, child, nested=False)
    elif kind in _GROUPS:
        children = list(named(target))
        for child in [each for each in children if each.type in _SPLATS][1:]:
            walk.report("starred twice", child)
        several = kind not in ("tuple_pattern", "tuple", "parenthesized_expression") or has_token(target, ",")
        for child in children:
            check_stored(walk, child, nested=several)
    elif kind not in _STORED:
        walk.report("assigned to", target)


def _assignment(walk: Walk, node: Node, context: Context) -> None:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is not None:
        check_stored(walk, left)
        typed = node.child_by_field_name("type") is not None
        several = left.type in ("pattern_list", "list_pattern") or (
            left.type == "tuple_pattern" and has_token(left, ",")
        )
        if typed and (several or (right is not None and right.type == "assignment")):
            walk.report("annotation of several targets", left)
    walk.visit_children(node, context)


def _is_several(target: Node) -> bool:
    """Whether a target is a tuple or a list, and not only in parentheses."""
    return target.type in ("pattern_list", "list_pattern") or (
        target.type == "tuple_pattern" and has_token(target, ",")
    )


def _augmented(walk: Walk, node: Node, context: Context) -> None:
    left = node.child_by_field_name("left")
    if left is not None and (_is_several(left) or left.type not in (*_STORED, "tuple_pattern")):
        walk.report("assigned to", left)
    walk.visit_children(node, context)


def _delete(walk: Walk, node: Node, context: Context) -> None:
    for target in named(node):
        _check_deleted(walk, target)
    walk.visit_children(node, context)


def _check_deleted(walk: Walk, target: Node) -> None:
    if target.type in _GROUPS:
        for child in named(target):
            _check_deleted(walk, child)
    elif target.type not in _STORED:
        walk.report("deleted", target)


def _with_item(walk: Walk, node: Node, context: Context) -> None:
    value = node.child_by_field_name("value")
    if value is not None and value.type == "as_pattern":
        alias = value.child_by_field_name("alias")
        for target in named(alias) if alias is not None else ():
            check_stored(walk, target)
    walk.visit_children(node, context)


def _arguments(walk: Walk, node: Node, context: Context) -> None:
    keywords: set[bytes] = set()
    unpacked = False
    for argument in named(node):
        if argument.type == "keyword_argument":
            name = argument.child_by_field_name("name")
            text = walk.text(name) if name is not None else b""
            if text in keywords:
                walk.report("keyword argument twice", argument)
            keywords.add(text)
        elif argument.type == "dictionary_splat":
            unpacked = True
        elif unpacked or (keywords and argument.type != "list_splat"):
            walk.report("positional argument behind keywords", argument)
    walk.visit_children(node, context)


def _await(walk: Walk, node: Node, context: Context) -> None:
    if not context.awaits:
        walk.report("await outside an async function", node)
    walk.visit_children(node, context)


def _yield(walk: Walk, node: Node, context: Context) -> None:
    if not context.function or context.comprehension:
        walk.report("yield outside a function", node)
    elif context.asynchronous and has_token(node, "from"):
        walk.report("yield from in an async function", node)
    walk.visit_children(node, context)


def _comprehension(walk: Walk, node: Node, context: Context) -> None:
    """Visit a comprehension, whose first iterable is evaluated outside of it."""
    generator = node.type == "generator_expression"
    awaits = context.awaits or generator or (context.comprehension and context.awaits)
    inner = context._replace(comprehension=True, awaits=awaits)
    first = True
    for child in named(node):
        if child.type == "list_splat" or child.type == "dictionary_splat":
            walk.report("unpacked in a comprehension", child)
        if child.type == "for_in_clause":
            left = child.child_by_field_name("left")
            if left is not None:
                check_stored(walk, left)
            if has_token(child, "async") and not awaits:
                walk.report("await outside an async function", child, child.children[0])
            for part in named(child):
                outside = first and part.start_byte != (left.start_byte if left is not None else -1)
                walk.visit(part, context if outside else inner)
            first = False
        else:
            walk.visit(child, inner)


def _splat(walk: Walk, node: Node, context: Context) -> None:
    parent = node.parent
    if parent is not None and parent.type in _TAKES_NO_SPLAT and not has_token(parent, ","):
        walk.report("starred outside a list", node)
    walk.visit_children(node, context)


def _named_expression(walk: Walk, node: Node, context: Context) -> None:
    if node.parent is not None and node.parent.type in _TAKES_NO_NAMED:
        walk.report("named expression without parentheses", node)
    walk.visit_children(node, context)


def _comparison(walk: Walk, node: Node, context: Context) -> None:
    if has_token(node, "<>"):
        walk.report("statement of Python 2", node)
    walk.visit_children(node, context)


def _integer(walk: Walk, node: Node, context: Context) -> None:
    if _INTEGER.fullmatch(walk.text(node)):
        walk.report("number", node)


def _identifier(walk: Walk, node: Node, context: Context) -> None:
    if walk.text(node) in _KEYWORDS:
        walk.report("reserved word", node)


def _string(walk: Walk, node: Node, context: Context) -> None:
    children = node.children
    prefix = walk.text(children[0]).rstrip(b"\"'").lower()
    if prefix not in _PREFIXES:
        walk.report("string", node)
    for child in children:
        if child.type == "interpolation":
            walk.visit(child, context)
        elif child.type == "string_content":
            _check_content(walk, child, prefix)


def _check_content(walk: Walk, content: Node, prefix: bytes) -> None:
    text = walk.text(content)
    wrong = b"b" in prefix and not text.isascii()
    if b"\\" in text and b"r" not in prefix:
        wrong = wrong or any(found[1] or (found[2] and b"b" not in prefix) for found in _ESCAPE.finditer(text))
    if wrong:
        walk.report("string", content)


def _concatenated(walk: Walk, node: Node, context: Context) -> None:
    parts = [child for child in named(node) if child.type == "string" and child.children]
    if len({b"b" in walk.text(part.children[0]).rstrip(b"\"'").lower() for part in parts}) > 1:
        walk.report("string", node)
    walk.visit_children(node, context)


def _nothing(walk: Walk, node: Node, context: Context) -> None:
    """Nothing to find there."""


HANDLERS: dict[str, Handler] = {
    "assignment": _assignment,
    "augmented_assignment": _augmented,
    "delete_statement": _delete,
    "with_item": _with_item,
    "argument_list": _arguments,
    "await": _await,
    "yield": _yield,
    "list_comprehension": _comprehension,
    "set_comprehension": _comprehension,
    "dictionary_comprehension": _comprehension,
    "generator_expression": _comprehension,
    "list_splat": _splat,
    "named_expression": _named_expression,
    "comparison_operator": _comparison,
    "integer": _integer,
    "identifier": _identifier,
    "string": _string,
    "concatenated_string": _concatenated,
    "comment": _nothing,
}
