"""Names of Python: functions, classes, comprehensions, ``global``, patterns, type parameters."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from codespec.languages.python.fields import field_uses
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

_BUILTINS = frozenset(name.encode() for name in dir(builtins))
_AMBIENT = frozenset(
    b"__file__ __path__ __class__ __annotations__ reveal_type WindowsError get_ipython display "
    b"basestring long raw_input reduce unichr unicode xrange".split()
)
"""What a module, an interactive session or Python 2 has beside Python's built-in names."""
_EVERYTHING = re.compile(rb"\bimport[ \t(]*\*")
_READ_BY_NAME = {b"locals": False, b"vars": False, b"eval": True, b"exec": True, b"globals": True}
"""Functions that find variables by name, and whether those of the module, too."""
_COMPREHENSIONS = ("list_comprehension", "set_comprehension", "dictionary_comprehension", "generator_expression")
_TARGETS = (
    "pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern", "dictionary_splat_pattern",
    "expression_list", "tuple", "list", "parenthesized_expression", "list_splat", "as_pattern_target",
)  # fmt: skip
_PATTERNS = ("case_pattern", "list_pattern", "tuple_pattern", "union_pattern", "splat_pattern", "as_pattern")
_PATTERN = Role("bind", form="fixed")
"""Of what stands in a pattern of ``match``; told from other roles by having no scope."""


