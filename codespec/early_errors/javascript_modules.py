"""JavaScript: what a module exports, each name once and none that it has not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codespec.early_errors.javascript_names import bound, declared, hoisted
from codespec.early_errors.walk import Node, Walk, has_token, named, repeated

_COMMONJS = re.compile(rb"\bmodule\.exports\b|\bexports\.\w|\brequire\(|\bdefineProperty\(exports\b")


def brought_to_commonjs(walk: Walk, links: list[Node]) -> bool:
    """Whether a text brings the only imports and exports to a file that requires and exports as CommonJS modules do."""
    if walk.touched is None or not links:
        return False
    start, end = walk.touched
    others = walk.data[:start] + walk.data[end:]
    return all(start <= link.start_byte < end for link in links) and is_commonjs(others)


def is_commonjs(data: bytes) -> bool:
    """Whether a file without imports and exports requires or exports as CommonJS modules do."""
    return _COMMONJS.search(data) is not None


def check_specifiers(walk: Walk, statements: list[Node]) -> None:
    """Report names in braces that are exported twice, as what is exported with its declaration may be in TypeScript."""
    exports = [each for each in statements if each.type == "export_statement"]
    names = [(walk.text(each).split()[-1], each) for statement in exports for each in _specifiers(statement)]
    for node in repeated(names):
        walk.report("exported twice", node)


def check_exports(walk: Walk, statements: list[Node]) -> None:
    """Report exports of the same name, and of names that a module does not declare."""
    exports = [each for each in statements if each.type == "export_statement"]
    for node in repeated([pair for statement in exports for pair in _exported(walk, statement)]):
        walk.report("exported twice", node)
    local = [each for statement in exports if not _from(statement) for each in _specifiers(statement)]
    if not local:
        return
    known = {name.text for name in declared(walk, statements)} | {name.text for name in hoisted(walk, statements)}
    for specifier in local:
        name = specifier.child_by_field_name("name")
        if name is not None and walk.text(name) not in known:
            walk.report("exported without being declared", name)


def _from(statement: Node) -> bool:
    return statement.child_by_field_name("source") is not None


def _specifiers(statement: Node) -> Iterator[Node]:
    for clause in named(statement):
        if clause.type == "export_clause":
            yield from named(clause)


def _exported(walk: Walk, statement: Node) -> Iterator[tuple[bytes, Node]]:
    """The names under which a statement exports something."""
    if has_token(statement, "default"):
        yield b"default", statement.children[0]
        return
    for specifier in _specifiers(statement):
        name = specifier.child_by_field_name("alias") or specifier.child_by_field_name("name")
        # ``default`` is no node.
        text = walk.text(name) if name is not None and not has_token(specifier, "default") else b""
        yield text or walk.text(specifier).split()[-1], specifier
    declaration = statement.child_by_field_name("declaration")
    if declaration is not None and declaration.type in ("lexical_declaration", "variable_declaration"):
        for declarator in named(declaration):
            yield from ((walk.text(each), each) for each in bound(declarator.child_by_field_name("name")))
    elif declaration is not None:
        name = declaration.child_by_field_name("name")
        if name is not None:
            yield walk.text(name), name
