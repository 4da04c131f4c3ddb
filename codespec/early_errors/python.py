"""Python: what ``compile`` refuses, and ``ast.parse``, of what tree-sitter takes."""

from __future__ import annotations
import __future__

import re

from codespec.early_errors import python_expressions
from codespec.early_errors.python_context import Context
from codespec.early_errors.python_expressions import check_stored
from codespec.early_errors.python_lines import check_lines
from codespec.early_errors.python_scopes import check_global_statements, check_parameters
from codespec.early_errors.walk import EarlyError, Handler, Node, Walk, has_token, named

_FEATURES = frozenset(__future__.all_feature_names)
_BLANK = re.compile(rb"(?:\s|\\\n|#[^\n]*)*")
_CLAUSES = frozenset({"elif_clause", "else_clause", "except_clause", "except_group_clause", "finally_clause"})


def check(walk: Walk, root: Node, path: str) -> None:
    """Walk over a file; in a notebook ``await`` may stand outside functions."""
    statements = list(named(root))
    _check_future(walk, statements)
    check_global_statements(walk, root, root)
    for statement in statements:
        start = statement.start_byte
        if start and walk.data[start - 1] not in b"\n\r" and _indentation(walk, statement):
            walk.report("indentation", statement)
        check_lines(walk, statement)
        walk.visit(statement, Context(top=True, awaits=".ipynb" in path))


def _indentation(walk: Walk, statement: Node) -> bytes | None:
    """What stands before a statement on its line; None where that is more than white space."""
    start = statement.start_byte
    before = walk.data[max(walk.data.rfind(b"\n", 0, start), walk.data.rfind(b"\r", 0, start)) + 1 : start]
    return None if before.strip() else before.replace(b"\f", b"")


def _check_future(walk: Walk, statements: list[Node]) -> None:
    for index, statement in enumerate(statements):
        if statement.type == "future_import_statement":
            continue
        if index or not _is_docstring(statement):
            late = statements[index:]
            break
    else:
        return
    if b"__future__" in walk.data:
        for statement in late:
            if statement.type == "future_import_statement":
                walk.report("future import too late", statement)


def _is_docstring(statement: Node) -> bool:
    children = statement.children
    return statement.type == "expression_statement" and children[0].type in ("string", "concatenated_string")


def _block(walk: Walk, node: Node, context: Context) -> None:
    statements = list(named(node))
    if not statements:
        before = node.parent.children if node.parent is not None else []
        start = max((sign.end_byte for sign in before if sign.type == ":"), default=node.start_byte)
        blank = _BLANK.match(walk.data, start)
        assert blank is not None
        walk.errors.add(EarlyError("empty block", start, blank.end()))
        return
    first = _indentation(walk, statements[0])
    for statement in statements:
        before = _indentation(walk, statement)
        if before is not None and before != first:
            walk.report("indentation", statement)
        check_lines(walk, statement)
        walk.visit(statement, context)


def _compound(walk: Walk, node: Node, context: Context) -> None:
    """A statement with clauses, which stand where it does."""
    context = context._replace(top=False)
    own = _indentation(walk, node)
    for child in named(node):
        if child.type in _CLAUSES and _indentation(walk, child) not in (own, None):
            walk.report("indentation", child)
        walk.visit(child, context)


def _loop(walk: Walk, node: Node, context: Context) -> None:
    if has_token(node, "async") and not context.awaits:
        walk.report("await outside an async function", node, node.children[0])
    left = node.child_by_field_name("left")
    if left is not None:
        check_stored(walk, left)
    body = node.child_by_field_name("body")
    own = _indentation(walk, node)
    context = context._replace(top=False)
    for child in named(node):
        if child.type in _CLAUSES and _indentation(walk, child) not in (own, None):
            walk.report("indentation", child)
        inside = body is not None and child.start_byte == body.start_byte and child.type == body.type
        walk.visit(child, context._replace(loop=True) if inside else context)


def _with(walk: Walk, node: Node, context: Context) -> None:
    if has_token(node, "async") and not context.awaits:
        walk.report("await outside an async function", node, node.children[0])
    walk.visit_children(node, context._replace(top=False))


def _try(walk: Walk, node: Node, context: Context) -> None:
    clauses = [child for child in named(node) if child.type in ("except_clause", "except_group_clause")]
    for clause in clauses[:-1]:
        if not has_token(clause, "*") and next((c.type for c in named(clause)), "") == "block":
            walk.report("bare except before others", clause, clause.children[0])
    starred = [clause.type == "except_group_clause" or has_token(clause, "*", "except*") for clause in clauses]
    if any(starred) and not all(starred):
        walk.report("except and except*", clauses[-1], clauses[-1].children[0])
    others = {child.type for child in node.children}
    if not clauses and ("finally_clause" not in others or "else_clause" in others):
        walk.report("try without except", node, node.children[0])
    _compound(walk, node, context)