class PythonReader(Reader):
    """The names of a module."""

    watched = frozenset(_READ_BY_NAME)
    keywords = frozenset(each.encode() for each in keyword.kwlist)

    def __init__(self, root: tree_sitter.Node, data: bytes, wanted: Iterable[bytes]) -> None:
        self._declared: dict[tuple[Scope, bytes], str] = {}
        self._read_by_name: list[tuple[Scope, bool]] = []
        wanted = list(wanted)
        self._mangled = any(each.startswith(b"__") and not each.endswith(b"__") for each in wanted)
        super().__init__(root, data, wanted)
        for name in self.names:
            if name.role.kind == "bind" and self._declared.get((name.scope, name.text)) == "global":
                self.outermost.bind(name.text)

    @classmethod
    def tells_all(cls, data: bytes) -> bool:
        return _EVERYTHING.search(data) is None

    @classmethod
    def ambient(cls) -> frozenset[bytes]:
        return _AMBIENT

    def known(self, name: bytes) -> bool:
        return name in _BUILTINS

    def fields(self, renamed: Sequence[Name], old: bytes, new: bytes) -> Sequence[Name]:
        return field_uses(self, self._data, renamed, old, new)

    def variable(self, name: Name) -> Variable | None:
        if name.role.kind == "doubt":
            return None
        found = self._found(name)
        inside = name.scope.kind == "class"
        if self._mangled and any(scope.kind == "class" for scope in name.scope.up()):
            return None
        if inside and name.role.kind == "use" and found[0] is name.scope:
            # Until the class binds it, a name there is the one outside.
            outer = self._looked_up(name.scope.parent, name.text, direct=False)
            if outer[0] is not None or self.known(name.text):
                return None
        return found

    def unsafe(self, variable: Variable, new: bytes) -> bool:
        scope, name = variable
        if scope is self.outermost:
            # Before it is bound, or where it is not, a builtin is what it is.
            return name in _BUILTINS or any(all_ or reading is scope for reading, all_ in self._read_by_name)
        return any(each is scope for reading, _ in self._read_by_name for each in reading.up())

    def _found(self, name: Name) -> Variable:
        declared = self._declared.get((name.scope, name.text))
        if name.role.kind == "bind" and declared is None and name.role.scope is not None:
            return name.role.scope, name.text
        return self._looked_up(name.scope, name.text, direct=True)

    def _looked_up(self, scope: Scope | None, name: bytes, direct: bool) -> Variable:
        while scope is not None:
            declared = self._declared.get((scope, name))
            if declared == "global":
                scope = self.outermost
                break
            seen = direct or scope.kind != "class"
            if declared is None and seen and name in scope.bound:
                return scope, name
            direct = direct and scope.kind == "types"
            scope = scope.parent
        return (scope, name) if scope is not None and name in scope.bound else (None, name)

    def _handlers(self) -> dict[str, Handler]:
        return {
            **dict.fromkeys((*_TARGETS, *_PATTERNS, "relative_import"), self._same),
            **dict.fromkeys(_COMPREHENSIONS, self._comprehension),
            "attribute": self._field_as(attribute=member),
            "call": self._call,
            "keyword_argument": self._field_as(name=member),
            "function_definition": self._function,
            "lambda": self._function,
            "class_definition": self._class,
            "named_expression": self._walrus,
            "assignment": self._field_as(left=binds),
            "augmented_assignment": self._field_as(left=binds),
            "for_statement": self._field_as(left=binds),
            "for_in_clause": self._field_as(left=binds),
            "as_pattern": self._as,
            "delete_statement": self._all_as(binds),
            "global_statement": self._declaration,
            "nonlocal_statement": self._declaration,
            "import_statement": self._import,
            "future_import_statement": self._import,
            "import_from_statement": self._import,
            "type_alias_statement": self._type_alias,
            "case_clause": self._case,
            "dotted_name": self._dotted,
            "class_pattern": self._class_pattern,
            "keyword_pattern": self._keyword_pattern,
            "dict_pattern": self._dict_pattern,
            "member_type": self._member_type,
            "exec_statement": self._exec,
        }

    def _name(self, node: tree_sitter.Node, text: bytes, scope: Scope, role: Role) -> None:
        if role is _PATTERN:
            role = binds(scope) if text != b"_" else MEMBER
        if self._in_comprehension_of_class(scope, role):
            role = DOUBT
        super()._name(node, text, scope, role)

    @staticmethod
    def _in_comprehension_of_class(scope: Scope, role: Role) -> bool:
        return role.kind == "bind" and role.scope is not None and role.scope.kind == "class" and scope.kind == "inner"

    def _call(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        function = node.child_by_field_name("function")
        if function is not None and function.type == "identifier":
            name = function.text or b""
            arguments = node.child_by_field_name("arguments")
            of_object = name == b"vars" and arguments is not None and bool(arguments.named_children)
            if name in _READ_BY_NAME and not of_object:
                self._read_by_name.append((scope, _READ_BY_NAME[name]))
        return self._rest(node, scope, role)

    def _function(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        types = self._types(node, scope)
        inner = self._scope("function", node, types)
        of = {"name": (scope, binds(scope)), "return_type": (types, USE), "body": (inner, USE)}
        for child, where, as_what in self._fields(node, scope, of):
            if child.type in ("parameters", "lambda_parameters"):
                for parameter in child.children:
                    yield from self._parameter(parameter, scope, types, inner)
            elif child.type == "type_parameter":
                yield from self._type_parameters(child, types)
            else:
                yield child, where, as_what

    def _parameter(self, node: tree_sitter.Node, scope: Scope, types: Scope, inner: Scope) -> Iterator[Step]:
        bind = (inner, binds(inner))
        if node.type in ("default_parameter", "typed_default_parameter"):
            yield from self._fields(node, scope, {"name": bind, "type": (types, USE)})
        elif node.type == "typed_parameter":
            for index, child in enumerate(node.children):
                typed = node.field_name_for_child(index) == "type"
                yield (child, types, USE) if typed else (child, *bind)
        else:
            yield (node, *bind)

    def _types(self, node: tree_sitter.Node, scope: Scope) -> Scope:
        """The scope of type parameters, or the one around where there are none."""
        has = any(child.type == "type_parameter" for child in node.children)
        return self._scope("types", node, scope) if has else scope

    def _type_parameters(self, node: tree_sitter.Node, types: Scope) -> Iterator[Step]:
        for child in node.named_children:
            inner = _unwrapped(child)
            parts = inner.named_children if inner.type in ("constrained_type", "splat_type") else [inner]
            for index, part in enumerate(parts):
                yield _unwrapped(part), types, binds(types) if not index else USE

    def _class(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        types = self._types(node, scope)
        inner = self._scope("class", node, types)
        of = {"name": (scope, binds(scope)), "superclasses": (types, USE), "body": (inner, USE)}
        for child, where, as_what in self._fields(node, scope, of):
            if child.type == "type_parameter":
                yield from self._type_parameters(child, types)
            else:
                yield child, where, as_what

    def _comprehension(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        inner = self._scope("inner", node, scope)
        first = next((child for child in node.children if child.type == "for_in_clause"), None)
        for child in node.children:
            if child == first:
                # The first iterable is computed outside.
                yield from self._fields(child, inner, {"left": (inner, binds(inner)), "right": (scope, USE)})
            else:
                yield child, inner, USE

    def _walrus(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        outer = next(each for each in scope.up() if each.kind != "inner")
        return self._fields(node, scope, {"name": (scope if outer.kind == "class" else outer, binds(outer))})

    def _as(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        if role is _PATTERN:
            yield from self._same(node, scope, role)
            return
        for child in node.children:
            yield child, scope, binds(scope) if child.type == "as_pattern_target" else USE

    def _declaration(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        kind = node.type.removesuffix("_statement")
        for child in node.named_children:
            self._declared[(scope, self._data[child.start_byte : child.end_byte])] = kind
            yield child, scope, USE

    def _import(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        named = Role("bind", scope, form="fixed")
        module = node.child_by_field_name("module_name")
        for child in node.named_children:
            if child == module:
                yield child, scope, MEMBER
            elif child.type == "aliased_import":
                yield from self._fields(child, scope, {"name": (scope, MEMBER), "alias": (scope, binds(scope))})
            elif child.type == "dotted_name":
                for index, part in enumerate(child.named_children):
                    yield part, scope, named if not index else MEMBER

    def _type_alias(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        inner = self._scope("types", node, scope)
        for child, _, _ in self._fields(node, scope, {}):
            left = _unwrapped(child)
            if child != node.child_by_field_name("left"):
                yield child, inner, USE
                continue
            for part in left.named_children if left.type == "generic_type" else [left]:
                if part.type == "type_parameter":
                    yield from self._type_parameters(part, inner)
                else:
                    yield part, scope, binds(scope)

    def _member_type(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        for index, child in enumerate(node.named_children):
            yield child, scope, USE if not index else MEMBER

    def _case(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        for child in node.children:
            yield child, scope, _PATTERN if child.type == "case_pattern" else USE

    def _dotted(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        parts = node.named_children
        if role is _PATTERN and len(parts) > 1:
            role = USE  # a value
        for index, child in enumerate(parts):
            yield child, scope, role if not index else MEMBER

    def _class_pattern(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        for index, child in enumerate(node.named_children):
            yield child, scope, USE if not index else _PATTERN

    def _exec(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        self._read_by_name.append((scope, True))
        return self._rest(node, scope, role)

    def _keyword_pattern(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        for index, child in enumerate(node.named_children):
            yield child, scope, MEMBER if not index else _PATTERN

    def _dict_pattern(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        return self._fields(node, scope, {"key": (scope, USE)}, _PATTERN)


def _unwrapped(node: tree_sitter.Node) -> tree_sitter.Node:
    """What is in nodes that only say that it is a type."""
    while node.type == "type" and node.named_children:
        node = node.named_children[0]
    return node
