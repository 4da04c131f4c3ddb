"""JavaScript and TypeScript: statements where they may not stand (ECMA-262, Static Semantics: Early Errors).

What only some programs refuse is taken: ``await`` and ``return`` outside functions in a file that may be a module, or
CommonJS. In TypeScript types are not looked at, nor what is only described (``declare``).
"""

from __future__ import annotations

import re

from codespec.early_errors import javascript_expressions, javascript_functions
from codespec.early_errors.javascript_context import Context, check_binding, check_name
from codespec.early_errors.javascript_expressions import check_commas, check_pattern, check_target
from codespec.early_errors.javascript_functions import BODIES, uses_strict
from codespec.early_errors.javascript_modules import brought_to_commonjs, check_exports, check_specifiers, is_commonjs
from codespec.early_errors.javascript_names import (
    CLASSES,
    FUNCTIONS,
    LEXICAL,
    DeclaredName,
    bound,
    imported,
    redeclared,
)
from codespec.early_errors.walk import Handler, Node, Walk, has_token, named, overloaded

_LINE_END = re.compile(b"[\r\n]|\xe2\x80[\xa8\xa9]")
_LOOPS = frozenset({"for_statement", "for_in_statement", "while_statement", "do_statement"})


def check(walk: Walk, root: Node, path: str) -> None:
    """Walk over a file of JavaScript."""
    _program(walk, root, path, typescript=False)


def check_typescript(walk: Walk, root: Node, path: str) -> None:
    """Walk over a file of TypeScript, unless it only describes what is elsewhere."""
    if not path.endswith((".d.ts", ".d.mts", ".d.cts")):
        _program(walk, root, path, typescript=True)


def _program(walk: Walk, root: Node, path: str, typescript: bool) -> None:
    statements = root.children
    links = [child for child in statements if child.type in ("import_statement", "export_statement")]
    foreign = not typescript and brought_to_commonjs(walk, links)
    for link in links if foreign else ():
        walk.report("import or export in a CommonJS module", link)
    module = path.endswith((".mjs", ".mts")) or (bool(links) and not foreign)
    script = not module and not typescript
    context = Context(
        strict=module or uses_strict(walk, root),
        module=module,
        typescript=typescript,
        top=True,
        returns=script,
        awaits=not path.endswith(".cjs") and not (script and is_commonjs(walk.data)),
        new_target=script,
    )
    redeclared(walk, statements, "module" if module else "function", [], typescript)
    if module:
        (check_specifiers if typescript else check_exports)(walk, statements)
    _statements(walk, statements, context)


def _statements(walk: Walk, statements: list[Node], context: Context) -> None:
    for statement in statements:
        if statement.is_named:
            walk.visit(statement, context)
    if context.typescript:
        plain = [_exported(each) for each in statements if each.is_named and each.type != "comment"]
        for signature in overloaded(walk, plain, "function_signature", "function_declaration"):
            walk.report("function without a body", signature)


def _exported(statement: Node) -> Node:
    if statement.type != "export_statement":
        return statement
    return statement.child_by_field_name("declaration") or statement


def _block(walk: Walk, node: Node, context: Context) -> None:
    parent = walk.parent(node)
    if parent is None or parent.type not in _BODIES:
        redeclared(walk, node.children, "strict" if context.strict else "block", [], context.typescript)
        context = context._replace(top=False)
    _statements(walk, node.children, context)


def _declaration(walk: Walk, node: Node, context: Context) -> None:
    constant = has_token(node, "const")
    for declarator in named(node):
        name = declarator.child_by_field_name("name")
        if declarator.type != "variable_declarator" or name is None:
            continue
        pattern = name.type in ("object_pattern", "array_pattern")
        if (constant or pattern) and declarator.child_by_field_name("value") is None:
            walk.report("declared without a value", declarator)
        check_pattern(walk, name)
        for each in bound(name):
            check_binding(walk, each, context)
            if node.type == "lexical_declaration" and walk.text(each) == b"let":
                walk.report("reserved word", each)
    walk.visit_children(node, context)


