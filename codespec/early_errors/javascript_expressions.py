"""JavaScript and TypeScript: expressions that only some places allow."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from itertools import islice

from codespec.early_errors.javascript_context import Context, check_binding, check_name
from codespec.early_errors.javascript_names import bound
from codespec.early_errors.walk import Handler, Node, Walk, has_token, named, repeated

_TARGETS = frozenset(
    {
        "identifier", "member_expression", "subscript_expression", "object_pattern", "array_pattern", "undefined",
        "non_null_expression", "as_expression", "satisfies_expression", "type_assertion", "call_expression",
    }
)  # fmt: skip
# What goes on with a call, an index or an operator where ``await`` and ``yield`` are names.
_GOES_ON = (b"(", b"[", b"+", b"-", b"/", b"`", b"*")
_OCTAL = re.compile(rb"0\d+")
_OCTAL_ESCAPE = re.compile(rb"\\(?:[1-9]|0\d)")
_LOOSE = frozenset({"assignment_expression", "augmented_assignment_expression", "arrow_function"})
_ESCAPED_BRACES = re.compile(rb"\\[pPuk](?:\{[^{}]*\}|<[^<>]*>)")
_QUANTIFIER = re.compile(rb"\{\d+(?:,\d*)?\}")
_SKIPPED = re.compile(rb"\\.|\[(?:\\.|[^\]\\])*\]?", re.DOTALL)
_REPEATS = rb"(?:[*+?]|\{\d+(?:,\d*)?\})"
_REPEATS_NOTHING = re.compile(
    rb"(?:^|[|^$])%b|\((?!\?)%b|%b(?:\?%b|[*+]|\{\d+(?:,\d*)?\})" % (_REPEATS, _REPEATS, _REPEATS, _REPEATS)
)
_EDGE_OF_A_WORD = re.compile(rb"\\[bB]")
_CLASS = re.compile(rb"\\.|\[\^?((?:\\.|[^\]\\])*)(?:\]|\Z)", re.DOTALL)
_IN_A_CLASS = re.compile(rb"(\\.|[^\\])(?:-(\\.|[^\\]))?", re.DOTALL)


def _outside(walk: Walk, node: Node, kind: str, reserved: bool) -> None:
    """Report an operator that may not stand there, unless it may be a name."""
    operand = next(iter(named(node)), None)
    if reserved or (operand is not None and not walk.starts(operand, _GOES_ON) and not has_token(node, "*")):
        walk.report(kind, node)


def _await(walk: Walk, node: Node, context: Context) -> None:
    if not context.awaits:
        _outside(walk, node, "await outside an async function", context.module or b"await" in context.reserved)
    walk.visit_children(node, context)


def _yield(walk: Walk, node: Node, context: Context) -> None:
    if not context.yields:
        _outside(walk, node, "yield outside a generator", context.strict or b"yield" in context.reserved)
    walk.visit_children(node, context)


def check_target(walk: Walk, node: Node | None, context: Context) -> None:
    """Report what cannot be assigned to."""
    while node is not None and node.type == "parenthesized_expression":
        node = next(iter(named(node)), None)
    if node is None:
        return
    if node.type not in _TARGETS or (node.type == "call_expression" and context.typescript) or _optional(walk, node):
        walk.report("assigned to", node)
    for name in bound(node):
        check_binding(walk, name, context)


_NAMED_IN = {
    "assignment_pattern": "left",
    "object_assignment_pattern": "left",
    "pair_pattern": "value",
    "required_parameter": "pattern",
    "optional_parameter": "pattern",
}
"""Of parts of patterns, the field with the name or pattern."""


def check_pattern(walk: Walk, pattern: Node | None) -> None:
    """Report what a declaration or a parameter cannot give a name to, such as a property."""
    waiting = [pattern]
    while waiting:
        walk.spend()
        each = waiting.pop()
        if each is None:
            continue
        if each.type in ("member_expression", "subscript_expression"):
            walk.report("property in a declaration", each)
        elif each.type in _NAMED_IN:
            waiting.append(each.child_by_field_name(_NAMED_IN[each.type]))
        elif each.type in ("object_pattern", "array_pattern", "rest_pattern", "formal_parameters"):
            waiting += named(each)


def _optional(walk: Walk, node: Node | None) -> bool:
    """Whether a chain of members has ``?.`` in it."""
    while node is not None and node.type in ("member_expression", "subscript_expression", "call_expression"):
        walk.spend()
        if node.child_by_field_name("optional_chain") is not None or has_token(node, "?."):
            return True
        node = node.child_by_field_name("object") or node.child_by_field_name("function")
    return False


def _assignment(walk: Walk, node: Node, context: Context) -> None:
    check_target(walk, node.child_by_field_name("left"), context)
    walk.visit_children(node, context)


def _update(walk: Walk, node: Node, context: Context) -> None:
    argument = node.child_by_field_name("argument")
    check_target(walk, argument, context)
    walk.visit_children(node, context)


def _unary(walk: Walk, node: Node, context: Context) -> None:
    operand = node.child_by_field_name("argument")
    _check_operands(walk, node, context)
    while operand is not None and operand.type == "parenthesized_expression":
        operand = next(iter(named(operand)), None)
    if context.strict and has_token(node, "delete") and operand is not None and operand.type == "identifier":
        walk.report("name deleted", node)
    walk.visit_children(node, context)


def _check_operands(walk: Walk, node: Node, context: Context) -> None:
    """Report operands that end where the expression does, and have to stand in parentheses."""
    for operand in named(node):
        if operand.type in _LOOSE or (operand.type == "yield_expression" and context.yields):
            walk.report("operators without parentheses", operand)


def _called(walk: Walk, node: Node, context: Context) -> None:
    """A call, or a property, of which the parser takes ``() => {}()`` for one, too."""
    first = node.child_by_field_name("function") or node.child_by_field_name("object")
    if first is not None and (first.type == "arrow_function" or (first.type == "yield_expression" and context.yields)):
        walk.report("operators without parentheses", first)
    walk.visit_children(node, context)


def _binary(walk: Walk, node: Node, context: Context) -> None:
    _check_operands(walk, node, context)
    operator, left = node.child_by_field_name("operator"), node.child_by_field_name("left")
    kind = operator.type if operator is not None else ""
    if kind == "**" and left is not None and left.type in ("unary_expression", "await_expression"):
        walk.report("operators without parentheses", left)
    mixed = {"??": ("||", "&&"), "||": ("??",), "&&": ("??",)}.get(kind, ())
    for child in named(node) if mixed else ():
        inner = child.child_by_field_name("operator") if child.type == "binary_expression" else None
        if inner is not None and inner.type in mixed:
            walk.report("operators without parentheses", child)
    walk.visit_children(node, context)


def _new(walk: Walk, node: Node, context: Context) -> None:
    constructor = node.child_by_field_name("constructor")
    if _optional(walk, constructor):
        walk.report("optional chain", constructor or node)
    walk.visit_children(node, context)


def _arguments(walk: Walk, node: Node, context: Context) -> None:
    """The parser takes ``f(, a)`` and ``f(a,, b)``, as in an array."""
    signs = [child for child in node.children if child.type != "comment"]
    for before, sign in itertools.pairwise(signs):
        if sign.type == "," and before.type in ("(", ","):
            walk.report("argument that is not there", sign)
    walk.visit_children(node, context)


def _pattern(walk: Walk, node: Node, context: Context) -> None:
    signs = [child for child in node.children if child.type != "comment"]
    for before, sign in itertools.pairwise(signs):
        if sign.type == "," and before.type == "rest_pattern":
            walk.report("pattern behind a rest pattern", before)
    check_commas(walk, node)
    walk.visit_children(node, context)


def check_commas(walk: Walk, node: Node) -> None:
    """Report properties that are not there; elements of an array need not be."""
    signs = [child for child in node.children if child.type != "comment"]
    for before, sign in itertools.pairwise(signs) if node.type != "array_pattern" else ():
        if sign.type == "," and before.type in ("{", ","):
            walk.report("property that is not there", sign)


def _statement(walk: Walk, node: Node, context: Context) -> None:
    """A statement that begins with a function or class declares it."""
    first = next(iter(named(node)), None)
    while first is not None and first.child_count and first.start_byte == node.start_byte:
        walk.spend()
        if first.type in ("function_expression", "generator_function", "class"):
            walk.report("function or class without a name", first, first.children[0])
            break
        first = first.children[0]
    walk.visit_children(node, context)


def _escape(walk: Walk, node: Node, context: Context) -> None:
    text = walk.text(node)
    octal = context.strict and _OCTAL_ESCAPE.match(text)
    around, outer = (*(each.type for each in islice(walk.around(node), 2)), "", "")[:2]
    in_template = around == "template_string"
    if in_template and outer == "call_expression":
        return  # a tag may make of it what it likes
    if in_template:
        octal = _OCTAL_ESCAPE.match(text)
    if (in_template or around == "string") and (
        octal or (text.startswith(b"\\u{") and int(text[3:-1] or b"0", 16) > 0x10FFFF)
    ):
        walk.report("escape", node)


def _number(walk: Walk, node: Node, context: Context) -> None:
    if context.strict and _OCTAL.fullmatch(walk.text(node)):
        walk.report("octal number", node)


def _regular_expression(walk: Walk, node: Node, context: Context) -> None:
    pattern, flags = node.child_by_field_name("pattern"), node.child_by_field_name("flags")
    letters = walk.text(flags) if flags is not None else b""
    fine = len(set(letters)) == len(letters) and set(letters) <= set(b"dgimsuvy")
    text = walk.text(pattern) if pattern is not None else b""
    unicode = b"u" in letters and not _well_formed_unicode(text)
    if not fine or unicode or (b"v" not in letters and not _well_formed(text)):
        walk.report("regular expression", node)


def _well_formed(pattern: bytes) -> bool:
    """Whether groups are closed, nothing is repeated that is not there, and ranges are in order."""
    plain = _SKIPPED.sub(_plain, pattern)
    depth = 0
    for sign in plain:
        depth += (sign == ord("(")) - (sign == ord(")"))
        if depth < 0:
            return False
    ranges = (each for found in _CLASS.finditer(pattern) for each in _IN_A_CLASS.findall(found[1] or b""))
    # Of escapes and of signs beyond ASCII more would have to be known.
    backwards = any(len(one) == len(other) == 1 and other < one < b"\x80" for one, other in ranges)
    return depth == 0 and not backwards and not _REPEATS_NOTHING.search(plain)


def _plain(skipped: re.Match[bytes]) -> bytes:
    """What stands for an escape or a class: ``^`` where it matches nothing, which cannot be repeated."""
    return b"^" if _EDGE_OF_A_WORD.fullmatch(skipped[0]) else b"x"


def _well_formed_unicode(pattern: bytes) -> bool:
    """Whether brackets that stand for themselves are escaped, and groups that are named by number are there."""
    plain = _SKIPPED.sub(b"x", _ESCAPED_BRACES.sub(b"x", pattern))
    groups = len(re.findall(rb"\((?!\?)|\(\?<(?![=!])", plain))
    numbers = [int(number) for number in re.findall(rb"(?<!\\)(?:\\\\)*\\([1-9]\d{0,3})", pattern)]
    return max(numbers, default=0) <= groups and not re.search(rb"[\]{}]", _QUANTIFIER.sub(b"", plain))


def _super(walk: Walk, node: Node, context: Context) -> None:
    around = walk.parent(node)
    parent = around.type if around is not None else ""
    member = parent in ("member_expression", "subscript_expression") and context.super_property
    if not member and not (parent == "call_expression" and context.super_call):
        walk.report("super", node)


def _meta_property(walk: Walk, node: Node, context: Context) -> None:
    if walk.text(node).startswith(b"new") and not context.new_target:
        walk.report("new.target outside a function", node)


def _private_name(walk: Walk, node: Node, context: Context) -> None:
    if walk.text(node) not in context.privates:
        walk.report("private name that no class declares", node)


def _jsx_element(walk: Walk, node: Node, context: Context) -> None:
    """The names of elements are no names of variables."""
    name = node.child_by_field_name("name")
    for child in named(node):
        if name is None or child.start_byte != name.start_byte:
            walk.visit(child, context)


def _nothing(walk: Walk, node: Node, context: Context) -> None:
    """Types and the like, of which nothing is known."""


def _type(walk: Walk, node: Node, context: Context) -> None:
    """A type, of which nothing is known but that no two parameters, or properties, have the same name, and that only
    arrays are ``readonly``."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        walk.spend()
        waiting += named(each)
        if each.type == "object_type":
            _check_properties(walk, each)
        elif each.type == "formal_parameters":
            for name in repeated((walk.text(own), own) for own in bound(each)):
                walk.report("parameter twice", name)
        elif each.type == "readonly_type":
            _check_readonly(walk, each)


