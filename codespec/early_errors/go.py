"""Go: what the compiler refuses by the file alone. Types, and names of other files, are not known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from codespec.early_errors.go_lines import check_lines
from codespec.early_errors.go_scopes import check_counts, check_file, check_scope, fields, parameter_names, specs
from codespec.early_errors.walk import Handler, Node, Walk, has_token, named, repeated

_TOP_LEVEL = frozenset(
    {
        "package_clause", "import_declaration", "function_declaration", "method_declaration", "const_declaration",
        "type_declaration", "var_declaration",
    }
)  # fmt: skip
_NAMES = frozenset({"identifier", "blank_identifier", "iota", "nil", "true", "false"})
_LITERALS = frozenset({"int_literal", "interpreted_string_literal", "raw_string_literal", "rune_literal"})
_VALUES = _LITERALS | {"call_expression", "binary_expression", "func_literal", "composite_literal", "float_literal"}
_LABEL = re.compile(rb"(?:break|continue|goto)[ \t]+[^\W\d]|^[^\S\n]*\w+[ \t]*:(?!=)", re.MULTILINE)


class Context(NamedTuple):
    """What surrounds a node.

    Attributes:
        breaks: whether ``break`` may stand there.
        labels: of statements around that ``break`` may leave.
        loop_labels: those of them that are of loops.
        targets: the labels of the function.
    """

    loop: bool = False
    breaks: bool = False
    labels: frozenset[bytes] = frozenset()
    loop_labels: frozenset[bytes] = frozenset()
    targets: frozenset[bytes] = frozenset()


def check(walk: Walk, root: Node, path: str) -> None:
    """Walk over a file."""
    walk.inspect = check_lines
    declarations = list(named(root))
    late = False
    for index, node in enumerate(declarations):
        if node.type not in _TOP_LEVEL or (node.type == "package_clause") != (index == 0):
            walk.report("statement outside a function", node, node.children[0] if node.child_count else None)
        late = late or node.type not in ("package_clause", "import_declaration")
        if late and node.type == "import_declaration":
            walk.report("import behind declarations", node, node.children[0])
        walk.visit(node, Context())
    check_file(walk, declarations)


def _function(walk: Walk, node: Node, context: Context) -> None:
    body, own = node.child_by_field_name("body"), []
    for field in ("receiver", "parameters", "result"):
        parameters = node.child_by_field_name(field)
        if parameters is not None and parameters.type == "parameter_list":
            _check_parameters(walk, parameters, variadic=field == "parameters")
            own += [name for name in parameter_names(parameters) if name.is_named]
            if field == "receiver" and len(list(named(parameters))) != 1:
                walk.report("receiver", parameters)
        if parameters is not None:
            walk.visit(parameters, context)
    if body is not None:
        check_scope(walk, statements(body), own)
        walk.visit(body, Context(targets=_check_labels(walk, body)))
    else:
        check_scope(walk, (), own)


def _check_parameters(walk: Walk, parameters: Node, variadic: bool) -> None:
    listed = list(named(parameters))
    unnamed = [each.child_by_field_name("name") is None for each in listed]
    # Of many names before one type the parser takes the first for types.
    surely = [none and _type_of(each) != "type_identifier" for none, each in zip(unnamed, listed, strict=True)]
    if not all(unnamed) and (unnamed[-1] or any(surely)):
        walk.report("parameters with and without names", parameters)
    for index, each in enumerate(listed):
        if each.type == "variadic_parameter_declaration" and not (variadic and index == len(listed) - 1):
            walk.report("variadic parameter before others", each)


def _type_of(parameter: Node) -> str:
    found = parameter.child_by_field_name("type")
    return found.type if found is not None else ""


def statements(block: Node | None) -> Iterator[Node]:
    """The statements of a block or of a case."""
    for child in named(block) if block is not None else ():
        if child.type == "statement_list":
            yield from named(child)


def _check_labels(walk: Walk, body: Node) -> frozenset[bytes]:
    """The labels of a function; reports those that are defined twice or not used."""
    if not walk.mentions(body, _LABEL):
        return frozenset()
    labels: list[tuple[bytes, Node]] = []
    used: set[bytes] = set()
    waiting = [body]
    while waiting:
        around = waiting.pop()
        for child in around.children:
            walk.spend()
            if child.type == "label_name":
                if around.type == "labeled_statement":
                    labels.append((walk.text(child), child))
                else:
                    used.add(walk.text(child))
            elif child.type != "func_literal" and child.child_count:
                waiting.append(child)
    for node in repeated(sorted(labels, key=lambda label: label[1].start_byte)):
        walk.report("label twice", node)
    for name, node in labels:
        if name not in used and name != b"_":
            walk.report("label that nothing goes to", node)
    return frozenset(name for name, _ in labels)


def _block(walk: Walk, node: Node, context: Context) -> None:
    around = walk.parent(node)
    if around is None or around.type not in _FUNCTIONS:
        check_scope(walk, statements(node))
    walk.visit_children(node, context)


def _for(walk: Walk, node: Node, context: Context) -> None:
    body = node.child_by_field_name("body")
    for child in named(node):
        inside = body is not None and child.start_byte == body.start_byte
        walk.visit(child, context._replace(loop=True, breaks=True) if inside else context)


def _for_clause(walk: Walk, node: Node, context: Context) -> None:
    first, last = node.child_by_field_name("initializer"), node.child_by_field_name("update")
    if first is not None:
        check_scope(walk, [first])
    if last is not None and last.type == "short_var_declaration":
        walk.report("declaration in a post statement", last)
    walk.visit_children(node, context)


def _with_initializer(walk: Walk, node: Node, context: Context) -> None:
    first = node.child_by_field_name("initializer")
    if first is not None:
        check_scope(walk, [first])
    walk.visit_children(node, context)


def _switch(walk: Walk, node: Node, context: Context) -> None:
    cases = [child for child in named(node) if child.type.endswith("_case")]
    for default in [case for case in cases if case.type == "default_case"][1:]:
        walk.report("default twice", default, default.children[0])
    values = [value for case in cases for value in _values(case)]
    for value in repeated((walk.text(value), value) for value in values):
        walk.report("case twice", value)
    first = node.child_by_field_name("initializer")
    if first is not None:
        check_scope(walk, [first])
    inner = context._replace(breaks=True)
    for child in named(node):
        if child in cases:
            falls = node.type == "expression_switch_statement" and child != cases[-1]
            _case(walk, child, inner, falls)
        else:
            walk.visit(child, context)


def _values(case: Node) -> list[Node]:
    """The constants of a case, or its types."""
    if case.type == "type_case":
        return [each for each in case.children_by_field_name("type") if each.is_named]
    value = case.child_by_field_name("value") if case.type == "expression_case" else None
    return [each for each in named(value) if each.type in _LITERALS] if value is not None else []


def _case(walk: Walk, case: Node, context: Context, falls: bool) -> None:
    if not walk.is_touched(case):
        walk.visit(case, context)
        return
    listed = list(statements(case))
    received = case.child_by_field_name("communication")
    first = [received] if received is not None and received.type == "short_var_declaration" else []
    check_scope(walk, [*first, *listed])
    last = listed[-1] if listed else None
    inner = case
    for child in named(case):
        if child.type == "statement_list":
            inner = child
        else:
            walk.visit(child, context, within=case)
    for statement in listed:
        if not (falls and statement is last and statement.type == "fallthrough_statement"):
            walk.visit(statement, context, within=inner)


def _fallthrough(walk: Walk, node: Node, context: Context) -> None:
    walk.report("fallthrough that is not the last of a case", node)


def _labeled(walk: Walk, node: Node, context: Context) -> None:
    label = node.child_by_field_name("label")
    rest = [child for child in named(node) if child.type != "label_name"]
    if label is None or not rest:
        return
    name, kind = frozenset((walk.text(label),)), rest[0].type
    walk.spend(len(context.labels))
    labels = context.labels | (name if kind in _BREAKABLE else frozenset())
    loops = context.loop_labels | (name if kind == "for_statement" else frozenset())
    walk.visit(rest[0], context._replace(labels=labels, loop_labels=loops))


def _jump(walk: Walk, node: Node, context: Context) -> None:
    label = next(iter(named(node)), None)
    word = node.type.split("_")[0]
    if label is not None:
        known = {"break": context.labels, "continue": context.loop_labels, "goto": context.targets}[word]
        if walk.text(label) not in known:
            walk.report("unknown label", label)
    elif (word == "break" and not context.breaks) or (word == "continue" and not context.loop):
        walk.report(f"{word} outside a loop", node)


def _short(walk: Walk, node: Node, context: Context) -> None:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    targets = list(named(left)) if left is not None else []
    for target in targets:
        if target.type not in _NAMES:
            walk.report("declared without being a name", target)
    check_counts(walk, len(targets), right)
    walk.visit_children(node, context)


def _assignment(walk: Walk, node: Node, context: Context) -> None:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    targets = list(named(left)) if left is not None else []
    for target in targets:
        _check_target(walk, target)
    if has_token(node, "="):
        check_counts(walk, len(targets), right)
    elif len(targets) > 1 or (right is not None and len(list(named(right))) > 1):
        walk.report("number of values", node)
    walk.visit_children(node, context)


def _check_target(walk: Walk, target: Node) -> None:
    # The parser takes ``*(*[]byte)(x)`` for a call.
    value = target.type in _VALUES and not walk.starts(target, b"*")
    if value or (target.type == "unary_expression" and not has_token(target, "*")):
        walk.report("assigned to", target)


def _increment(walk: Walk, node: Node, context: Context) -> None:
    for target in named(node):
        _check_target(walk, target)
    walk.visit_children(node, context)


def _expression(walk: Walk, node: Node, context: Context) -> None:
    """A statement that is an expression is a call, or receives something."""
    inner = next(iter(named(node)), None)
    while inner is not None and inner.type == "parenthesized_expression":
        walk.spend()
        inner = next(iter(named(inner)), None)
    received = inner is not None and inner.type == "unary_expression" and has_token(inner, "<-")
    # The parser takes the call of an instance of a generic function for a conversion.
    if inner is not None and not received and inner.type not in ("call_expression", "type_conversion_expression"):
        walk.report("expression that is not used", inner)
    walk.visit_children(node, context)


def _call(walk: Walk, node: Node, context: Context) -> None:
    called = next(iter(named(node)), None)
    if called is not None and called.type not in ("call_expression", "type_conversion_expression"):
        walk.report("go or defer without a call", called)
    walk.visit_children(node, context)


def _declaration(walk: Walk, node: Node, context: Context) -> None:
    listed = list(specs(node))
    if node.type == "const_declaration" and listed and listed[0].child_by_field_name("value") is None:
        walk.report("declared without a value", listed[0])
    for spec in listed:
        if spec.type in ("var_spec", "const_spec"):
            names = [each for each in spec.children_by_field_name("name") if each.is_named]
            if spec.type == "var_spec" and len(list(named(spec))) == len(names):
                walk.report("declared without a value", spec)
            check_counts(walk, len(names), spec.child_by_field_name("value"))
    walk.visit_children(node, context)


def _struct(walk: Walk, node: Node, context: Context) -> None:
    for each in repeated(fields(walk, node)):
        walk.report("field twice", each)
    walk.visit_children(node, context)


def _literal(walk: Walk, node: Node, context: Context) -> None:
    """Of a map the keys may be variables; those of others are fields."""
    around = walk.parent(node)
    kind = around.child_by_field_name("type") if around is not None else None
    kinds = _LITERALS if kind is not None and kind.type == "map_type" else _LITERALS | {"identifier"}
    keys = [next(iter(named(element)), None) for element in named(node) if element.type == "keyed_element"]
    inner = [next(iter(named(key)), None) for key in keys if key is not None]
    for each in repeated((walk.text(key), key) for key in inner if key is not None and key.type in kinds):
        walk.report("key twice", each)
    walk.visit_children(node, context)


def _interface(walk: Walk, node: Node, context: Context) -> None:
    names = [each.child_by_field_name("name") for each in named(node) if each.type == "method_elem"]
    for each in repeated((walk.text(name), name) for name in names if name is not None):
        walk.report("method twice", each)
    walk.visit_children(node, context)


_FUNCTIONS = frozenset({"function_declaration", "method_declaration", "func_literal"})
_SWITCHES = frozenset({"expression_switch_statement", "type_switch_statement", "select_statement"})
_BREAKABLE = _SWITCHES | {"for_statement"}
_NO_PATH = re.compile(rb"""[\s!"#$%&'()*,:;<=>?\[\]^`{|}]""")


