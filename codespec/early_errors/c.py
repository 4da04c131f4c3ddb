"""C: statements and labels where they may not stand, and what is there twice.

Macros may be anything, so that little is certain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from codespec.early_errors.c_types import (
    declares_a_pointer,
    is_a_number,
    is_defined,
    is_defined_as_a_type,
    is_for_a_macro,
    is_listed,
    is_type_as_a_value,
    is_used,
    is_value_as_a_type,
)
from codespec.early_errors.walk import Handler, Node, Walk, has_token, named, repeated

_STATEMENTS = frozenset(
    {
        "return_statement", "if_statement", "for_statement", "while_statement", "do_statement", "switch_statement",
        "break_statement", "continue_statement", "goto_statement", "case_statement",
    }
)  # fmt: skip

_KEYWORDS = frozenset(
    b"auto break case char const continue default do double else enum extern float for goto if int long register "
    b"return short signed sizeof static struct switch typedef union unsigned void volatile while".split()
)

_COMPLETE = frozenset(
    {"function_definition", "type_definition", "compound_statement", "preproc_include", "preproc_def", "preproc_ifdef"}
)
"""What a block at the top level cannot belong to."""

_SIZED = (b"int", b"char", b"double")

_TYPEOF = frozenset((b"typeof", b"typeof_unqual", b"__typeof", b"__typeof__"))
_ASSERTIONS = frozenset((b"static_assert", b"_Static_assert"))
_JOINED = re.compile(rb"\s*#\s*define\s+[A-Za-z_]\w*[^\s\w(\\\x80-\xff]")
_PARAMETERS = re.compile(rb"\s*#\s*define\s+\w+\(([^()\\/\n]*)\)")
_PARAMETER = re.compile(rb"\s*(?:[A-Za-z_]\w*)?\s*(?:\.\.\.)?\s*")


class Context(NamedTuple):
    """What surrounds a node.

    Attributes:
        inside: whether it is in a function.
        breaks: whether ``break`` may stand there, for certain or as far as anybody knows.
        continues: whether ``continue`` may.
        cases: whether ``case`` may.
    """

    inside: bool = False
    breaks: bool = False
    continues: bool = False
    cases: bool = False


def check(walk: Walk, root: Node, path: str) -> None:
    """Report the early errors of a whole file to ``walk``."""
    walk.visit_children(root, Context())


def _statement(walk: Walk, node: Node, context: Context) -> None:
    if not context.inside:
        walk.report("statement outside a function", node, node.children[0])
    if node.type in ("for_statement", "while_statement", "do_statement"):
        context = context._replace(breaks=True, continues=True)
    elif node.type == "switch_statement":
        context = context._replace(breaks=True, cases=True)
        body = node.child_by_field_name("body")
        values = (each.child_by_field_name("value") for each in (named(body) if body is not None else ()))
        for value in repeated((walk.text(each), each) for each in values if each is not None):
            walk.report("case twice", value)
        for default in [each for each in (named(body) if body is not None else ()) if _is_default(each)][1:]:
            walk.report("default twice", default, default.children[0])
    elif node.type == "case_statement" and not context.cases:
        walk.report("case outside a switch", node, node.children[0])
    elif node.type == "break_statement" and not context.breaks:
        walk.report("break outside a loop", node)
    elif node.type == "continue_statement" and not context.continues:
        walk.report("continue outside a loop", node)
    walk.visit_children(node, context)


def _is_default(node: Node) -> bool:
    return node.type == "case_statement" and node.children[0].type == "default"


def _label(walk: Walk, node: Node, context: Context) -> None:
    if not context.inside:
        walk.report("label outside a function", node, node.children[0])
    walk.visit_children(node, context)


def _expression(walk: Walk, node: Node, context: Context) -> None:
    inner = next(iter(named(node)), None)
    if not context.inside and inner is not None and not _may_be_a_macro(walk, node, inner):
        walk.report("statement outside a function", node)
    if inner is not None and inner.type == "compound_literal_expression" and _is_a_name(inner):
        walk.report("literal as a statement", node)
    walk.visit_children(node, context)


def _is_a_name(literal: Node) -> bool:
    """Whether the type of a literal is but a name, as where the parser takes ``each (x) { … }`` for one."""
    written = literal.child_by_field_name("type")
    kind = written.child_by_field_name("type") if written is not None else None
    return kind is not None and kind.type == "type_identifier"


def _may_be_a_macro(walk: Walk, statement: Node, inner: Node) -> bool:
    """Whether an expression outside a function may be that of a macro: in capitals, or of names alone; or a declaration
    whose type is the name of a function to the parser."""
    if inner.type != "call_expression":
        return inner.type == "gnu_asm_expression" or (inner.type == "identifier" and not has_token(statement, ";"))
    function, arguments = inner.child_by_field_name("function"), inner.child_by_field_name("arguments")
    if function is None or arguments is None:
        return False
    if function.type != "identifier":
        return declares_a_pointer(function)
    if walk.text(function) in _ASSERTIONS:
        return True
    only = list(named(arguments))
    if len(only) == 1 and only[0].type == "pointer_expression" and is_defined_as_a_type(walk, function):
        return True
    return not _is_no_macro(walk, function) or all(each.type == "identifier" for each in named(arguments))


def _block(walk: Walk, node: Node, context: Context) -> None:
    if not context.inside and _follows_a_definition(walk, node):
        walk.report("block outside a function", node, node.children[0])
    around = walk.parent(node)
    # A block that belongs to nothing may be that of a macro such as ``for_each (x) { … }``.
    if around is not None and around.type == "compound_statement" and not _is_complete(_before(walk, around, node)):
        context = context._replace(breaks=True, continues=True, cases=True)
    walk.visit_children(node, context)


def _is_complete(statement: Node | None) -> bool:
    """Whether nothing can belong to a statement that follows it."""
    return statement is not None and (statement.type in _STATEMENTS or statement.type == "compound_statement")


def _before(walk: Walk, around: Node, node: Node, skipped: tuple[str, ...] = ()) -> Node | None:
    """The node before one, signs and ``skipped`` types aside; both are in ``around``."""
    siblings = around.children
    for at in range(walk.place_in(around, node) - 1, -1, -1):
        walk.spend()
        if siblings[at].is_named and siblings[at].type not in skipped:
            found: Node = siblings[at]
            return found
    return None


def _follows_a_definition(walk: Walk, block: Node) -> bool:
    """Whether ``block`` belongs to nothing: what stands before it is complete, or nothing is there. Declarations of
    parameters may stand between a function's head and its body, and after no body."""
    around = walk.parent(block)
    before = _before(walk, around, block, ("comment", "declaration")) if around is not None else None
    return before is None or before.type in _COMPLETE