def _check_readonly(walk: Walk, node: Node) -> None:
    if next(iter(named(node)), node).type not in ("array_type", "tuple_type", "union_type"):
        walk.report("readonly of what is no array", node, node.children[0])


def _readonly(walk: Walk, node: Node, context: Context) -> None:
    _check_readonly(walk, node)
    walk.visit_children(node, context)


def _object(walk: Walk, node: Node, context: Context) -> None:
    """Check the properties of an object literal, or of its type."""
    if context.typescript:
        _check_properties(walk, node)
    elif node.type == "object":
        pairs = [key for child in named(node) if child.type == "pair" and (key := child.child_by_field_name("key"))]
        for key in [key for key in pairs if walk.text(key).strip(b"\"'") == b"__proto__"][1:]:
            walk.report("prototype twice", key)
    if node.type == "object":
        check_commas(walk, node)
    for child in named(node):
        walk.visit(child, context._replace(super_call=False) if child.type == "method_definition" else context)


def _check_properties(walk: Walk, node: Node) -> None:
    members = [(kind, name) for child in named(node) for kind, name in _property(child)]
    methods = {walk.text(name) for kind, name in members if kind == "method"}
    for kind, name in members:
        if kind == "property" and walk.text(name) in methods:
            walk.report("property twice", name)
    for kind in ("get", "set"):
        names = ((walk.text(name).strip(b"\"'"), name) for own, name in members if own in (kind, "property"))
        for name in repeated(names):
            walk.report("property twice", name)


