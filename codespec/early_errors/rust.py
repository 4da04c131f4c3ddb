"""Rust: what its parser refuses of what tree-sitter takes, and what the compiler does by one block or item alone.

Macros are not looked into. What has attributes may be there under a condition, and twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from codespec.early_errors.walk import Handler, Node, Walk, has_token, named, repeated

_COMMENTS = frozenset({"line_comment", "block_comment"})
_TYPES = frozenset({"struct_item", "enum_item", "union_item", "trait_item", "type_item", "mod_item", "associated_type"})
_VALUES = frozenset({"function_item", "const_item", "static_item"})
_ITEMS = (_TYPES | _VALUES | _COMMENTS) | {
    "use_declaration", "extern_crate_declaration", "impl_item", "macro_definition", "macro_invocation",
    "foreign_mod_item", "attribute_item", "inner_attribute_item", "empty_statement", "shebang",
}  # fmt: skip
_ASSOCIATED = _COMMENTS | {
    "function_item", "function_signature_item", "const_item", "type_item", "associated_type", "macro_invocation",
    "attribute_item", "inner_attribute_item", "empty_statement",
}  # fmt: skip
_FOREIGN = _COMMENTS | {
    "function_signature_item", "static_item", "type_item", "associated_type", "macro_invocation", "attribute_item",
    "inner_attribute_item", "empty_statement",
}  # fmt: skip
_COMPARISONS = ("<", ">", "<=", ">=", "==", "!=")
_LITERALS = frozenset(
    {"integer_literal", "float_literal", "string_literal", "char_literal", "boolean_literal", "binary_expression"}
)
_RESERVED = frozenset(
    b"abstract as become break const continue do else enum extern false final fn for if impl in let loop macro match "
    b"mod move mut override priv pub ref return static struct trait true type typeof unsafe unsized use virtual "
    b"where while yield".split()
)


_PARAMETERS = _COMMENTS | {"parameter", "self_parameter", "variadic_parameter"}


class Context(NamedTuple):
    """What surrounds a node.

    Attributes:
        loop: whether ``break`` may stand there.
        awaits: whether ``.await`` may.
        selves: whether a function may take ``self``.
        signatures: whether a function may be without a body.
    """

    loop: bool = False
    labels: frozenset[bytes] = frozenset()
    awaits: bool = False
    selves: bool = False
    signatures: bool = False


def check(walk: Walk, root: Node, path: str) -> None:
    """Walk over a file."""
    walk.inspect = _check_colons
    _items(walk, root.children, Context(), _ITEMS)


def _check_colons(walk: Walk, node: Node) -> None:
    """Report ``:::``, which is ``::`` and ``:`` whatever stands around it."""
    for one, other in zip(node.children, node.children[1:], strict=False):
        if one.type == ":" and one.end_byte == other.start_byte and walk.starts(other, b"::"):
            walk.report("colons in a row", one)


def _items(walk: Walk, children: list[Node], context: Context, allowed: frozenset[str]) -> None:
    """The items of a module, trait or the like."""
    _check_list(walk, children, block=False)
    for child in children:
        if not child.is_named:
            continue
        inner = next(iter(named(child)), None) if child.type == "expression_statement" else None
        if child.type not in allowed and not (inner is not None and inner.type == "macro_invocation"):
            walk.report("statement where an item is wanted", child, child.children[0] if child.child_count else None)
        walk.visit(child, context)


def _check_list(walk: Walk, children: list[Node], block: bool) -> None:
    """What has to come first, what has to be followed by something, and what may be there only once.

    Args:
        block: whether it is a list of statements.
    """
    waiting: Node | None = None
    begun = attributed = False
    names: list[tuple[bytes, Node]] = []
    for child in children:
        role = _role(child)
        if role == "inner" and begun:
            walk.report("inner attribute behind others", child)
        elif role == "outer":
            waiting, begun, attributed = child, True, attributed or child.type == "attribute_item"
        elif role == "other":
            if not attributed:
                names += _declared(walk, child)
            waiting, begun, attributed = None, True, False
    if waiting is not None:
        walk.report("attribute of nothing", waiting)
    for node in repeated(names):
        walk.report("redeclared", node)
    _check_macros(walk, [child for child in children if child.type not in _COMMENTS], block)


def _role(node: Node) -> str:
    """The role of a part of a list: an attribute of the list (``inner``) or of what follows (``outer``), or another."""
    if not node.is_named or node.type in ("shebang", "empty_statement"):
        return "nothing"
    if node.type in _COMMENTS:
        fields = (field for field in ("inner", "outer") if node.child_by_field_name(field) is not None)
        return next(fields, "nothing")
    return {"inner_attribute_item": "inner", "attribute_item": "outer"}.get(node.type, "other")


def _check_macros(walk: Walk, children: list[Node], block: bool) -> None:
    """A macro call ends with its braces, with a semicolon or, in a block, with this."""
    for child, follows in zip_longest(children, children[1:]):
        if child.type == "macro_invocation" and not walk.ends(child, b"}"):
            ends = (";", "empty_statement", "}") if block else (";", "empty_statement")
            if follows is None or follows.type not in ends:
                walk.report("macro call without a semicolon", child)


def _declared(walk: Walk, item: Node) -> Iterator[tuple[bytes, Node]]:
    """The name of an item, with its namespace."""
    name = item.child_by_field_name("name")
    if name is None or walk.text(name) == b"_":
        return
    if item.type in _TYPES:
        yield b"type " + walk.text(name), name
    elif item.type in _VALUES or item.type in ("field_declaration", "enum_variant", "function_signature_item"):
        yield b"value " + walk.text(name), name


def _declarations(walk: Walk, node: Node, context: Context) -> None:
    around = walk.parent(node)
    kind = around.type if around is not None else ""
    if kind in ("impl_item", "trait_item"):
        _items(walk, node.children, Context(selves=True, signatures=kind == "trait_item"), _ASSOCIATED)
    elif kind == "foreign_mod_item":
        _items(walk, node.children, Context(signatures=True), _FOREIGN)
    else:
        _items(walk, node.children, Context(), _ITEMS)


def _block(walk: Walk, node: Node, context: Context) -> None:
    _check_list(walk, node.children, block=True)
    label = next((child for child in node.children if child.type == "label"), None)
    if label is not None:
        walk.spend(len(context.labels))
        context = context._replace(labels=context.labels | {walk.text(label)})
    walk.visit_children(node, context)


def _members(walk: Walk, node: Node, context: Context) -> None:
    """Fields, variants or arms."""
    _check_list(walk, node.children, block=False)
    walk.visit_children(node, context)


def _function(walk: Walk, node: Node, context: Context) -> None:
    parameters, body = node.child_by_field_name("parameters"), node.child_by_field_name("body")
    name = node.child_by_field_name("name")
    if name is not None:
        walk.visit(name, context)
    if parameters is not None:
        _check_parameters(walk, parameters, body, context)
    if node.type == "function_signature_item" and not context.signatures:
        walk.report("function without a body", name or node)
    if body is not None:
        modifiers = next((child for child in node.children if child.type == "function_modifiers"), None)
        walk.visit(body, Context(awaits=modifiers is not None and has_token(modifiers, "async")))


def _check_parameters(walk: Walk, parameters: Node, body: Node | None, context: Context) -> None:
    bound: list[tuple[bytes, Node]] = []
    listed = [child for child in named(parameters) if child.type != "attribute_item"]
    for index, parameter in enumerate(listed):
        if body is not None and parameter.type not in _PARAMETERS:
            walk.report("parameter without a pattern", parameter)
        pattern = parameter.child_by_field_name("pattern") if parameter.type == "parameter" else None
        is_self = parameter.type == "self_parameter" or (pattern is not None and pattern.type == "self")
        if is_self and (index or not context.selves):
            walk.report("self parameter", parameter)
        if pattern is not None:
            bound += _bound(walk, pattern)
    for node in repeated(bound) if body is not None else ():
        walk.report("parameter twice", node)


def _bound(walk: Walk, outer: Node) -> Iterator[tuple[bytes, Node]]:
    """The names that a pattern gives values to; those with capital letters may be constants."""
    waiting = [outer]
    while waiting:
        walk.spend()
        pattern = waiting.pop()
        if pattern.type in ("identifier", "shorthand_field_identifier"):
            text = walk.text(pattern)
            if text == text.lower():
                yield text, pattern
        elif pattern.type == "or_pattern":
            waiting += list(named(pattern))[:1]
        elif pattern.type == "field_pattern":
            inner = pattern.child_by_field_name("pattern")
            name = pattern.child_by_field_name("name") if inner is None else inner
            waiting += [name] if name is not None else []
        elif pattern.type.endswith("_pattern") and pattern.type != "macro_pattern":
            kind = pattern.child_by_field_name("type")
            # The other part of a match pattern is its condition.
            parts = list(named(pattern))[: 1 if pattern.type == "match_pattern" else None]
            waiting += (each for each in reversed(parts) if kind is None or each.start_byte != kind.start_byte)


def _closure(walk: Walk, node: Node, context: Context) -> None:
    body = node.child_by_field_name("body")
    if body is not None:
        walk.visit(body, Context(awaits=has_token(node, "async")))


def _async_block(walk: Walk, node: Node, context: Context) -> None:
    walk.visit_children(node, Context(awaits=True))


def _loop(walk: Walk, node: Node, context: Context) -> None:
    body = node.child_by_field_name("body")
    label = next((child for child in node.children if child.type == "label"), None)
    own = frozenset() if label is None else frozenset((walk.text(label),))
    walk.spend(len(context.labels))
    inner = context._replace(loop=True, labels=context.labels | own)
    for child in named(node):
        if child.type != "label":
            inside = body is not None and child.start_byte == body.start_byte
            walk.visit(child, inner if inside or node.type == "while_expression" else context)


def _jump(walk: Walk, node: Node, context: Context) -> None:
    label = next((child for child in node.children if child.type == "label"), None)
    if label is not None:
        if walk.text(label) not in context.labels:
            walk.report("unknown label", label)
    elif not context.loop:
        walk.report(f"{node.type.split('_')[0]} outside a loop", node, node.children[0] if node.child_count else None)
    for child in named(node):
        if child.type != "label":
            walk.visit(child, context)


def _await(walk: Walk, node: Node, context: Context) -> None:
    if not context.awaits:
        walk.report("await outside an async function", node)
    walk.visit_children(node, context)


def _binary(walk: Walk, node: Node, context: Context) -> None:
    operator, left = node.child_by_field_name("operator"), node.child_by_field_name("left")
    if operator is not None and left is not None:
        before = left.child_by_field_name("operator") if left.type == "binary_expression" else None
        chained = operator.type in _COMPARISONS and before is not None and before.type in _COMPARISONS
        if chained or (left.type == "type_cast_expression" and operator.type in ("<", "<<")):
            walk.report("comparison without parentheses", node)
        right = node.child_by_field_name("right")
        close = operator.type == "<" and right is not None and right.start_byte == operator.end_byte
        if close and walk.starts(right, b"-"):
            walk.report("arrow to the left", operator)
    walk.visit_children(node, context)


def _assignment(walk: Walk, node: Node, context: Context) -> None:
    left = node.child_by_field_name("left")
    if left is not None and left.type in _LITERALS:
        walk.report("assigned to", left)
    walk.visit_children(node, context)


def _pattern(walk: Walk, node: Node, context: Context) -> None:
    """A statement or arm with a pattern."""
    pattern = node.child_by_field_name("pattern")
    if pattern is not None:
        for each in repeated(_bound(walk, pattern)):
            walk.report("bound twice", each)
    value, alternative = node.child_by_field_name("value"), node.child_by_field_name("alternative")
    if alternative is not None and value is not None and walk.ends(value, b"}"):
        walk.report("else behind a brace", alternative)
    walk.visit_children(node, context)


def _variant(walk: Walk, node: Node, context: Context) -> None:
    for child in node.children:
        if child.type == "visibility_modifier":
            walk.report("visibility of a variant", child)
    walk.visit_children(node, context)


def _identifier(walk: Walk, node: Node, context: Context) -> None:
    if walk.text(node) in _RESERVED:
        walk.report("reserved word", node)


def _nothing(walk: Walk, node: Node, context: Context) -> None:
    """Macros, types and the like, of which nothing is known."""


def _impl(walk: Walk, node: Node, context: Context) -> None:
    if node.child_by_field_name("body") is None:
        walk.report("implementation without a body", node)
    walk.visit_children(node, context)


HANDLERS: dict[str, Handler] = {
    "declaration_list": _declarations,
    "block": _block,
    **dict.fromkeys(("field_declaration_list", "enum_variant_list", "match_block"), _members),
    **dict.fromkeys(("function_item", "function_signature_item"), _function),
    "closure_expression": _closure,
    "async_block": _async_block,
    **dict.fromkeys(("loop_expression", "while_expression", "for_expression"), _loop),
    **dict.fromkeys(("break_expression", "continue_expression"), _jump),
    "await_expression": _await,
    "binary_expression": _binary,
    **dict.fromkeys(("assignment_expression", "compound_assignment_expr"), _assignment),
    **dict.fromkeys(("let_declaration", "match_arm"), _pattern),
    "enum_variant": _variant,
    "impl_item": _impl,
    "identifier": _identifier,
    "type_identifier": _identifier,
    **dict.fromkeys(
        (
            "macro_definition", "macro_invocation", "token_tree", "attribute_item", "inner_attribute_item",
            "type_arguments", "type_parameters", "where_clause", "lifetime", "label", *_COMMENTS,
        ),
        _nothing,
    ),
}  # fmt: skip