def _function(walk: Walk, node: Node, context: Context) -> None:
    body = node.child_by_field_name("body")
    if body is not None and not context.inside:
        _check_labels(walk, body)
    _report_parameters(walk, (each for each in node.children if each.type == "declaration"))
    walk.visit_children(node, Context(inside=True))


def _check_labels(walk: Walk, body: Node) -> None:
    if b"goto" not in walk.text(body):
        return
    names = list(_labels(walk, body))
    defined = [(walk.text(name), name) for name, definition in names if definition]
    for each in repeated(defined):
        walk.report("label twice", each)
    known = {text for text, _ in defined}
    for name, definition in names:
        if not definition and walk.text(name) not in known:
            walk.report("unknown label", name)


def _labels(walk: Walk, body: Node) -> Iterator[tuple[Node, bool]]:
    """The labels of statements, and whether they are defined there."""
    waiting = [(child, body) for child in reversed(body.children)]
    while waiting:
        walk.spend()
        child, around = waiting.pop()
        if child.type == "goto_statement" and child.has_error:
            continue  # to an address
        if child.type == "statement_identifier":
            yield child, around.type == "labeled_statement"
        elif child.child_count and "expression" not in child.type:
            waiting += ((each, child) for each in reversed(child.children))


def _fields(walk: Walk, node: Node, context: Context) -> None:
    # Those between the lines of the preprocessor, which may leave some out, are no children of this node.
    fields = [member for member in named(node) if member.type == "field_declaration"]
    names = [_name(each) for field in fields for each in field.children_by_field_name("declarator")]
    for each in repeated(_named(walk, names, "field_identifier")):
        walk.report("field twice", each)
    for field in fields:
        for each in field.children:
            if each.type == "storage_class_specifier":
                walk.report("storage class of a field", each)
        parts = list(named(field))
        nameless = len(parts) == 1 and parts[0].type == "type_identifier"
        if nameless and (not _is_in_capitals(walk, parts[0]) or is_listed(walk, parts[0])):
            walk.report("field without a name", field, parts[0])
        elif len(parts) == 1 and parts[0].type == "macro_type_specifier" and _is_no_macro(walk, parts[0].children[0]):
            walk.report("field without a name", field)
    walk.visit_children(node, context)


