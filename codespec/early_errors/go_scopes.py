"""Go: names that a block declares, and fields and methods of types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codespec.early_errors.walk import Node, Walk, named, repeated

_SPECS = frozenset({"var_spec", "const_spec", "type_spec", "type_alias"})
_RECEIVED = frozenset({"call_expression"})
_PAIRS = frozenset({"call_expression", "index_expression", "type_assertion_expression", "unary_expression"})


def specs(declaration: Node) -> Iterator[Node]:
    """The specifications of a declaration, in parentheses or not."""
    for child in named(declaration):
        for each in named(child) if child.type == "var_spec_list" else (child,):
            if each.type in _SPECS:
                yield each


def parameter_names(parameters: Node | None) -> Iterator[Node]:
    """The identifiers of parameters."""
    if parameters is not None and parameters.type == "parameter_list":
        for declaration in named(parameters):
            yield from declaration.children_by_field_name("name")


def check_scope(walk: Walk, statements: Iterable[Node], parameters: Iterable[Node] = ()) -> None:
    """Report what a block declares twice, and ``:=`` that declares nothing.

    Args:
        parameters: names that the block has already.
    """
    known: set[bytes] = set()
    for name in parameters:
        _declare(walk, known, name)
    for statement in statements:
        while statement is not None and statement.type == "labeled_statement":
            walk.spend()
            statement = list(named(statement))[-1]
        kind = statement.type if statement is not None else ""
        if kind == "short_var_declaration":
            _check_short(walk, known, statement)
        elif kind in ("var_declaration", "const_declaration", "type_declaration"):
            for spec in specs(statement):
                for name in spec.children_by_field_name("name"):
                    _declare(walk, known, name)


def _declare(walk: Walk, known: set[bytes], name: Node) -> None:
    text = walk.text(name)
    if text == b",":
        return
    if text in known:
        walk.report("redeclared", name)
    if text != b"_":
        known.add(text)


def _check_short(walk: Walk, known: set[bytes], statement: Node) -> None:
    left = statement.child_by_field_name("left")
    names = [node for node in named(left) if node.type == "identifier"] if left is not None else []
    for node in repeated((walk.text(name), name) for name in names if walk.text(name) != b"_"):
        walk.report("redeclared", node)
    new = {walk.text(name) for name in names} - known - {b"_"}
    if not new and left is not None and len(names) == len(list(named(left))):
        walk.report("nothing new declared", left)
    known |= new


def check_file(walk: Walk, declarations: list[Node]) -> None:
    """Report names that a file declares twice, methods among them."""
    names: list[tuple[bytes, Node]] = []
    for node in repeated((walk.text(each), each) for each in _imports(declarations)):
        walk.report("imported twice", node)
    for declaration in declarations:
        name = declaration.child_by_field_name("name")
        if declaration.type == "function_declaration" and name is not None:
            names.append((walk.text(name), name))
        elif declaration.type == "method_declaration" and name is not None:
            names.append((_receiver(walk, declaration) + b"." + walk.text(name), name))
        elif declaration.type in ("var_declaration", "const_declaration", "type_declaration"):
            for spec in specs(declaration):
                names += ((walk.text(each), each) for each in spec.children_by_field_name("name"))
                names += _field_names(walk, spec)
    anonymous = (b"_", b"init", b",")
    for node in repeated((text, node) for text, node in names if text not in anonymous and not text.endswith(b"._")):
        walk.report("redeclared", node)


def _imports(declarations: list[Node]) -> Iterator[Node]:
    """The imports of a file that have no name of their own."""
    for declaration in declarations:
        if declaration.type == "import_declaration":
            for child in named(declaration):
                specs = list(named(child)) if child.type == "import_spec_list" else [child]
                yield from (spec for spec in specs if spec.child_by_field_name("name") is None)


def _receiver(walk: Walk, method: Node) -> bytes:
    receiver = method.child_by_field_name("receiver")
    declaration = next(iter(named(receiver)), None) if receiver is not None else None
    kind = declaration.child_by_field_name("type") if declaration is not None else None
    return walk.text(kind).strip(b"*() \t").split(b"[")[0] if kind is not None else b""


def _field_names(walk: Walk, spec: Node) -> Iterator[tuple[bytes, Node]]:
    """A struct's fields, as if they were methods of it."""
    kind, name = spec.child_by_field_name("type"), spec.child_by_field_name("name")
    if spec.type == "type_spec" and kind is not None and kind.type == "struct_type" and name is not None:
        for field, node in fields(walk, kind):
            yield walk.text(name) + b"." + field, node


def fields(walk: Walk, structure: Node) -> Iterator[tuple[bytes, Node]]:
    """The names of a struct's fields, with their nodes; an embedded type has its own name."""
    for members in named(structure):
        for member in named(members):
            names = [each for each in member.children_by_field_name("name") if each.is_named]
            kind = member.child_by_field_name("type")
            if not names and kind is not None:
                embedded = walk.text(kind).split(b"[")[0].split(b".")[-1].strip(b"* \t")
                yield embedded, kind
            yield from ((walk.text(each), each) for each in names if walk.text(each) != b"_")


def check_counts(walk: Walk, left: int, right: Node | None) -> None:
    """Report values that are more or fewer than what they are assigned to, where calls cannot explain it."""
    values = list(named(right)) if right is not None else []
    if not values or len(values) == left:
        return
    first = values[0]
    while first.type == "parenthesized_expression" and first.child_count:
        walk.spend()
        first = next(iter(named(first)))
    one = _PAIRS if left == 2 else _RECEIVED
    if len(values) > 1 or left < 1 or first.type not in one:
        walk.report("number of values", right or first)
