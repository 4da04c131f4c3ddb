"""What a file of JavaScript or TypeScript imports and defines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from codespec.syntax.literals import first_line, signature
from codespec.syntax.names import DEFAULT, EVERYTHING, MOST_MEMBERS, Definition, Import, Outline, cut, field_of, text_of

if TYPE_CHECKING:
    import tree_sitter

_CLASSES = frozenset({"class_declaration", "abstract_class_declaration"})
_FUNCTIONS = frozenset({"function_declaration", "generator_function_declaration", "function_signature"})
_TYPES = frozenset({"interface_declaration", "type_alias_declaration", "enum_declaration"})
_METHODS = frozenset({"method_definition", "abstract_method_signature", "method_signature"})


def outline(root: tree_sitter.Node) -> Outline:
    """What stands at the top level of a file."""
    return Outline(tuple(_imports(root)), tuple(_definitions(root)))


def _imports(root: tree_sitter.Node) -> Iterator[Import]:
    for child in root.named_children:
        source = child.child_by_field_name("source")
        if child.type == "import_statement" and source is not None:
            yield from _import(child, _unquoted(source))
        elif child.type == "export_statement" and source is not None:
            clause = next((each for each in child.named_children if each.type == "export_clause"), None)
            names = tuple(_specifiers(clause)) if clause is not None else ((EVERYTHING, EVERYTHING),)
            yield Import(_unquoted(source), names=names, exported=True)
        elif child.type in ("lexical_declaration", "variable_declaration"):
            yield from _required(child)


def _import(statement: tree_sitter.Node, module: str) -> Iterator[Import]:
    clause = next((each for each in statement.named_children if each.type == "import_clause"), None)
    names: list[tuple[str, str]] = []
    for each in clause.named_children if clause is not None else []:
        if each.type == "identifier":
            names.append((DEFAULT, text_of(each)))
        elif each.type == "named_imports":
            names += _specifiers(each)
        elif each.type == "namespace_import" and each.named_children:
            yield Import(module, alias=text_of(each.named_children[0]))
    if names:
        yield Import(module, names=tuple(names))


def _specifiers(clause: tree_sitter.Node) -> Iterator[tuple[str, str]]:
    for each in clause.named_children:
        name = field_of(each, "name")
        if name:
            yield name, field_of(each, "alias") or name


def _required(declaration: tree_sitter.Node) -> Iterator[Import]:
    """``const { a, b: c } = require("./x")``, ``const x = require("./x")``."""
    for each in declaration.named_children:
        target, value = each.child_by_field_name("name"), each.child_by_field_name("value")
        if target is None or value is None or value.type != "call_expression":
            continue
        if field_of(value, "function") != "require":
            continue
        arguments = value.child_by_field_name("arguments")
        if arguments is None or len(arguments.named_children) != 1 or arguments.named_children[0].type != "string":
            continue
        module = _unquoted(arguments.named_children[0])
        if target.type == "identifier":
            yield Import(module, alias=text_of(target))
        else:
            pairs = [(field_of(one, "key") or text_of(one), field_of(one, "value") or text_of(one))
                     for one in target.named_children]  # fmt: skip
            yield Import(module, names=tuple(pairs))


def _definitions(root: tree_sitter.Node) -> Iterator[Definition]:
    exported = {field_of(each, "value") for each in root.named_children if each.type == "export_statement"}
    for child in root.named_children:
        inner: tree_sitter.Node | None = child
        names: tuple[str, ...] = ()
        if child.type == "export_statement":
            inner = child.child_by_field_name("declaration") or child.child_by_field_name("value")
            names = (DEFAULT,) if any(each.type == "default" for each in child.children) else ()
        if inner is None:
            continue
        if inner.type in _CLASSES or inner.type == "class":
            text = _class(child, inner)
        elif inner.type in _FUNCTIONS or inner.type in ("function_expression", "arrow_function"):
            text = signature(child, inner.child_by_field_name("body"))
        elif inner.type in _TYPES:
            text = signature(child)
        elif inner.type in ("lexical_declaration", "variable_declaration"):
            yield from (Definition((field_of(each, "name"),), cut(_variable(child, each)))
                        for each in inner.named_children if each.type == "variable_declarator")  # fmt: skip
            continue
        else:
            continue
        name = field_of(inner, "name")
        if name in exported:  # ``export default name``
            names = (DEFAULT,)
        yield Definition((*names, name) if name else names, cut(text))


def _class(outer: tree_sitter.Node, found: tree_sitter.Node) -> str:
    body = found.child_by_field_name("body")
    header = signature(outer, body)
    if not header:
        return ""
    lines = [header + " {"]
    for child in (body.named_children if body else [])[: 4 * MOST_MEMBERS]:
        private = field_of(child, "name").startswith(("_", "#")) or any(
            each.type == "accessibility_modifier" and text_of(each) == "private" for each in child.named_children
        )
        if private:
            continue
        if child.type in _METHODS:
            line = signature(child, child.child_by_field_name("body"))
        elif child.type in ("public_field_definition", "field_definition"):
            line = first_line(child)
        else:
            continue
        if line:
            lines.append(f"  {line.rstrip(';')};")
    return "\n".join([*lines[: MOST_MEMBERS + 1], "}"])


def _variable(outer: tree_sitter.Node, declarator: tree_sitter.Node) -> str:
    value = declarator.child_by_field_name("value")
    body = value.child_by_field_name("body") if value is not None and value.type == "arrow_function" else None
    return signature(outer, body) if body is not None else first_line(outer)


def _unquoted(node: tree_sitter.Node) -> str:
    return re.sub(r"^['\"`]|['\"`]$", "", text_of(node))