def _is_in_capitals(walk: Walk, name: Node) -> bool:
    text = walk.text(name)
    return text.upper() == text


def _is_no_macro(walk: Walk, name: Node) -> bool:
    """Whether a name is hardly one of a macro that stands for anything: those are in capitals, begin with ``_``, or are
    defined in the file."""
    text = walk.text(name)
    return not text.startswith(b"_") and not _is_in_capitals(walk, name) and not is_defined(walk, name)


def _is_alone(walk: Walk, name: Node) -> bool:
    """Whether a name that is neither in capitals nor one of an attribute occurs nowhere else in the file."""
    text = walk.text(name)
    if _is_in_capitals(walk, name) or text.startswith(b"__attribute"):
        return False
    return walk.words[text] == 1


def _sized_type(walk: Walk, node: Node, context: Context) -> None:
    kind = node.child_by_field_name("type")
    sizeless = kind is not None and kind.type == "type_identifier" and _is_no_macro(walk, kind)
    if sizeless or (kind is not None and kind.type == "primitive_type" and walk.text(kind) not in _SIZED):
        walk.report("size of a type that has none", node, kind)
    walk.visit_children(node, context)


def _declarator(walk: Walk, node: Node, context: Context) -> None:
    behind = [each for each in node.children if each.type == "identifier"][1:]
    if node.child_by_field_name("declarator") is not None and behind and _is_no_macro(walk, behind[0]):
        walk.report("word behind the parameters", behind[0])
    for call in [each for each in node.children if each.type == "call_expression"]:
        name = call.child_by_field_name("function")
        if name is not None and _is_alone(walk, name):
            walk.report("word behind the parameters", call)
    walk.visit_children(node, context)


def _declaration(walk: Walk, node: Node, context: Context) -> None:
    kind, what = node.child_by_field_name("type"), node.child_by_field_name("declarator")
    if kind is not None and what is not None:
        # ``elsif`` and a call on the next line.
        call = kind.type == "type_identifier" and what.type == "function_declarator" and context.inside
        if call and kind.start_point[0] != what.start_point[0] and _is_alone(walk, kind):
            walk.report("unknown type before a call", kind)
    walk.visit_children(node, context)


def _macro(walk: Walk, node: Node, context: Context) -> None:
    known = walk.text(node.children[0]) in _TYPEOF
    if not known and _is_no_macro(walk, node.children[0]) and _is_alone(walk, node.children[0]):
        walk.report("unknown macro", node)
    walk.visit_children(node, context)


def _identifier(walk: Walk, node: Node, context: Context) -> None:
    if walk.text(node) in _KEYWORDS and not is_for_a_macro(walk, node) and not _is_of_a_choice(walk, node):
        walk.report("keyword as a name", node)
    elif node.type == "type_identifier" and walk.text(node) == b"NULL":
        walk.report("value as a type", node)
    elif node.type == "identifier" and walk.is_touched(node) and is_type_as_a_value(walk, node):
        walk.report("type as a value", node)


def _is_of_a_choice(walk: Walk, name: Node) -> bool:
    """Whether it is ``default`` of ``_Generic``, which the parser takes for a type."""
    around = [each.type for each in islice(walk.around(name), 2)] if walk.text(name) == b"default" else []
    return around[1:] == ["generic_expression"]


def _nothing(walk: Walk, node: Node, context: Context) -> None:
    """Attributes, which may be any words."""


def _enumerator(walk: Walk, node: Node, context: Context) -> None:
    name = node.child_by_field_name("name")
    added = walk.touched is not None and walk.is_touched(node)
    if name is not None and added and is_a_number(walk, name):
        walk.report("macro as an enumerator", node)
    walk.visit_children(node, context)


def _parameters(walk: Walk, node: Node, context: Context) -> None:
    _report_parameters(walk, named(node))
    walk.visit_children(node, context)


