"""JavaScript and TypeScript: functions, their parameters, and classes."""

from __future__ import annotations

from codespec.early_errors.javascript_context import Context, check_binding, check_name
from codespec.early_errors.javascript_expressions import check_pattern
from codespec.early_errors.javascript_names import DeclaredName, bound, redeclared
from codespec.early_errors.walk import Handler, Node, Walk, has_token, named, overloaded, repeated

_CONSTRUCTOR = (b"constructor", b'"constructor"', b"'constructor'")
_LOOSE = frozenset({"binary_expression", "unary_expression", "arrow_function", "assignment_expression"})
_STRINGS = (b'"use strict"', b"'use strict'")
_MOST_COMMENTS = 100
"""Between members, that are looked past."""


def uses_strict(walk: Walk, block: Node | None) -> bool:
    """Whether a body begins with ``"use strict"``."""
    if block is None or block.type not in ("program", "statement_block"):
        return False
    for statement in named(block):
        first = next(iter(named(statement)), None)
        if statement.type != "expression_statement" or first is None or first.type != "string":
            return False
        if walk.text(first) in _STRINGS:
            return True
    return False


def function(walk: Walk, node: Node, context: Context) -> None:
    """Check a function that is no method."""
    arrow = node.type == "arrow_function"
    outer = context if arrow else context._replace(super_property=False, super_call=False, new_target=True)
    name = node.child_by_field_name("name")
    if name is not None:
        mode = context._replace(strict=context.strict or uses_strict(walk, node.child_by_field_name("body")))
        if not node.type.endswith("declaration"):  # the name is one in the function, not around it
            mode = mode._replace(yields=node.type == "generator_function")
        check_binding(walk, name, mode)
        walk.visit(name, mode)
    for before, sign in zip(node.children, node.children[1:], strict=False):
        if sign.type == "=>" and b"\n" in walk.data[before.end_byte : sign.start_byte]:
            walk.report("line break before =>", sign)
    generator = node.type.startswith("generator")
    inner = outer.inside(awaits=has_token(node, "async"), yields=generator)
    # An arrow's parameters are read as a part of the expression around it.
    words = _reserved(inner) | (_reserved(context) | context.reserved if arrow else frozenset())
    _code(walk, node, inner, unique=arrow, reserved=words)


def _reserved(context: Context) -> frozenset[bytes]:
    words = ((b"await", context.awaits), (b"yield", context.yields))
    return frozenset(word for word, reserved in words if reserved)


def method(walk: Walk, node: Node, context: Context, super_call: bool = False) -> None:
    """Check a method of a class or an object."""
    name = node.child_by_field_name("name")
    if name is not None and name.type == "computed_property_name":
        walk.visit(name, context)
    parameters = list(named(node.child_by_field_name("parameters") or node))
    own = [
        each for each in parameters if each.type != "required_parameter" or walk.text(each).split(b":")[0] != b"this"
    ]
    wrong = len(own) != 1 or own[0].type == "rest_pattern"
    if (has_token(node, "get") and own) or (has_token(node, "set") and wrong):
        walk.report("parameters of a getter or setter", name or node)
    inner = context.inside(awaits=has_token(node, "async"), yields=has_token(node, "*"))
    inner = inner._replace(super_property=True, super_call=super_call, new_target=True)
    _code(walk, node, inner, unique=True, reserved=_reserved(inner))


def _code(walk: Walk, node: Node, inner: Context, unique: bool, reserved: frozenset[bytes]) -> None:
    """Parameters and body of a function.

    Args:
        unique: whether no two parameters may have the same name, whatever the mode.
        reserved: words that are no names in the parameters.
    """
    body = node.child_by_field_name("body")
    strict = uses_strict(walk, body)
    inner = inner._replace(strict=inner.strict or strict)
    parameters = node.child_by_field_name("parameters") or node.child_by_field_name("parameter")
    names = [DeclaredName(walk.text(each), "parameter", each) for each in bound(parameters)]
    if parameters is not None:
        _check_parameters(walk, parameters, names, inner, unique, strict)
        check_pattern(walk, parameters)
        walk.visit(parameters, inner._replace(awaits=False, yields=False, reserved=reserved))
    if body is not None:
        if body.type == "statement_block":
            redeclared(walk, body.children, "function", names, inner.typescript)
        walk.visit(body, inner)


def _check_parameters(
    walk: Walk, node: Node, names: list[DeclaredName], inner: Context, unique: bool, directive: bool
) -> None:
    listed = list(named(node)) if node.type == "formal_parameters" else [node]
    simple = all(each.type in ("identifier", "required_parameter", "optional_parameter") for each in listed)
    if unique or inner.strict or inner.typescript or not simple:
        for each in repeated((name.text, name.node) for name in names):
            walk.report("parameter twice", each)
    if directive and not simple:
        walk.report("use strict beside parameters that are not simple", node)
    for each in listed[:-1]:
        if each.type == "rest_pattern" or (each.type == "required_parameter" and _rest(each)):
            walk.report("parameter behind a rest parameter", each)
    for name in names:
        check_binding(walk, name.node, inner)
    own = [
        each for each in listed if (first := each.child_by_field_name("pattern")) is not None and first.type == "this"
    ]
    for each in own[1:]:
        walk.report("parameter twice", each)
    optional = False
    for each in listed:
        optional = optional or each.type == "optional_parameter"
        pattern = each.child_by_field_name("pattern") if each.type == "required_parameter" else None
        if optional and pattern is not None and pattern.type != "rest_pattern" and not has_token(each, "="):
            walk.report("parameter behind an optional one", each)


