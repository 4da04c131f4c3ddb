"""Names of Go: packages, blocks that begin where a declaration ends, ``:=``, keys of literals, type parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from codespec.syntax.scopes.reading import (
    DOUBT,
    MEMBER,
    USE,
    Handler,
    Name,
    Reader,
    Role,
    Scope,
    Step,
    Variable,
    binds,
    member,
)  # fmt: skip

if TYPE_CHECKING:
    import tree_sitter

_KNOWN = frozenset(
    b"any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string uint "
    b"uint8 uint16 uint32 uint64 uintptr true false iota nil append cap clear close complex copy delete imag len make "
    b"max min new panic print println real recover".split()
)
_KEYWORDS = frozenset(
    b"break case chan const continue default defer else fallthrough for func go goto if import interface map package "
    b"range return select struct switch type var nil true false iota".split()
)
_BLOCKS = (
    "block", "if_statement", "for_statement", "expression_switch_statement", "expression_case", "type_case",
    "default_case", "communication_case",
)  # fmt: skip
_FUNCTIONS = ("function_declaration", "method_declaration", "func_literal")
_SIGNATURES = ("function_type", "method_elem", "method_spec")
_LISTS = ("slice_type", "array_type", "implicit_length_array_type")


class GoReader(Reader):
    """The names of a file; what its package has elsewhere is bound nowhere."""

    keywords = _KEYWORDS

    def known(self, name: bytes) -> bool:
        return name in _KNOWN

    def unsafe(self, variable: Variable, new: bytes) -> bool:
        scope, name = variable
        return scope is self.outermost and bool({name, new} & {b"init", b"main"})

    def variable(self, name: Name) -> Variable | None:
        if name.role.kind == "doubt" or name.text == b"_":
            return None
        if name.role.kind == "bind" and name.role.scope is not None:
            return name.role.scope, name.text
        for scope in name.scope.up():
            bound, after = scope.bound.get(name.text, (0, 0))
            if bound and name.start >= after:
                return scope, name.text
        return None, name.text

    def _handlers(self) -> dict[str, Handler]:
        return {
            **dict.fromkeys(_BLOCKS, self._block),
            **dict.fromkeys(_FUNCTIONS, self._function),
            **dict.fromkeys(_SIGNATURES, self._signature),
            **dict.fromkeys(("const_spec", "var_spec"), self._spec),
            **dict.fromkeys(("type_spec", "type_alias"), self._type),
            **dict.fromkeys(("short_var_declaration", "range_clause", "receive_statement"), self._short),
            "expression_list": self._same,
            "type_parameter_declaration": self._field_as(name=binds),
            "type_switch_statement": self._type_switch,
            "import_spec": self._field_as(name=binds),
            "package_clause": self._all_as(member),
            "qualified_type": self._field_as(name=member),
            "field_declaration": self._field,
            "composite_literal": self._literal,
        }

    def _name(self, node: tree_sitter.Node, text: bytes, scope: Scope, role: Role) -> None:
        if node.type in ("field_identifier", "label_name"):
            role = MEMBER
        if role.kind == "bind" and role.form == "short" and role.scope is not None:
            # Of `:=`: what the block has already is only assigned.
            role = USE if text in role.scope.bound else role._replace(form="")
        super()._name(node, text, scope, role)

    def _block(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        return self._rest(node, self._scope("block", node, scope), USE)

    def _function(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        types = self._scope("types", node, scope)
        inner = self._scope("function", node, types)
        for child, where, as_what in self._fields(node, types, {"name": (scope, binds(scope))}):
            if child.type == "parameter_list":
                receiver = child == node.child_by_field_name("receiver")
                yield from self._parameters(child, inner, types, receiver)
            elif child.type == "block":
                yield from self._rest(child, inner, USE)
            else:
                yield child, where, as_what

    def _signature(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        nowhere = self._scope("function", node, scope)
        for child in node.children:
            if child.type == "parameter_list":
                yield from self._parameters(child, nowhere, scope, False)
            else:
                yield child, scope, USE

    def _parameters(self, node: tree_sitter.Node, inner: Scope, types: Scope, receiver: bool) -> Iterator[Step]:
        for parameter in node.named_children:
            for child, where, as_what in self._fields(parameter, types, {"name": (inner, binds(inner))}):
                if receiver and as_what is USE:
                    yield from self._receiver(child, types)
                else:
                    yield child, where, as_what

    def _receiver(self, node: tree_sitter.Node, types: Scope) -> Iterator[Step]:
        """The type of a receiver, whose arguments are names of its own."""
        while node.type in ("pointer_type", "parenthesized_type") and node.named_children:
            node = node.named_children[0]
        for child in node.children if node.type == "generic_type" else [node]:
            if child.type != "type_arguments":
                yield child, types, USE
                continue
            for each in child.named_children:
                names = each.named_children if each.type == "type_elem" else [each]
                yield from ((name, types, binds(types)) for name in names)

    def _spec(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        return self._fields(node, scope, {"name": (scope, self._bind_behind(node, scope))})

    def _bind_behind(self, node: tree_sitter.Node, scope: Scope) -> Role:
        """Of what is bound from the end of a node on, or everywhere in the package."""
        return Role("bind", scope, after=node.end_byte if scope is not self.outermost else 0)

    def _type(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        inner = self._scope("types", node, scope)
        after = node.start_byte if scope is not self.outermost else 0
        return self._fields(node, inner, {"name": (scope, Role("bind", scope, after=after))})

    def _short(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        declares = node.type == "short_var_declaration" or any(child.type == ":=" for child in node.children)
        left = self._bind_behind(node, scope)._replace(form="short") if declares else USE
        return self._fields(node, scope, {"left": (scope, left)})

    def _type_switch(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        inner = self._scope("block", node, scope)
        value = node.child_by_field_name("value")
        after = value.end_byte if value is not None else 0
        alias = self._scope("block", node, inner)
        for child, where, as_what in self._fields(node, alias, {"alias": (alias, Role("bind", alias, after=after))}):
            yield child, inner if child == node.child_by_field_name("initializer") else where, as_what

    def _field(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        if node.child_by_field_name("name") is not None:
            yield from self._rest(node, scope, role)
            return
        for child in node.children:  # a type that is embedded, which names the field, too
            while child.type == "pointer_type" and child.named_children:
                child = child.named_children[0]
            for part in child.children if child.type == "generic_type" else [child]:
                yield part, scope, Role("use", form="fixed") if part.type == "type_identifier" else USE

    def _literal(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        type_ = node.child_by_field_name("type")
        for child in node.children:
            if child.type == "literal_value":
                yield from self._elements(child, type_, scope)
            else:
                yield child, scope, USE

    def _elements(self, node: tree_sitter.Node, type_: tree_sitter.Node | None, scope: Scope) -> Iterator[Step]:
        """What is in the braces of a literal of a type; None: of one that is not known here."""
        waiting = [(node, type_)]
        while waiting:
            node, type_ = waiting.pop()
            kind = type_.type if type_ is not None else ""
            key_role = USE if kind == "map_type" or kind in _LISTS else MEMBER if kind == "struct_type" else DOUBT
            for child in node.named_children:
                for part, of_key in _parts(child):
                    inner = part.named_children[0] if part.type == "literal_element" and part.named_children else part
                    if inner.type == "literal_value":
                        waiting.append((inner, _element(type_, of_key)))
                    else:
                        yield inner, scope, key_role if of_key and inner.type == "identifier" else USE


def _parts(node: tree_sitter.Node) -> Iterator[tuple[tree_sitter.Node, bool]]:
    """The key and the value of an element, and whether it is the key."""
    if node.type != "keyed_element":
        yield node, False
        return
    key = node.child_by_field_name("key") or node.named_children[0]
    for child in node.named_children:
        yield child, child == key


def _element(type_: tree_sitter.Node | None, of_key: bool) -> tree_sitter.Node | None:
    """The type of the keys or values of a type that says so."""
    if type_ is None:
        return None
    found = type_.child_by_field_name("key" if of_key else "value" if type_.type == "map_type" else "element")
    while found is not None and found.type == "pointer_type" and found.named_children:
        found = found.named_children[0]
    return found
