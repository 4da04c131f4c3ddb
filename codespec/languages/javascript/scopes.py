"""Names of JavaScript and TypeScript: hoisting, destructuring, modules, types beside values, namespaces, JSX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from codespec.syntax.scopes.reading import (
    ANY,
    MEMBER,
    NAMESPACE,
    TYPE,
    USE,
    VALUE,
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

_MODULE = re.compile(rb"^[ \t]*(?:import|export)\b|\brequire[ \t]*\(", re.MULTILINE)
_EXPORTED, _SPACE, _TYPE = Role("use", meaning=ANY), Role("use", meaning=NAMESPACE), Role("use", meaning=TYPE)
_KNOWN = frozenset(
    b"undefined NaN Infinity globalThis window document console process module exports require Object Array String "
    b"Number Boolean Symbol Function Promise Map Set WeakMap WeakSet Date RegExp Error TypeError RangeError JSON Math "
    b"Reflect Proxy Intl parseInt parseFloat isNaN isFinite setTimeout setInterval clearTimeout clearInterval fetch "
    b"URL arguments eval name status event location history self top parent".split()
)
"""Names that mean something where nothing binds them."""
_KEYWORDS = frozenset(
    b"await break case catch class const continue debugger default delete do else enum export extends false finally "
    b"for function if implements import in instanceof interface let new null package private protected public return "
    b"static super switch this throw true try typeof undefined var void while with yield".split()
)
_OWN_TYPES = frozenset(b"any unknown never void string number boolean bigint symbol object".split())
_DECLARED_FUNCTIONS = ("function_declaration", "generator_function_declaration", "function_signature")
_FUNCTIONS = (
    *_DECLARED_FUNCTIONS, "function_expression", "generator_function", "arrow_function", "method_definition",
    "method_signature", "abstract_method_signature", "construct_signature", "call_signature", "function_type",
    "constructor_type",
)  # fmt: skip
_CLASSES = ("class_declaration", "abstract_class_declaration", "class")
_TYPES = ("interface_declaration", "type_alias_declaration")
_PATTERNS = ("object_pattern", "array_pattern", "rest_pattern")
_PARTS = {
    "pair_pattern": "value",
    "assignment_pattern": "left",
    "object_assignment_pattern": "left",
}
"""Of patterns with a default or a key, the field of the names."""
_PROPERTIES = frozenset({"accessibility_modifier", "override_modifier", "readonly"})
_HOISTS = ("function", "outermost", "space", "global")
"""Scopes that ``var`` binds in."""


class JavaScriptReader(Reader):
    """The names of a script or module."""

    watched = frozenset({b"eval"})
    keywords = _KEYWORDS

    def __init__(self, root: tree_sitter.Node, data: bytes, wanted: Iterable[bytes]) -> None:
        # What `declare global` declares is seen from everywhere.
        self._global = Scope("global", 0, len(data), None, False)
        self._evaluated: list[Scope] = []
        self._of_spaces: set[bytes] = set()
        super().__init__(root, data, wanted)
        for name in self.names:
            if name.role.kind == "bind" and name.role.scope is not None and name.role.scope.kind == "space":
                self._of_spaces.add(name.text)

    @classmethod
    def tells_all(cls, data: bytes) -> bool:
        return _MODULE.search(data) is not None

    @classmethod
    def ambient(cls) -> frozenset[bytes]:
        return _globals()

    def known(self, name: bytes) -> bool:
        return name in _KNOWN

    def unsafe(self, variable: Variable, new: bytes) -> bool:
        scope, name = variable
        if b"arguments" in (name, new) or (new in _OWN_TYPES and scope is not None and scope.bound[name][0] & TYPE):
            return True
        return any(each is scope for evaluated in self._evaluated for each in evaluated.up())

    def variable(self, name: Name) -> Variable | None:
        if name.role.kind == "doubt":
            return None
        if name.role.kind == "bind" and name.role.scope is not None:
            return self._whole(name.role.scope), name.text
        for scope in name.scope.up():
            bound, _ = scope.bound.get(name.text, (0, 0))
            if bound & name.role.meaning:
                return self._whole(scope), name.text
            if scope.kind == "with" or (scope.kind == "space" and name.text in self._of_spaces):
                return None  # a property may have the name, or another part of a namespace
        return None, name.text

    def _whole(self, scope: Scope) -> Scope:
        """The scope that several blocks are parts of."""
        return self._global if scope.kind == "global" else scope

    def _scope(self, kind: str, node: tree_sitter.Node, parent: Scope | None) -> Scope:
        return super()._scope(kind, node, parent if parent is not None else self._global)

    def _handlers(self) -> dict[str, Handler]:
        return {
            **dict.fromkeys(_FUNCTIONS, self._function),
            **dict.fromkeys(_CLASSES, self._class),
            **dict.fromkeys(_TYPES, self._type_declaration),
            **dict.fromkeys(_PATTERNS, self._same),
            **dict.fromkeys(_PARTS, self._part),
            **dict.fromkeys(("jsx_opening_element", "jsx_closing_element", "jsx_self_closing_element"), self._element),
            **dict.fromkeys(("internal_module", "module"), self._space),
            **dict.fromkeys(("required_parameter", "optional_parameter"), self._parameter),
            **dict.fromkeys(("variable_declaration", "lexical_declaration", "using_declaration"), self._declaration),
            "statement_block": self._block,
            "switch_body": self._block,
            "for_statement": self._block,
            "class_static_block": self._static_block,
            "for_in_statement": self._for_in,
            "catch_clause": self._catch,
            "with_statement": self._with,
            "variable_declarator": self._declarator,
            "call_expression": self._call,
            "import_clause": self._all_as(_binds_any),
            "namespace_import": self._same,
            "named_imports": self._same,
            "import_specifier": self._import_specifier,
            "import_require_clause": self._all_as(_binds_any),
            "import_alias": self._import_alias,
            "export_statement": self._export,
            "export_specifier": self._export_specifier,
            "export_clause": self._same,
            "namespace_export": self._all_as(member),
            **dict.fromkeys(("tuple_parameter", "optional_tuple_parameter"), self._field_as(name=member)),
            "enum_declaration": self._field_as(name=_binds_any),
            "enum_body": self._enum_body,
            "ambient_declaration": self._ambient,
            "type_parameter": self._field_as(name=_binds_type),
            "index_signature": self._mapped,
            "mapped_type_clause": self._field_as(name=_binds_type),
            "conditional_type": self._conditional,
            "infer_type": self._infer,
            "nested_type_identifier": self._field_as(module=lambda _: _SPACE, name=member),
            "nested_identifier": self._nested,
            "jsx_namespace_name": self._all_as(member),
        }

    def _name(self, node: tree_sitter.Node, text: bytes, scope: Scope, role: Role) -> None:
        kind = node.type
        if kind.startswith("shorthand"):
            role = role._replace(form="shorthand")
        elif kind == "type_identifier":
            role = _TYPE if role is USE else role
        elif kind != "identifier":
            role = MEMBER  # a property, a label
        super()._name(node, text, scope, role)

    def _function(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        inner = self._scope("function", node, scope)
        name = inner
        if node.type in _DECLARED_FUNCTIONS:
            # Beside the parameters, where it stands in a body itself: `function f(g) { function g() {} }`.
            name = scope.parent if scope.kind == "body" and scope.parent is not None else scope
        elif node.child_by_field_name("name") is not None and node.type in (
            "function_expression",
            "generator_function",
        ):
            name = self._scope("own", node, scope)
            inner.parent = name
        bound = (inner, binds(inner))
        of = {"name": (scope, binds(name)), "parameter": bound, "parameters": bound}
        for child, where, as_what in self._fields(node, inner, of):
            if child.type == "computed_property_name":
                yield child, scope, USE
            elif child.type == "statement_block":
                yield from self._rest(child, self._scope("body", child, inner), USE)
            elif child.type == "formal_parameters":
                yield from self._same(child, where, as_what)
            else:
                yield child, where, as_what

    def _parameter(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        if any(child.type in _PROPERTIES for child in node.children):
            role = role._replace(form="fixed")  # a property of the object as well
        return self._fields(node, scope, {"pattern": (scope, role)})

    def _class(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        inner = self._scope("class", node, scope)
        bound = inner if node.type == "class" else scope
        return self._fields(node, inner, {"name": (scope, binds(bound, VALUE | TYPE))})

    def _type_declaration(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        inner = self._scope("type", node, scope)
        return self._fields(node, inner, {"name": (scope, binds(scope, TYPE))})

    def _part(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        return self._fields(node, scope, {_PARTS[node.type]: (scope, role)})

    def _element(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        name = node.child_by_field_name("name")
        # Elements of HTML begin with a small letter.
        html = name is not None and name.type == "identifier" and (name.text or b"")[:1].islower()
        return self._fields(node, scope, {"name": (scope, MEMBER if html else USE)})

    def _block(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        return self._rest(node, self._scope("block", node, scope), USE)

    def _static_block(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        inner = self._scope("function", node, scope)
        for child in node.children:
            yield from self._rest(child, inner, USE)

    def _for_in(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        inner = self._scope("block", node, scope)
        kind = node.child_by_field_name("kind")
        left = USE if kind is None else binds(_hoisted(inner) if kind.type == "var" else inner)
        return self._fields(node, inner, {"left": (inner, left)})

    def _catch(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        inner = self._scope("block", node, scope)
        return self._fields(node, inner, {"parameter": (inner, binds(inner))})

    def _with(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        return self._fields(node, scope, {"body": (self._scope("with", node, scope), USE)})

    def _declaration(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        hoisted = node.type == "variable_declaration"
        return self._same(node, scope, binds(_hoisted(scope) if hoisted else scope))

    def _declarator(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        return self._fields(node, scope, {"name": (scope, role if role.kind == "bind" else binds(scope))})

    def _call(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        function = node.child_by_field_name("function")
        if function is not None and function.text == b"eval":
            self._evaluated.append(scope)
        return self._rest(node, scope, role)

    def _import_specifier(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        bind = binds(scope, ANY)
        if node.child_by_field_name("alias") is None:
            return self._fields(node, scope, {"name": (scope, bind._replace(form="fixed"))})
        return self._fields(node, scope, {"name": (scope, MEMBER), "alias": (scope, bind)})

    def _import_alias(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        for index, child in enumerate(node.named_children):
            yield child, scope, binds(scope, ANY) if not index else _EXPORTED

    def _export(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        kinds = {child.type for child in node.children}
        elsewhere = node.child_by_field_name("source") is not None or "namespace" in kinds
        for child in node.children:
            plain = child.type in ("identifier", "export_clause")
            yield child, scope, (MEMBER if elsewhere else _EXPORTED) if plain else USE

    def _export_specifier(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        alone = node.child_by_field_name("alias") is None
        name = role._replace(form="export") if alone and role.kind == "use" else role
        return self._fields(node, scope, {"name": (scope, name), "alias": (scope, MEMBER)})

    def _nested(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        outer = role if role.kind == "use" else USE
        return self._fields(node, scope, {"object": (scope, outer), "property": (scope, MEMBER)})

    def _enum_body(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        # A name there may be that of another member.
        inside = self._scope("with", node, scope)
        return self._rest(node, inside, USE)

    def _space(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        inner = self._scope("space", node, scope)
        for child, where, as_what in self._fields(node, inner, {"name": (scope, binds(scope, VALUE | NAMESPACE))}):
            if child.type == "nested_identifier":
                yield from self._outer_part(child, scope, as_what)
            elif child.type == "statement_block":
                yield from self._rest(child, inner, USE)
            else:
                yield child, where, as_what

    def _outer_part(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        """``namespace a.b.c`` binds the first of these names."""
        while node.type == "nested_identifier":
            yield from ((child, scope, MEMBER) for child in node.children_by_field_name("property"))
            node = node.children[0]
        yield node, scope, role

    def _ambient(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        for child in node.children:
            if child.type == "statement_block":
                inner = self._scope("global", child, scope)
                inner.bound = self._global.bound
                yield from self._rest(child, inner, USE)
            else:
                yield child, scope, USE

    def _mapped(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        inner = self._scope("type", node, scope)
        return self._fields(node, inner, {"name": (inner, binds(inner))})

    def _conditional(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        inner = self._scope("conditional", node, scope)
        outer = (scope, USE)
        return self._fields(node, inner, {"left": outer, "alternative": outer})

    def _infer(self, node: tree_sitter.Node, scope: Scope, role: Role) -> Iterator[Step]:
        bound = next((each for each in scope.up() if each.kind == "conditional"), scope)
        for index, child in enumerate(node.named_children):
            yield child, scope, binds(bound, TYPE) if not index else USE


def _binds_any(scope: Scope) -> Role:
    return binds(scope, ANY)


def _binds_type(scope: Scope) -> Role:
    return binds(scope, TYPE)


def _hoisted(scope: Scope) -> Scope:
    return next(each for each in scope.up() if each.kind in _HOISTS)


@cache
def _globals() -> frozenset[bytes]:
    """What JavaScript's environments bring: TypeScript's libraries, and npm's ``globals`` for Node and test runners."""
    return frozenset(Path(__file__).with_name("globals.txt").read_bytes().split())