def _rest(parameter: Node) -> bool:
    pattern = parameter.child_by_field_name("pattern")
    return pattern is not None and pattern.type == "rest_pattern"


def _class(walk: Walk, node: Node, context: Context) -> None:
    context = context._replace(strict=True)
    body, own = node.child_by_field_name("body"), node.child_by_field_name("name")
    if own is not None and not own.is_missing:
        check_binding(walk, own, context)
        check_name(walk, own, context)
    for child in named(node):
        if child.type == "class_heritage" or child.type == "decorator":
            walk.visit(child, context)
            _check_heritage(walk, child)
    if body is None or body.is_missing:
        return
    members = list(named(body))
    declared = [(_member_name(walk, member), member) for member in members]
    privates = frozenset(name for name, _ in declared if name.startswith(b"#"))
    walk.spend(len(context.privates))
    context = context._replace(privates=context.privates | privates)
    _check_members(walk, body, members, context)
    derived = any(child.type == "class_heritage" and _extends(child) for child in node.children)
    for member in members:
        _member(walk, body, member, context, derived)


def _check_heritage(walk: Walk, heritage: Node) -> None:
    """Report a class to extend that has to stand in parentheses."""
    for each in named(heritage):
        if each.type in _LOOSE:
            walk.report("operators without parentheses", each)


def _extends(heritage: Node) -> bool:
    return any(child.type not in ("implements_clause",) for child in named(heritage))


def _name_node(member: Node) -> Node | None:
    found: Node | None = member.child_by_field_name("name") or member.child_by_field_name("property")
    return found


def _member_name(walk: Walk, member: Node) -> bytes:
    name = _name_node(member)
    return walk.text(name) if name is not None else b""


def _member(walk: Walk, body: Node, member: Node, context: Context, derived: bool) -> None:
    """A member of the body of a class; its own errors are those of its code."""
    if member.type == "method_definition":
        constructor = _member_name(walk, member) in _CONSTRUCTOR and not has_token(member, "static")
        walk.visit(member, context._replace(super_call=derived and constructor, new_target=False), within=body)
    elif member.type in ("field_definition", "public_field_definition", "class_static_block"):
        inner = context.inside(returns=False, super_property=True, super_call=False, new_target=True)
        block = member.child_by_field_name("body")
        if block is not None:
            redeclared(walk, block.children, "function", [], context.typescript)
        walk.visit(member, inner, within=body)
    elif member.type == "decorator":
        decorated = _behind(walk, body, member)
        if decorated is not None and (name := _name_node(decorated)) is not None and walk.text(name) == b"constructor":
            walk.report("decorator of a constructor", member)
        walk.visit(member, context, within=body)


def _is_plain_method(member: Node) -> bool:
    """Whether it is a name and a function, which ``get`` before it makes an accessor."""
    return member.type == "method_definition" and member.children[0] == member.child_by_field_name("name")


def _behind(walk: Walk, body: Node, member: Node) -> Node | None:
    """The node after a member, comments aside."""
    behind: list[Node] = body.children[walk.place_in(body, member) + 1 :][:_MOST_COMMENTS]
    return next((each for each in behind if each.type != "comment"), None)


def _check_members(walk: Walk, body: Node, members: list[Node], context: Context) -> None:
    """Report members whose names a class may not have, or not twice."""
    taken: dict[tuple[bytes, bool], set[str]] = {}
    for member in members:
        name = _name_node(member)
        if name is None:
            continue
        text, static = walk.text(name), has_token(member, "static")
        kind = _kind(member)
        if kind == "field" and text in (b"get", b"set") and member.children[-1] == name:
            behind = _behind(walk, body, member)
            if behind is not None and behind.type not in (";", "}", "decorator") and not _is_plain_method(behind):
                walk.report("accessor without a name", name)
        if text in _CONSTRUCTOR and not static and (kind in ("get", "set", "field") or has_token(member, "async", "*")):
            walk.report("constructor that is none", name)
        if text == b"#constructor" or (static and text.strip(b"\"'") == b"prototype"):
            walk.report("name that no member may have", name)
        text = _CONSTRUCTOR[0] if text in _CONSTRUCTOR else text
        once = (text in _CONSTRUCTOR and not static) or text.startswith(b"#") or context.typescript
        if not once or kind == "signature" or name.type == "computed_property_name":
            continue
        kinds = taken.setdefault((text, static and not text.startswith(b"#")), set())
        if kinds and not (kind in ("get", "set") and kinds <= {"get", "set"} - {kind}):
            walk.report("member twice", name)
        kinds.add(kind)
    if context.typescript:
        for signature in overloaded(walk, members, "method_signature", "method_definition"):
            if not has_token(signature, "?"):
                walk.report("function without a body", signature)
        for signature in members:
            if signature.type == "method_signature" and has_token(signature, "*"):
                walk.report("generator without a body", signature)


def _kind(member: Node) -> str:
    if member.type == "method_definition":
        return next((child.type for child in member.children if child.type in ("get", "set")), "method")
    return "signature" if "signature" in member.type else "field"


def _class_method(walk: Walk, node: Node, context: Context) -> None:
    method(walk, node, context, context.super_call)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(
        (
            "function_declaration", "function_expression", "arrow_function",
            "generator_function_declaration", "generator_function",
        ),
        function,
    ),
    "method_definition": _class_method,
    "class_declaration": _class,
    "abstract_class_declaration": _class,
    "class": _class,
}  # fmt: skip

BODIES = frozenset({*HANDLERS, "class_static_block"})
"""Nodes whose handlers have looked for names declared twice in their bodies."""
