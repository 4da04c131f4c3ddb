"""tree-sitter: what a file imports, and the signatures of what it defines. Python, JavaScript and TypeScript."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codespec.languages import Language
from codespec.syntax.literals import MOST_LINE, first_line, signature
from codespec.syntax.parsing import Parser, TooMuchToParse, new_parser

if TYPE_CHECKING:
    import tree_sitter

EVERYTHING = "*"
"""As the name of an import: all names of the module."""
DEFAULT = "default"
"""As the name of an import or definition: what a JavaScript module exports by default."""

MOST_SIGNATURE = 800
"""Characters of one signature."""
_MOST_MEMBERS = 24
_DEEPEST = 4  # ifs and trys that imports are looked for in

_QUOTES = re.compile(r"^[a-zA-Z]*[\"']+|[\"']+$")
_JAVASCRIPT = frozenset({"javascript", "javascriptreact", "typescript", "typescriptreact"})
_CLASSES = frozenset({"class_declaration", "abstract_class_declaration"})
_FUNCTIONS = frozenset({"function_declaration", "generator_function_declaration", "function_signature"})
_TYPES = frozenset({"interface_declaration", "type_alias_declaration", "enum_declaration"})
_METHODS = frozenset({"method_definition", "abstract_method_signature", "method_signature"})


@dataclass(frozen=True)
class Import:
    """Names that a file takes from one module.

    Attributes:
        module: as written, without the dots before it in Python: ``a.b``, ``./x``.
        level: of those dots.
        names: what it is called there and here; empty where only the module itself is imported.
        alias: what the module is called here, where it is imported itself.
        exported: whether the names are passed on without being known here (``export … from``).
    """

    module: str
    level: int = 0
    names: tuple[tuple[str, str], ...] = ()
    alias: str = ""
    exported: bool = False


@dataclass(frozen=True)
class Definition:
    """What is known of a name at the top level of a file.

    Attributes:
        names: usually one.
        text: whole lines without the last line end: the header of a function and the first line of what documents
            it, a class with its fields and the headers of its methods, the first line of an assignment.
    """

    names: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Outline:
    """What a file imports and defines, in order."""

    imports: tuple[Import, ...] = ()
    definitions: tuple[Definition, ...] = ()


class Outliner:
    """Reads files. For one thread."""

    def __init__(self) -> None:
        self._parsers: dict[str, Parser | None] = {}

    def read(self, text: str, language: Language) -> Outline:
        """The outline of a file; an empty one where its language has none, or no parser, or it takes too long."""
        python = language.id == "python"
        if not language.parser or not (python or language.id in _JAVASCRIPT):
            return Outline()
        if language.parser not in self._parsers:
            self._parsers[language.parser] = new_parser(language.parser)
        parser = self._parsers[language.parser]
        if parser is None:
            return Outline()
        try:
            root = parser.parse(text.encode("utf-8", "replace")).root_node
        except TooMuchToParse:
            return Outline()
        if python:
            imports, definitions = _python_imports(root), _python_definitions(root)
        else:
            imports, definitions = _js_imports(root), _js_definitions(root)
        return Outline(tuple(imports), tuple(each for each in definitions if each.text))


def _python_imports(node: tree_sitter.Node, depth: int = 0) -> Iterator[Import]:
    for child in node.named_children:
        if child.type == "import_statement":
            for name, alias in _python_names(child):
                # Without an alias it is used by its full name.
                yield Import(name, alias=alias)
        elif child.type == "import_from_statement":
            module = child.child_by_field_name("module_name")
            found = _text(module) if module else ""
            dots = len(found) - len(found.lstrip("."))
            everything = any(each.type == "wildcard_import" for each in child.named_children)
            names = ((EVERYTHING, EVERYTHING),) if everything else tuple(_python_names(child))
            yield Import(found[dots:].strip(), dots, names)
        elif depth < _DEEPEST and child.type in ("if_statement", "try_statement", "block", "else_clause",
                                                 "except_clause", "elif_clause"):  # fmt: skip
            yield from _python_imports(child, depth + 1)


def _python_names(statement: tree_sitter.Node) -> Iterator[tuple[str, str]]:
    for each in statement.children_by_field_name("name"):
        if each.type == "aliased_import":
            yield _field(each, "name"), _field(each, "alias")
        else:
            yield _text(each), _text(each)


def _python_definitions(root: tree_sitter.Node) -> Iterator[Definition]:
    for child in root.named_children:
        inner = child.child_by_field_name("definition") if child.type == "decorated_definition" else child
        if inner is None:
            continue
        if inner.type == "function_definition":
            yield Definition((_field(inner, "name"),), _cut(_python_function(child, inner)))
        elif inner.type == "class_definition":
            yield Definition((_field(inner, "name"),), _cut(_python_class(child, inner)))
        elif inner.type == "expression_statement" and inner.named_children:
            left = inner.named_children[0].child_by_field_name("left")
            if left is not None and left.type == "identifier":
                yield Definition((_text(left),), first_line(inner))
        elif inner.type == "type_alias_statement":
            yield Definition((_field(inner, "left"),), first_line(inner))


def _python_function(outer: tree_sitter.Node, function: tree_sitter.Node, documented: bool = True) -> str:
    body = function.child_by_field_name("body")
    header = signature(outer, body)
    if not header:
        return ""
    doc = _docstring(body) if documented else ""
    return f"{header}\n{_indent(function)}    {doc}" if doc else f"{header} ..."


def _python_class(outer: tree_sitter.Node, found: tree_sitter.Node) -> str:
    body = found.child_by_field_name("body")
    lines = [signature(outer, body)]
    if not lines[0]:
        return ""
    doc = _docstring(body)
    if doc:
        lines.append("    " + doc)
    for child in (body.named_children if body else [])[: 4 * _MOST_MEMBERS]:
        inner = child.child_by_field_name("definition") if child.type == "decorated_definition" else child
        if inner is None:
            continue
        name = _field(inner, "name")
        if inner.type == "function_definition" and (not name.startswith("_") or name == "__init__"):
            lines.append(_indented(_python_function(child, inner, documented=False)))
        elif inner.type == "expression_statement" and inner.named_children:
            left = inner.named_children[0].child_by_field_name("left")
            if left is not None and not _text(left).startswith("_"):
                lines.append(_indented(first_line(inner)))
    lines = [line for line in lines if line]
    return "\n".join(lines[: _MOST_MEMBERS + 2] if len(lines) > 1 else [lines[0] + " ..."])


def _docstring(body: tree_sitter.Node | None) -> str:
    """The first line of a docstring, quoted."""
    first = body.named_children[0] if body is not None and body.named_children else None
    string = first.named_children[0] if first is not None and first.named_children else None
    if first is None or first.type != "expression_statement" or string is None or string.type != "string":
        return ""
    line = _QUOTES.sub("", _text(string)).strip().partition("\n")[0].strip()
    return f'"""{line}"""' if line and len(line) <= MOST_LINE else ""


def _js_imports(root: tree_sitter.Node) -> Iterator[Import]:
    for child in root.named_children:
        source = child.child_by_field_name("source")
        if child.type == "import_statement" and source is not None:
            yield from _js_import(child, _unquoted(source))
        elif child.type == "export_statement" and source is not None:
            clause = next((each for each in child.named_children if each.type == "export_clause"), None)
            names = tuple(_js_specifiers(clause)) if clause is not None else ((EVERYTHING, EVERYTHING),)
            yield Import(_unquoted(source), names=names, exported=True)
        elif child.type in ("lexical_declaration", "variable_declaration"):
            yield from _js_required(child)


def _js_import(statement: tree_sitter.Node, module: str) -> Iterator[Import]:
    clause = next((each for each in statement.named_children if each.type == "import_clause"), None)
    names: list[tuple[str, str]] = []
    for each in clause.named_children if clause is not None else []:
        if each.type == "identifier":
            names.append((DEFAULT, _text(each)))
        elif each.type == "named_imports":
            names += _js_specifiers(each)
        elif each.type == "namespace_import" and each.named_children:
            yield Import(module, alias=_text(each.named_children[0]))
    if names:
        yield Import(module, names=tuple(names))


def _js_specifiers(clause: tree_sitter.Node) -> Iterator[tuple[str, str]]:
    for each in clause.named_children:
        name = _field(each, "name")
        if name:
            yield name, _field(each, "alias") or name


def _js_required(declaration: tree_sitter.Node) -> Iterator[Import]:
    """``const { a, b: c } = require("./x")``, ``const x = require("./x")``."""
    for each in declaration.named_children:
        target, value = each.child_by_field_name("name"), each.child_by_field_name("value")
        if target is None or value is None or value.type != "call_expression" or _field(value, "function") != "require":
            continue
        arguments = value.child_by_field_name("arguments")
        if arguments is None or len(arguments.named_children) != 1 or arguments.named_children[0].type != "string":
            continue
        module = _unquoted(arguments.named_children[0])
        if target.type == "identifier":
            yield Import(module, alias=_text(target))
        else:
            pairs = [(_field(one, "key") or _text(one), _field(one, "value") or _text(one))
                     for one in target.named_children]  # fmt: skip
            yield Import(module, names=tuple(pairs))


def _js_definitions(root: tree_sitter.Node) -> Iterator[Definition]:
    exported = {_field(each, "value") for each in root.named_children if each.type == "export_statement"}
    for child in root.named_children:
        inner: tree_sitter.Node | None = child
        names: tuple[str, ...] = ()
        if child.type == "export_statement":
            inner = child.child_by_field_name("declaration") or child.child_by_field_name("value")
            names = (DEFAULT,) if any(each.type == "default" for each in child.children) else ()
        if inner is None:
            continue
        if inner.type in _CLASSES or inner.type == "class":
            text = _js_class(child, inner)
        elif inner.type in _FUNCTIONS or inner.type in ("function_expression", "arrow_function"):
            text = signature(child, inner.child_by_field_name("body"))
        elif inner.type in _TYPES:
            text = signature(child)
        elif inner.type in ("lexical_declaration", "variable_declaration"):
            yield from (Definition((_field(each, "name"),), _cut(_js_variable(child, each)))
                        for each in inner.named_children if each.type == "variable_declarator")  # fmt: skip
            continue
        else:
            continue
        name = _field(inner, "name")
        if name in exported:  # ``export default name``
            names = (DEFAULT,)
        yield Definition((*names, name) if name else names, _cut(text))


def _js_class(outer: tree_sitter.Node, found: tree_sitter.Node) -> str:
    body = found.child_by_field_name("body")
    header = signature(outer, body)
    if not header:
        return ""
    lines = [header + " {"]
    for child in (body.named_children if body else [])[: 4 * _MOST_MEMBERS]:
        private = _field(child, "name").startswith(("_", "#")) or any(
            each.type == "accessibility_modifier" and _text(each) == "private" for each in child.named_children
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
    return "\n".join([*lines[: _MOST_MEMBERS + 1], "}"])


def _js_variable(outer: tree_sitter.Node, declarator: tree_sitter.Node) -> str:
    value = declarator.child_by_field_name("value")
    body = value.child_by_field_name("body") if value is not None and value.type == "arrow_function" else None
    return signature(outer, body) if body is not None else first_line(outer)


def _indented(text: str) -> str:
    return "    " + text if text else ""


def _indent(node: tree_sitter.Node) -> str:
    return " " * node.start_point.column


def _cut(text: str) -> str:
    """Whole lines of a signature that is too long."""
    if len(text) <= MOST_SIGNATURE:
        return text
    return text[: text.rfind("\n", 0, MOST_SIGNATURE)] if "\n" in text[:MOST_SIGNATURE] else text[:MOST_SIGNATURE]


def _field(node: tree_sitter.Node, name: str) -> str:
    found = node.child_by_field_name(name)
    return _text(found) if found is not None else ""


def _text(node: tree_sitter.Node) -> str:
    return (node.text or b"").decode("utf-8", "replace").replace("\r\n", "\n")


def _unquoted(node: tree_sitter.Node) -> str:
    return re.sub(r"^['\"`]|['\"`]$", "", _text(node))
