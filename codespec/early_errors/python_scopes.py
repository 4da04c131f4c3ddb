"""Python: parameters, and names that are of another scope (``global``, ``nonlocal``)."""

from __future__ import annotations

from collections.abc import Iterator

from codespec.early_errors.walk import Node, Walk, named, repeated

_SCOPES = frozenset({"function_definition", "class_definition", "lambda"})
_COMPREHENSIONS = frozenset(
    {"list_comprehension", "set_comprehension", "dictionary_comprehension", "generator_expression"}
)
_DEFAULTS = frozenset({"default_parameter", "typed_default_parameter"})


def parameter_names(parameters: Node) -> Iterator[Node]:
    """The identifiers of parameters."""
    for parameter in named(parameters):
        name = parameter.child_by_field_name("name")
        if name is None:
            name = parameter if parameter.type == "identifier" else next(iter(named(parameter)), None)
        if name is not None and name.type in ("list_splat_pattern", "dictionary_splat_pattern"):
            name = next(iter(named(name)), None)
        if name is not None and name.type == "identifier":
            yield name


def check_parameters(walk: Walk, parameters: Node) -> None:
    """Report parameters of the same name, or in a wrong order."""
    for each in repeated((walk.text(name), name) for name in parameter_names(parameters)):
        walk.report("parameter twice", each)
    default = starred = closed = False
    listed = list(named(parameters))
    for index, parameter in enumerate(listed):
        kind = _kind(parameter)
        if closed or (kind == "list_splat_pattern" and starred) or kind == "tuple_pattern":
            walk.report("order of parameters", parameter)
        elif kind in _DEFAULTS:
            default = True
        elif kind in ("list_splat_pattern", "keyword_separator"):
            if starred or (kind == "keyword_separator" and not _is_followed(listed[index + 1 :])):
                walk.report("order of parameters", parameter)
            starred = True
        elif kind == "positional_separator":
            if starred or index == 0:
                walk.report("order of parameters", parameter)
        elif kind == "dictionary_splat_pattern":
            closed = True
        elif default and not starred:
            walk.report("order of parameters", parameter)


def _kind(parameter: Node) -> str:
    first = next(iter(named(parameter)), None) if parameter.type == "typed_parameter" else None
    return (first or parameter).type


def _is_followed(parameters: list[Node]) -> bool:
    """Whether there is a parameter to give by its name after ``*``."""
    return bool(parameters) and _kind(parameters[0]) not in ("dictionary_splat_pattern", "positional_separator")


def check_global_statements(walk: Walk, scope: Node, body: Node) -> None:
    """Report names that a scope uses before it says that they are of another one, or that are its parameters."""
    statements = list(_global_statements(walk, body))
    if not statements:
        return
    parameters = scope.child_by_field_name("parameters") if scope is not body else None
    own = {walk.text(name) for name in parameter_names(parameters)} if parameters is not None else set()
    used: dict[bytes, int] = {}
    for name in _own(body):
        if name.type == "identifier" and _is_variable(name):
            used.setdefault(walk.text(name), name.start_byte)
    for statement in statements:
        for name in named(statement):
            text = walk.text(name)
            if text in own or used.get(text, statement.start_byte) < statement.start_byte:
                walk.report("used before its declaration", name)
            elif statement.type == "nonlocal_statement" and not _is_bound(walk, scope, text):
                walk.report("nonlocal that is unknown", name)


def _global_statements(walk: Walk, node: Node) -> Iterator[Node]:
    text = walk.text(node)
    if b"global" not in text and b"nonlocal" not in text:
        return
    if node.type in ("global_statement", "nonlocal_statement"):
        yield node
    for child in node.children:
        if child.is_named and child.type not in _SCOPES:
            yield from _global_statements(walk, child)


def _own(node: Node) -> Iterator[Node]:
    """The nodes of a scope, the names of its functions and classes among them."""
    for child in node.children:
        if not child.is_named:
            continue
        if child.type in _SCOPES:
            inner = [child.child_by_field_name("name"), child.child_by_field_name("superclasses")]
            yield from (each for each in inner[:1] if each is not None)
            for each in (each for each in inner[1:] if each is not None):
                yield from _own(each)
        elif child.type not in _COMPREHENSIONS:
            yield child
            yield from _own(child)


def _is_variable(name: Node) -> bool:
    parent = name.parent
    if parent is None:
        return True
    if parent.type in ("global_statement", "nonlocal_statement"):
        return False
    field = {"attribute": "attribute", "keyword_argument": "name"}.get(parent.type)
    other = parent.child_by_field_name(field) if field else None
    if parent.type in ("dotted_name", "aliased_import", "import_statement", "import_from_statement"):
        return False
    return other is None or other.start_byte != name.start_byte


def _is_bound(walk: Walk, scope: Node, name: bytes) -> bool:
    """Whether a function around ``scope`` may have a variable of this name."""
    node = scope.parent
    while node is not None:
        if name == b"__class__" and node.type == "class_definition":
            return True
        if node.type in ("function_definition", "lambda") and name in walk.text(node).replace(b"nonlocal " + name, b""):
            return True
        node = node.parent
    return False