def _loop(walk: Walk, node: Node, context: Context) -> None:
    body, left = node.child_by_field_name("body"), node.child_by_field_name("left")
    first = node.child_by_field_name("initializer")
    context = context._replace(top=False)
    if first is not None and first.type in LEXICAL and body is not None:
        redeclared(walk, [first, body], "block", [], context.typescript)
    if left is not None and body is not None and has_token(node, "let", "const"):
        names = [DeclaredName(walk.text(each), "let", each) for each in bound(left)]
        redeclared(walk, [body], "block", names, context.typescript)
        for name in names:
            if name.text == b"let":
                walk.report("reserved word", name.node)
    elif left is not None and not has_token(node, "var"):
        check_target(walk, left, context)
    if left is not None and has_token(node, "var", "let", "const"):
        check_pattern(walk, left)
        if has_token(node, "of", "let", "const") and node.child_by_field_name("value") is not None:
            walk.report("value of a name in a loop over values", left)
    if has_token(node, "await") and not context.awaits:
        walk.report("await outside an async function", node, node.children[0])
    if body is not None:
        _check_single(walk, body, functions=False)
    for child in named(node):
        inside = body is not None and child.start_byte == body.start_byte
        walk.visit(child, context._replace(loop=True) if inside else context)


def _check_single(walk: Walk, body: Node, functions: bool) -> None:
    """Report a declaration that stands where only a statement may."""
    declares = body.type in CLASSES or (body.type == "lexical_declaration" and not has_token(body, "var"))
    while body.type == "labeled_statement" and not functions:
        body = body.child_by_field_name("body") or body.children[0]
    plain = body.type == "function_declaration" and not has_token(body, "async")
    if declares or (body.type in FUNCTIONS and not (functions and plain)):
        walk.report("declaration where a statement is wanted", body)


def _if(walk: Walk, node: Node, context: Context) -> None:
    context = context._replace(top=False)
    alternative = node.child_by_field_name("alternative")
    branches = [node.child_by_field_name("consequence"), *(named(alternative) if alternative is not None else [])]
    for branch in branches:
        if branch is not None:
            _check_single(walk, branch, functions=not context.strict and branch.type != "labeled_statement")
    if context.typescript and branches[0] is not None and branches[0].type == "empty_statement":
        walk.report("nothing behind if", branches[0])
    walk.visit_children(node, context)


def _with(walk: Walk, node: Node, context: Context) -> None:
    if context.strict:
        walk.report("with in strict mode", node, node.children[0])
    body = node.child_by_field_name("body")
    if body is not None:
        _check_single(walk, body, functions=False)
    walk.visit_children(node, context._replace(top=False))


def _switch(walk: Walk, node: Node, context: Context) -> None:
    cases = list(named(node))
    statements = [each for case in cases for each in case.children_by_field_name("body")]
    redeclared(walk, statements, "strict" if context.strict else "block", [], context.typescript)
    for default in [case for case in cases if case.type == "switch_default"][1:]:
        walk.report("default twice", default, default.children[0])
    for case in cases:
        walk.visit(case, context._replace(switch=True, top=False))


def _try(walk: Walk, node: Node, context: Context) -> None:
    if node.child_by_field_name("handler") is None and node.child_by_field_name("finalizer") is None:
        walk.report("try without catch", node.children[-1])
    walk.visit_children(node, context._replace(top=False))


def _catch(walk: Walk, node: Node, context: Context) -> None:
    body, parameter = node.child_by_field_name("body"), node.child_by_field_name("parameter")
    if parameter is not None:
        # A plain name may be declared again by ``var`` (ECMA-262, B.3.4).
        kind = "parameter" if parameter.type == "identifier" else "let"
        names = [DeclaredName(walk.text(each), kind, each) for each in bound(parameter)]
        check_pattern(walk, parameter)
        for name in names:
            check_binding(walk, name.node, context)
    if body is not None:
        mode = "strict" if context.strict else "block"
        redeclared(walk, body.children, mode, names if parameter is not None else [], context.typescript)
    walk.visit_children(node, context)