def _import(walk: Walk, node: Node, context: Context) -> None:
    path = node.child_by_field_name("path")
    said = walk.text(path)[1:-1] if path is not None else b""
    if not said:
        walk.report("import of nothing", node)
    elif _NO_PATH.search(said):
        walk.report("import of what is no path", node)


def _arguments(walk: Walk, node: Node, context: Context) -> None:
    for each in list(named(node))[:-1]:
        if each.type == "variadic_argument":
            walk.report("argument behind a variadic one", each)
    walk.visit_children(node, context)


HANDLERS: dict[str, Handler] = {
    "import_spec": _import,
    "argument_list": _arguments,
    **dict.fromkeys(_FUNCTIONS, _function),
    **dict.fromkeys(_SWITCHES, _switch),
    **dict.fromkeys(("break_statement", "continue_statement", "goto_statement"), _jump),
    **dict.fromkeys(("var_declaration", "const_declaration"), _declaration),
    **dict.fromkeys(("inc_statement", "dec_statement"), _increment),
    **dict.fromkeys(("go_statement", "defer_statement"), _call),
    "block": _block,
    "for_statement": _for,
    "for_clause": _for_clause,
    "if_statement": _with_initializer,
    "fallthrough_statement": _fallthrough,
    "labeled_statement": _labeled,
    "short_var_declaration": _short,
    "assignment_statement": _assignment,
    "expression_statement": _expression,
    "literal_value": _literal,
    "struct_type": _struct,
    "interface_type": _interface,
}
