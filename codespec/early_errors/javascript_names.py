"""JavaScript and TypeScript: which names a block declares, and which of them may not be there twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from codespec.early_errors.walk import Node, Walk, has_token, named

FUNCTIONS = frozenset({"function_declaration", "generator_function_declaration"})
CLASSES = frozenset({"class_declaration", "abstract_class_declaration"})
LEXICAL = frozenset({"lexical_declaration", "using_declaration"})

# Statements that hold others which are not of another function.
_NESTING = frozenset(
    {
        "statement_block", "if_statement", "else_clause", "for_statement", "for_in_statement", "while_statement",
        "do_statement", "try_statement", "catch_clause", "finally_clause", "switch_statement", "switch_body",
        "switch_case", "switch_default", "labeled_statement", "with_statement", "export_statement",
    }
)  # fmt: skip


_TYPES = {"enum_declaration": "enum", "type_alias_declaration": "type", "interface_declaration": "interface"}


class DeclaredName(NamedTuple):
    """A name that a statement or parameter declares.

    Attributes:
        kind: ``let`` (and ``const``), ``var``, ``function``, ``plain`` (a function that is neither async nor a
            generator), ``class``, ``import``, ``parameter``, ``enum``, ``type`` or ``interface``.
    """

    text: bytes
    kind: str
    node: Node


def bound(pattern: Node | None) -> Iterator[Node]:
    """The identifiers that a pattern gives values to."""
    waiting = [pattern]
    while waiting:
        each = waiting.pop()
        kind = each.type if each is not None else ""
        if each is None:
            continue
        if kind in ("identifier", "shorthand_property_identifier_pattern"):
            yield each
        elif kind in ("assignment_pattern", "object_assignment_pattern"):
            waiting.append(each.child_by_field_name("left"))
        elif kind == "pair_pattern":
            waiting.append(each.child_by_field_name("value"))
        elif kind in ("required_parameter", "optional_parameter"):
            waiting.append(each.child_by_field_name("pattern"))
        elif kind in ("object_pattern", "array_pattern", "rest_pattern", "formal_parameters"):
            waiting += reversed(list(named(each)))


def declared(walk: Walk, statements: list[Node]) -> Iterator[DeclaredName]:
    """The names that statements of a block declare in it, other than by ``var``."""
    for each in statements:
        exported = each.child_by_field_name("declaration") if each.type == "export_statement" else None
        statement = exported or each
        if statement.type in LEXICAL:
            for declarator in named(statement):
                yield from _names(walk, "let", bound(declarator.child_by_field_name("name")))
        elif statement.type in FUNCTIONS:
            plain = statement.type == "function_declaration" and not has_token(statement, "async")
            yield from _names(walk, "plain" if plain else "function", _identifier(statement))
        elif statement.type in CLASSES:
            yield from _names(walk, "class", _identifier(statement))
        elif statement.type == "import_statement":
            yield from _names(walk, "import", imported(statement))
        elif statement.type in _TYPES:
            yield from _names(walk, _TYPES[statement.type], _identifier(statement))


def _identifier(node: Node) -> list[Node]:
    name = node.child_by_field_name("name")
    return [] if name is None or name.is_missing else [name]


def _names(walk: Walk, kind: str, nodes: Iterator[Node] | list[Node]) -> Iterator[DeclaredName]:
    return (DeclaredName(walk.text(node), kind, node) for node in nodes)


def imported(statement: Node) -> Iterator[Node]:
    """The names that an import gives."""
    for clause in named(statement):
        if clause.type == "import_require_clause":
            yield from (child for child in clause.children if child.type == "identifier")
        if clause.type != "import_clause":
            continue
        for child in named(clause):
            if child.type == "identifier":
                yield child
            elif child.type == "namespace_import":
                yield from named(child)
            elif child.type == "named_imports":
                for specifier in named(child):
                    name = specifier.child_by_field_name("alias") or specifier.child_by_field_name("name")
                    if name is not None:
                        yield name


def hoisted(walk: Walk, nodes: list[Node]) -> Iterator[DeclaredName]:
    """The names that ``var`` declares in statements and in those within them."""
    waiting = nodes[::-1]
    while waiting:
        walk.spend()
        node = waiting.pop()
        if node.type == "variable_declaration":
            for declarator in named(node):
                yield from _names(walk, "var", bound(declarator.child_by_field_name("name")))
        elif node.type in _NESTING and walk.mentions(node, b"var"):
            if node.type == "for_in_statement" and has_token(node, "var"):
                yield from _names(walk, "var", bound(node.child_by_field_name("left")))
            waiting += reversed(node.children)


def redeclared(walk: Walk, statements: list[Node], mode: str, outer: list[DeclaredName], typescript: bool) -> None:
    """Report names that a block declares more often than it may.

    Args:
        mode: ``function`` (or a script), ``module``, ``block``, ``strict`` (a block in strict mode).
        outer: parameters and the like, which its own names may not take.
    """
    lexical = list(declared(walk, statements))
    if mode == "function" and not typescript and all(name.kind == "plain" for name in lexical):
        return
    names = defaultdict(list)
    for name in [*outer, *lexical]:
        names[name.text].append(name)
    for name in hoisted(walk, statements) if names else ():
        if name.text in names:
            names[name.text].append(name)
    refuses = _typescript_refuses if typescript else _refuses
    for group in names.values():
        kinds = [name.kind for name in group]
        if len(group) > 1 and (refuses(kinds, mode) or (typescript and _is_exported_import(walk, group))):
            for name in group:
                walk.report("redeclared", name.node)


def _is_exported_import(walk: Walk, names: list[DeclaredName]) -> bool:
    """Whether a name is imported by itself and that of an exported constant, too: even where it is a type's, TypeScript
    wants all of its declarations exported, or none."""
    imports = any(_kinds_around(walk, name)[:1] == ["import_specifier"] for name in names)
    exported = (name for name in names if name.kind == "let")
    # It stands in a declarator, and that in a declaration.
    return imports and any(_kinds_around(walk, name)[2:] == ["export_statement"] for name in exported)


def _kinds_around(walk: Walk, name: DeclaredName) -> list[str]:
    return [each.type for each in islice(walk.around(name.node), 3)]


def _refuses(kinds: list[str], mode: str) -> bool:
    """Whether a name may not be declared in all of these ways at once."""
    found = set(kinds)
    if mode == "function":
        # Here functions are like variables: any number of each, beside parameters, too.
        found = {"var" if kind in ("plain", "function", "parameter") else kind for kind in found}
        return found != {"var"}
    if found <= {"var", "parameter"}:
        return False
    return not (mode == "block" and found == {"plain"})


def _typescript_refuses(kinds: list[str], mode: str) -> bool:
    """As ``_refuses``, where types are merged, and what is imported may be one."""
    if kinds.count("import") > 1:
        return True
    types = [kind for kind in kinds if kind in ("class", "enum", "type", "interface")]
    if "type" in types and len(types) > 1:
        return True
    kinds = [kind for kind in kinds if kind not in ("import", "type", "interface")]
    if "let" in kinds:
        return len(kinds) > 1
    functions = kinds.count("plain") + kinds.count("function")
    return functions > 1 or kinds.count("class") > 1 or ("var" in kinds and (functions > 0 or "class" in kinds))
