"""Which functions of the package may come back to themselves: a call graph.

A call by a name goes to what the module defines or imports by it, one on ``self`` or ``cls`` to a method of the module.
What is passed on by its name may be called. Calls on other objects are left out: nearly all are of what one wraps.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[2] / "codespec"


class Function(NamedTuple):
    """A function or method, and the names that it calls or passes on, each with what on: ``name`` or ``self``."""

    module: str
    owner: str
    name: str
    calls: frozenset[tuple[str, str]]

    def __str__(self) -> str:
        where = self.module.removeprefix("codespec.")
        return f"{where}:{self.owner}.{self.name}" if self.owner else f"{where}:{self.name}"


def functions(path: Path) -> Iterator[Function]:
    """The functions of a file, those within others as well."""
    module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    waiting: list[tuple[ast.AST, str]] = [(ast.parse(path.read_text("utf-8")), "")]
    while waiting:
        node, owner = waiting.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield Function(module, owner, child.name, frozenset(_calls(child)))
                waiting.append((child, owner))
            else:
                waiting.append((child, child.name if isinstance(child, ast.ClassDef) else owner))


def _calls(function: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(function):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Name):
            yield "name", called.id
        elif isinstance(called, ast.Attribute) and _is_self(called.value):
            yield "self", called.attr
        for passed in [*node.args, *(each.value for each in node.keywords)] if isinstance(node, ast.Call) else ():
            if isinstance(passed, ast.Name):
                yield "name", passed.id
            elif isinstance(passed, ast.Attribute) and _is_self(passed.value):
                yield "self", passed.attr


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def recursive(paths: list[Path]) -> set[str]:
    """The functions that may come back to themselves."""
    found = [each for path in paths for each in functions(path)]
    in_module: dict[tuple[str, str], list[Function]] = defaultdict(list)
    for each in found:
        in_module[each.module, each.name].append(each)
    imports = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): dict(_imported(path)) for path in paths
    }
    graph = {each: set(_reached(each, in_module, imports[each.module])) for each in found}
    return {str(each) for each in found if _comes_back(graph, each)}


def _imported(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from ((alias.asname or alias.name, node.module) for alias in node.names)


def _reached(
    function: Function, in_module: dict[tuple[str, str], list[Function]], imports: dict[str, str]
) -> Iterator[Function]:
    for on, name in function.calls:
        here = in_module.get((function.module, name), [])
        if on == "self":
            own = [each for each in here if each.owner == function.owner]
            yield from own or [each for each in here if each.owner]
        elif on == "name":
            yield from (each for each in here if not each.owner or each.owner == function.owner)
            yield from in_module.get((imports.get(name, ""), name), [])


def _comes_back(graph: dict[Function, set[Function]], start: Function) -> bool:
    seen: set[Function] = set()
    waiting = list(graph[start])
    while waiting:
        each = waiting.pop()
        if each == start:
            return True
        if each not in seen:
            seen.add(each)
            waiting += graph[each]
    return False


if __name__ == "__main__":
    for line in sorted(recursive(sorted(PACKAGE.rglob("*.py")))):
        print(line)
