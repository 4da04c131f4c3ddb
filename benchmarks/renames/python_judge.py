"""Which names of a Python module are one variable: ``ast`` says where they stand, ``symtable`` what they are."""

from __future__ import annotations

import ast
import symtable
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

Variable = tuple[int, str]
"""A scope, and a name in it."""
_COMPREHENSIONS = {
    ast.ListComp: "listcomp", ast.SetComp: "setcomp", ast.DictComp: "dictcomp", ast.GeneratorExp: "genexpr",
}  # fmt: skip


class Place(NamedTuple):
    """A name in a module; what is no variable, such as an attribute, has none."""

    text: str
    variable: Variable | None


@lru_cache(4)
def places_of(text: str) -> tuple[Place, ...]:
    """The names of a module in an order that only its syntax decides.

    Raises:
        SyntaxError, ValueError: it is no module.
        LookupError: ``symtable`` does not know one of its scopes.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
        table = symtable.symtable(text, "module.py", "exec")
    reader = _Reader(table)
    return tuple(reader.read(tree, _Scope(table, None)))


class _Scope:
    """A table and what its scopes within are, in the order in which they are entered."""

    def __init__(self, table: symtable.SymbolTable, parent: _Scope | None) -> None:
        self.table, self.parent = table, parent
        self._children: dict[tuple[str, int], list[symtable.SymbolTable]] = {}
        for child in table.get_children():
            self._children.setdefault((child.get_name(), child.get_lineno()), []).append(child)

    def entered(self, name: str, line: int) -> _Scope:
        return _Scope(self._children[(name, line)].pop(0), self)


class _Reader:
    def __init__(self, table: symtable.SymbolTable) -> None:
        self._module = table

    def read(self, node: ast.AST, scope: _Scope) -> Iterator[Place]:
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is not None:
            yield from method(node, scope)
        elif type(node) in _COMPREHENSIONS:
            yield from self._comprehension(node, scope)
        else:
            yield from self._rest(node, scope)

    def _rest(self, node: ast.AST, scope: _Scope) -> Iterator[Place]:
        for child in ast.iter_child_nodes(node):
            yield from self.read(child, scope)

    def _all(self, nodes: Sequence[ast.AST | None], scope: _Scope) -> Iterator[Place]:
        for node in nodes:
            if node is not None:
                yield from self.read(node, scope)

    def _place(self, name: str | None, scope: _Scope) -> Iterator[Place]:
        if name is not None:
            yield Place(name, self._variable(name, scope))

    def _member(self, name: str | None) -> Iterator[Place]:
        if name is not None:
            yield Place(name, None)

    def _variable(self, name: str, scope: _Scope) -> Variable:
        """What a name is: ``symtable`` says whether it is of this scope, of one around it or of the module."""
        table = scope.table
        mangled = self._mangled(name, scope)
        try:
            symbol = table.lookup(mangled)
        except KeyError:  # in an annotation that is not computed
            symbol = None
        if table is self._module or (symbol is not None and symbol.is_global()):
            return self._module.get_id(), mangled
        if symbol is not None and symbol.is_local():
            return table.get_id(), mangled
        around = scope.parent
        while around is not None and around.table is not self._module:
            if around.table.get_type() == "function" and mangled in around.table.get_identifiers():
                outer = around.table.lookup(mangled)
                if outer.is_global():
                    break
                if outer.is_local():
                    return around.table.get_id(), mangled
            around = around.parent
        return self._module.get_id(), mangled

    @staticmethod
    def _mangled(name: str, scope: _Scope) -> str:
        if not name.startswith("__") or name.endswith("__"):
            return name
        around: _Scope | None = scope
        while around is not None and around.table.get_type() != "class":
            around = around.parent
        return f"_{around.table.get_name().lstrip('_')}{name}" if around is not None else name

    # In the order in which the compiler enters scopes.

    def _Name(self, node: ast.Name, scope: _Scope) -> Iterator[Place]:
        yield from self._place(node.id, scope)

    def _Attribute(self, node: ast.Attribute, scope: _Scope) -> Iterator[Place]:
        yield from self.read(node.value, scope)
        yield from self._member(node.attr)

    def _keyword(self, node: ast.keyword, scope: _Scope) -> Iterator[Place]:
        yield from self._member(node.arg)
        yield from self.read(node.value, scope)

    def _Global(self, node: ast.Global | ast.Nonlocal, scope: _Scope) -> Iterator[Place]:
        for name in node.names:
            yield from self._place(name, scope)

    _Nonlocal = _Global

    def _alias(self, node: ast.alias, scope: _Scope) -> Iterator[Place]:
        first, *rest = node.name.split(".")
        if node.asname is None and first != "*":
            yield from self._place(first, scope)
        else:
            yield from self._member(first)
            yield from self._place(node.asname, scope)
        for name in rest:
            yield from self._member(name)

    def _ImportFrom(self, node: ast.ImportFrom, scope: _Scope) -> Iterator[Place]:
        for part in (node.module or "").split("."):
            yield from self._member(part)
        for alias in node.names:
            if "." in alias.name:
                raise ValueError(alias.name)
            yield from self._alias(alias, scope)

    def _ExceptHandler(self, node: ast.ExceptHandler, scope: _Scope) -> Iterator[Place]:
        yield from self._all([node.type], scope)
        yield from self._place(node.name, scope)
        yield from self._all(node.body, scope)

    def _MatchAs(self, node: Any, scope: _Scope) -> Iterator[Place]:
        yield from self._all([node.pattern], scope)
        yield from self._place(node.name, scope)

    def _MatchStar(self, node: Any, scope: _Scope) -> Iterator[Place]:
        yield from self._place(node.name, scope)

    def _MatchMapping(self, node: Any, scope: _Scope) -> Iterator[Place]:
        yield from self._rest(node, scope)
        yield from self._place(node.rest, scope)

    def _MatchClass(self, node: Any, scope: _Scope) -> Iterator[Place]:
        yield from self._all([node.cls, *node.patterns], scope)
        for name, pattern in zip(node.kwd_attrs, node.kwd_patterns, strict=True):
            yield from self._member(name)
            yield from self.read(pattern, scope)

    def _FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: _Scope) -> Iterator[Place]:
        yield from self._place(node.name, scope)
        yield from self._outer(node.args, scope)
        yield from self._all([*_annotations(node.args), node.returns], scope)
        yield from self._all(node.decorator_list, scope)
        inner = scope.entered(node.name, node.lineno)
        yield from self._parameters(node.args, inner)
        yield from self._all(node.body, inner)

    _AsyncFunctionDef = _FunctionDef

    def _Lambda(self, node: ast.Lambda, scope: _Scope) -> Iterator[Place]:
        yield from self._outer(node.args, scope)
        inner = scope.entered("lambda", node.lineno)
        yield from self._parameters(node.args, inner)
        yield from self.read(node.body, inner)

    def _outer(self, args: ast.arguments, scope: _Scope) -> Iterator[Place]:
        yield from self._all([*args.defaults, *args.kw_defaults], scope)

    def _parameters(self, args: ast.arguments, inner: _Scope) -> Iterator[Place]:
        for each in [*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg]:
            yield from self._place(each.arg if each is not None else None, inner)

    def _ClassDef(self, node: ast.ClassDef, scope: _Scope) -> Iterator[Place]:
        yield from self._place(node.name, scope)
        yield from self._all([*node.bases, *node.keywords, *node.decorator_list], scope)
        yield from self._all(node.body, scope.entered(node.name, node.lineno))

    def _comprehension(self, node: Any, scope: _Scope) -> Iterator[Place]:
        first, *rest = node.generators
        yield from self.read(first.iter, scope)
        inner = scope.entered(_COMPREHENSIONS[type(node)], node.lineno)
        yield from self._all([first.target, *first.ifs], inner)
        for each in rest:
            yield from self._all([each.target, each.iter, *each.ifs], inner)
        parts = [node.value, node.key] if isinstance(node, ast.DictComp) else [node.elt]
        yield from self._all(parts, inner)


def _annotations(args: ast.arguments) -> list[ast.AST | None]:
    parameters = [*args.posonlyargs, *args.args, args.vararg, args.kwarg, *args.kwonlyargs]
    return [each.annotation for each in parameters if each is not None]