def _labeled(walk: Walk, node: Node, context: Context) -> None:
    label, body = node.child_by_field_name("label"), node.child_by_field_name("body")
    if label is None or body is None:
        return
    check_name(walk, label, context)
    name, inner = walk.text(label), body
    if name in context.labels:
        walk.report("label twice", label)
    _check_single(walk, body, functions=not context.strict)
    while inner is not None and inner.type == "labeled_statement":
        walk.spend()
        inner = inner.child_by_field_name("body")
    loops = {name} if inner is not None and inner.type in _LOOPS else set()
    walk.spend(len(context.labels))
    walk.visit(
        body,
        context._replace(top=False, labels=context.labels | {name}, loop_labels=context.loop_labels | loops),
    )


def _jump(walk: Walk, node: Node, context: Context) -> None:
    label = node.child_by_field_name("label")
    if label is not None and _LINE_END.search(walk.data[node.start_byte : label.start_byte]):
        label = None  # which begins the next statement
    goes_on = node.type == "continue_statement"
    if label is not None:
        if walk.text(label) not in (context.loop_labels if goes_on else context.labels):
            walk.report("unknown label", label)
    elif not (context.loop or (context.switch and not goes_on)):
        walk.report(f"{'continue' if goes_on else 'break'} outside a loop", node)


def _return(walk: Walk, node: Node, context: Context) -> None:
    if not context.returns:
        walk.report("return outside a function", node, node.children[0])
    walk.visit_children(node, context)


def _throw(walk: Walk, node: Node, context: Context) -> None:
    thrown = next(iter(named(node)), None)
    if thrown is not None and _LINE_END.search(walk.data[node.start_byte : thrown.start_byte]):
        walk.report("line break behind throw", node, node.children[0])
    walk.visit_children(node, context)


def _import(walk: Walk, node: Node, context: Context) -> None:
    if not context.top:
        walk.report("import in a block", node, node.children[0])
    for name in imported(node):
        check_name(walk, name, context)
    for clause in named(node):
        for names in named(clause):
            check_commas(walk, names)


def _export(walk: Walk, node: Node, context: Context) -> None:
    if not context.top:
        walk.report("export in a block", node, node.children[0])
    for child in named(node):
        if child.type != "export_clause":
            walk.visit(child, context)


def _namespace(walk: Walk, node: Node, context: Context) -> None:
    body = node.child_by_field_name("body")
    if not context.top:
        walk.report("namespace in a block", node, node.children[0])
    if body is not None:
        redeclared(walk, body.children, "function", [], context.typescript)
        walk.visit(body, context.inside(returns=False)._replace(top=True))


def _ambient(walk: Walk, node: Node, context: Context) -> None:
    """What is declared to be elsewhere: little is known of it but that nothing runs there."""
    for module in named(node):
        body = module.child_by_field_name("body") if module.type in ("internal_module", "module") else None
        for statement in body.children if body is not None else ():
            if _runs(statement):
                walk.report("statement in ambient code", statement)
            declared = (
                statement.child_by_field_name("declaration") if statement.type == "export_statement" else statement
            )
            if declared is not None and declared.type in ("interface_declaration", "type_alias_declaration"):
                walk.visit(declared, context, within=body)


def _runs(statement: Node) -> bool:
    """Whether a statement does something, instead of declaring it. The parser takes a namespace for an expression."""
    if statement.type == "expression_statement":
        return statement.children[0].type not in ("internal_module", "module")
    return statement.type in _RUN


HANDLERS: dict[str, Handler] = {
    **javascript_expressions.HANDLERS,
    **javascript_functions.HANDLERS,
    **dict.fromkeys(("lexical_declaration", "variable_declaration"), _declaration),
    **dict.fromkeys(_LOOPS, _loop),
    "statement_block": _block,
    "if_statement": _if,
    "with_statement": _with,
    "switch_body": _switch,
    "try_statement": _try,
    "catch_clause": _catch,
    "labeled_statement": _labeled,
    "break_statement": _jump,
    "continue_statement": _jump,
    "return_statement": _return,
    "throw_statement": _throw,
    "import_statement": _import,
    "export_statement": _export,
    "internal_module": _namespace,
    "module": _namespace,
    "ambient_declaration": _ambient,
}
_RUN = _LOOPS | {"if_statement", "switch_statement", "try_statement", "return_statement", "throw_statement"}
_BODIES = BODIES | {"catch_clause", "internal_module", "module"}