def _except(walk: Walk, node: Node, context: Context) -> None:
    if has_token(node, ","):
        walk.report("exceptions without parentheses", node, node.children[0])
    walk.visit_children(node, context)


def _function(walk: Walk, node: Node, context: Context) -> None:
    parameters, body = node.child_by_field_name("parameters"), node.child_by_field_name("body")
    outer = context._replace(top=False)
    for child in named(node):
        if body is None or child.start_byte != body.start_byte:
            walk.visit(child, outer)
    if parameters is not None:
        check_parameters(walk, parameters)
    if body is not None:
        check_global_statements(walk, node, body)
        asynchronous = has_token(node, "async")
        walk.visit(body, Context(function=True, asynchronous=asynchronous, awaits=asynchronous, code=True))


def _lambda(walk: Walk, node: Node, context: Context) -> None:
    parameters, body = node.child_by_field_name("parameters"), node.child_by_field_name("body")
    if parameters is not None:
        check_parameters(walk, parameters)
        walk.visit(parameters, context)
    if body is not None:
        walk.visit(body, Context(function=True, code=True))


def _class(walk: Walk, node: Node, context: Context) -> None:
    body = node.child_by_field_name("body")
    context = context._replace(top=False)
    for child in named(node):
        own = body is not None and child.start_byte == body.start_byte
        walk.visit(child, Context(code=True) if own else context)


def _return(walk: Walk, node: Node, context: Context) -> None:
    if not context.function:
        walk.report("return outside a function", node, node.children[0])
    walk.visit_children(node, context)


def _jump(walk: Walk, node: Node, context: Context) -> None:
    if not context.loop:
        walk.report(f"{node.type.split('_')[0]} outside a loop", node)


def _nonlocal(walk: Walk, node: Node, context: Context) -> None:
    if not context.code:
        walk.report("nonlocal outside a function", node)


def _wildcard(walk: Walk, node: Node, context: Context) -> None:
    if context.code:
        walk.report("import * in a function", node)


def _future(walk: Walk, node: Node, context: Context) -> None:
    if not context.top:
        walk.report("future import too late", node)
    for imported in named(node):
        name = imported.child_by_field_name("name") if imported.type == "aliased_import" else imported
        if name is not None and name.type == "dotted_name" and walk.text(name).decode() not in _FEATURES:
            walk.report("unknown future feature", name)


def _python_2(walk: Walk, node: Node, context: Context) -> None:
    # ``print >>file, x`` is a tuple, too.
    if not any(child.type == "chevron" for child in node.children):
        walk.report("statement of Python 2", node, node.children[0])


def _raise(walk: Walk, node: Node, context: Context) -> None:
    if any(child.type == "expression_list" for child in node.children):
        walk.report("statement of Python 2", node)
    walk.visit_children(node, context)


def _match(walk: Walk, node: Node, context: Context) -> None:
    body = node.child_by_field_name("body")
    cases = list(named(body)) if body is not None else []
    if body is not None and not cases:
        walk.report("empty block", body)
    for case in cases[:-1]:
        patterns = [child for child in named(case) if child.type == "case_pattern"]
        only = list(named(patterns[0])) if len(patterns) == 1 and not has_token(case, ",") else []
        plain = not only and len(patterns) == 1 and walk.text(patterns[0]) == b"_"
        name = len(only) == 1 and only[0].type == "dotted_name" and len(list(named(only[0]))) == 1
        if (plain or name) and case.child_by_field_name("guard") is None:
            walk.report("pattern that leaves nothing to others", patterns[0])
    context = context._replace(top=False)
    for child in named(node):
        if body is not None and child.start_byte == body.start_byte:
            for case in cases:
                walk.visit(case, context)
        else:
            walk.visit(child, context)


HANDLERS: dict[str, Handler] = {
    **python_expressions.HANDLERS,
    "block": _block,
    "if_statement": _compound,
    "for_statement": _loop,
    "while_statement": _loop,
    "with_statement": _with,
    "try_statement": _try,
    "except_clause": _except,
    "function_definition": _function,
    "lambda": _lambda,
    "class_definition": _class,
    "return_statement": _return,
    "break_statement": _jump,
    "continue_statement": _jump,
    "nonlocal_statement": _nonlocal,
    "wildcard_import": _wildcard,
    "future_import_statement": _future,
    "print_statement": _python_2,
    "exec_statement": _python_2,
    "raise_statement": _raise,
    "match_statement": _match,
}