def _property(member: Node) -> Iterator[tuple[str, Node]]:
    """The name of a property: ``get`` and ``set`` may have the same one, and so may signatures of methods."""
    if member.type == "shorthand_property_identifier":
        yield "property", member
    name = member.child_by_field_name("key" if member.type == "pair" else "name")
    if name is not None and name.type == "computed_property_name":
        name = next((child for child in named(name) if _is_literal(child)), None)
    if name is None or not (name.type == "property_identifier" or _is_literal(name)):
        return
    if member.type == "method_signature":
        yield "method", name
    if member.type in ("pair", "property_signature", "method_definition"):
        yield next((child.type for child in member.children if child.type in ("get", "set")), "property"), name


def _is_literal(node: Node) -> bool:
    """Whether a name is a string or a number, which may have a sign."""
    if node.type == "unary_expression":
        return [child.type for child in node.children] in (["-", "number"], ["+", "number"])
    return node.type in ("string", "number")


def _names(walk: Walk, node: Node, context: Context) -> None:
    """Names of an enumeration, or of parameters that are types."""
    named_once = ((walk.text(each.child_by_field_name("name") or each), each) for each in named(node))
    for each in repeated(named_once):
        walk.report("declared twice", each)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("enum_body", "type_parameters"), _names),
    "await_expression": _await,
    "yield_expression": _yield,
    "assignment_expression": _assignment,
    "augmented_assignment_expression": _assignment,
    "update_expression": _update,
    "unary_expression": _unary,
    "binary_expression": _binary,
    "call_expression": _called,
    "member_expression": _called,
    "subscript_expression": _called,
    "new_expression": _new,
    "arguments": _arguments,
    "object": _object,
    "object_type": _object,
    "interface_body": _object,
    **dict.fromkeys(("construct_signature", "call_signature", "method_signature"), _type),
    "readonly_type": _readonly,
    "object_pattern": _pattern,
    "array_pattern": _pattern,
    "expression_statement": _statement,
    "number": _number,
    "escape_sequence": _escape,
    "regex": _regular_expression,
    "super": _super,
    "meta_property": _meta_property,
    "private_property_identifier": _private_name,
    "identifier": check_name,
    "shorthand_property_identifier": check_name,
    "shorthand_property_identifier_pattern": check_name,
    "jsx_opening_element": _jsx_element,
    "jsx_closing_element": _jsx_element,
    "jsx_self_closing_element": _jsx_element,
    "jsx_attribute": _nothing,
    **dict.fromkeys(("type_annotation", "function_type"), _type),
    **dict.fromkeys(
        (
            "type_arguments", "implements_clause", "type_predicate_annotation",
            "asserts_annotation", "comment",
            "ambient_declaration", "function_signature", "import_alias", "import_statement",
        ),
        _nothing,
    ),
}  # fmt: skip
