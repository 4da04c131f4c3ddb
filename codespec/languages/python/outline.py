"""What a Python file imports and defines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from codespec.syntax.literals import MOST_LINE, first_line, signature
from codespec.syntax.names import EVERYTHING, MOST_MEMBERS, Definition, Import, Outline, cut, field_of, text_of

if TYPE_CHECKING:
    import tree_sitter

_DEEPEST = 4  # ifs and trys that imports are looked for in
_QUOTES = re.compile(r"^[a-zA-Z]*[\"']+|[\"']+$")


def outline(root: tree_sitter.Node) -> Outline:
    """What stands at the top level of a file; imports also in its ifs and trys."""
    return Outline(tuple(_imports(root)), tuple(_definitions(root)))


def _imports(node: tree_sitter.Node, depth: int = 0) -> Iterator[Import]:
    for child in node.named_children:
        if child.type == "import_statement":
            for name, alias in _names(child):
                # Without an alias it is used by its full name.
                yield Import(name, alias=alias)
        elif child.type == "import_from_statement":
            module = child.child_by_field_name("module_name")
            found = text_of(module) if module else ""
            dots = len(found) - len(found.lstrip("."))
            everything = any(each.type == "wildcard_import" for each in child.named_children)
            names = ((EVERYTHING, EVERYTHING),) if everything else tuple(_names(child))
            yield Import(found[dots:].strip(), dots, names)
        elif depth < _DEEPEST and child.type in ("if_statement", "try_statement", "block", "else_clause",
                                                 "except_clause", "elif_clause"):  # fmt: skip
            yield from _imports(child, depth + 1)


def _names(statement: tree_sitter.Node) -> Iterator[tuple[str, str]]:
    for each in statement.children_by_field_name("name"):
        if each.type == "aliased_import":
            yield field_of(each, "name"), field_of(each, "alias")
        else:
            yield text_of(each), text_of(each)


def _definitions(root: tree_sitter.Node) -> Iterator[Definition]:
    for child in root.named_children:
        inner = child.child_by_field_name("definition") if child.type == "decorated_definition" else child
        if inner is None:
            continue
        if inner.type == "function_definition":
            yield Definition((field_of(inner, "name"),), cut(_function(child, inner)))
        elif inner.type == "class_definition":
            yield Definition((field_of(inner, "name"),), cut(_class(child, inner)))
        elif inner.type == "expression_statement" and inner.named_children:
            left = inner.named_children[0].child_by_field_name("left")
            if left is not None and left.type == "identifier":
                yield Definition((text_of(left),), first_line(inner))
        elif inner.type == "type_alias_statement":
            yield Definition((field_of(inner, "left"),), first_line(inner))


def _function(outer: tree_sitter.Node, function: tree_sitter.Node, documented: bool = True) -> str:
    body = function.child_by_field_name("body")
    header = signature(outer, body)
    if not header:
        return ""
    doc = _docstring(body) if documented else ""
    return f"{header}\n{_indent(function)}    {doc}" if doc else f"{header} ..."


def _class(outer: tree_sitter.Node, found: tree_sitter.Node) -> str:
    body = found.child_by_field_name("body")
    lines = [signature(outer, body)]
    if not lines[0]:
        return ""
    doc = _docstring(body)
    if doc:
        lines.append("    " + doc)
    for child in (body.named_children if body else [])[: 4 * MOST_MEMBERS]:
        inner = child.child_by_field_name("definition") if child.type == "decorated_definition" else child
        if inner is None:
            continue
        name = field_of(inner, "name")
        if inner.type == "function_definition" and (not name.startswith("_") or name == "__init__"):
            lines.append(_indented(_function(child, inner, documented=False)))
        elif inner.type == "expression_statement" and inner.named_children:
            left = inner.named_children[0].child_by_field_name("left")
            if left is not None and not text_of(left).startswith("_"):
                lines.append(_indented(first_line(inner)))
    lines = [line for line in lines if line]
    return "\n".join(lines[: MOST_MEMBERS + 2] if len(lines) > 1 else [lines[0] + " ..."])


def _docstring(body: tree_sitter.Node | None) -> str:
    """The first line of a docstring, quoted."""
    first = body.named_children[0] if body is not None and body.named_children else None
    string = first.named_children[0] if first is not None and first.named_children else None
    if first is None or first.type != "expression_statement" or string is None or string.type != "string":
        return ""
    line = _QUOTES.sub("", text_of(string)).strip().partition("\n")[0].strip()
    return f'"""{line}"""' if line and len(line) <= MOST_LINE else ""


def _indented(text: str) -> str:
    return "    " + text if text else ""


def _indent(node: tree_sitter.Node) -> str:
    return " " * node.start_point.column