def _report_parameters(walk: Walk, nodes: Iterable[Node]) -> None:
    names = [_name(each) for node in nodes for each in node.children_by_field_name("declarator")]
    for each in repeated(_named(walk, names, "identifier")):
        walk.report("parameter twice", each)


def _name(declarator: Node) -> Node:
    """The name that a declarator declares, without the signs for pointers, arrays and functions."""
    inner: Node | None = declarator
    while inner is not None:
        declarator = inner
        inner = declarator.child_by_field_name("declarator")
        if inner is None and declarator.type == "parenthesized_declarator":
            inner = next(iter(named(declarator)), None)
    return declarator


def _named(walk: Walk, names: Iterable[Node], kind: str) -> Iterator[tuple[bytes, Node]]:
    """The names among ``names``, but for those that begin with ``__``: they are often macros."""
    for name in names:
        text = walk.text(name)
        if name.type == kind and not text.startswith(b"__"):
            yield text, name


def _cast(walk: Walk, node: Node, context: Context) -> None:
    if walk.is_touched(node) and is_value_as_a_type(walk, node):
        walk.report("value as a type", node)
    walk.visit_children(node, context)


def _linkage(walk: Walk, node: Node, context: Context) -> None:
    if not walk.holds_around("C++", node, lambda _, around: _is_cplusplus(walk, around) or None):
        walk.report("extern of C++", node, node.children[0])
    walk.visit_children(node, context)


def _is_cplusplus(walk: Walk, node: Node) -> bool:
    """Whether it is a conditional of the preprocessor that asks for C++."""
    end = walk.data.find(b"\n", node.start_byte, node.end_byte)
    line = walk.data[node.start_byte : end if end >= 0 else node.end_byte]
    return node.type.startswith("preproc") and b"__cplusplus" in line


def _strings(walk: Walk, node: Node, context: Context) -> None:
    # Between strings stand macros that are strings.
    for each in named(node):
        if each.type == "identifier" and _is_no_macro(walk, each) and not is_for_a_macro(walk, each):
            walk.report("name beside a string", each)
    walk.visit_children(node, context)


def _define(walk: Walk, node: Node, context: Context) -> None:
    # A list of parameters that the parser takes for the text of the macro.
    found = _PARAMETERS.match(walk.text(node))
    if found and not all(map(_PARAMETER.fullmatch, found[1].split(b","))):
        walk.report("macro parameter without a name", node)
    if not walk.is_touched(node):
        return
    if _JOINED.match(walk.text(node)):
        walk.report("macro without a blank behind its name", node)
    name = node.child_by_field_name("name")
    # In a file as it is, a macro of nothing may be there for what uses it.
    added = walk.touched is not None and node.child_by_field_name("value") is None
    if name is not None and added and is_used(walk, name):
        walk.report("macro of nothing that the file uses", node)


def _include(walk: Walk, node: Node, context: Context) -> None:
    path = node.child_by_field_name("path")
    if path is not None and path.type != "identifier" and walk.text(path)[-2:-1] == b"/":
        walk.report("include of a folder", node)
    if path is not None and path.type == "system_lib_string" and context.inside:
        walk.report("declarations of a header within others", node)


def _directive(walk: Walk, node: Node, context: Context) -> None:
    # Among fields the parser knows no includes.
    around = walk.parent(node)
    among_fields = around is not None and around.type == "field_declaration_list"
    if among_fields and re.match(rb"\s*#\s*include\s*<", walk.text(node)):
        walk.report("declarations of a header within others", node)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(_STATEMENTS, _statement),
    "compound_statement": _block,
    "function_definition": _function,
    "labeled_statement": _label,
    "expression_statement": _expression,
    "declaration": _declaration,
    "field_declaration_list": _fields,
    "enumerator": _enumerator,
    "attribute_specifier": _nothing,
    "parameter_list": _parameters,
    "sized_type_specifier": _sized_type,
    "function_declarator": _declarator,
    "macro_type_specifier": _macro,
    "concatenated_string": _strings,
    "cast_expression": _cast,
    "linkage_specification": _linkage,
    **dict.fromkeys(("identifier", "field_identifier", "type_identifier"), _identifier),
    "preproc_include": _include,
    "preproc_call": _directive,
    "preproc_def": _define,
}
