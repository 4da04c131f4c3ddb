"""Gaps in Python functions whose docstring has examples: these are the task's test."""

from __future__ import annotations

import ast
import random
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.infill.cut import cut
from benchmarks.infill.sandbox import passes
from benchmarks.infill.task import Task
from codespec.languages import by_id

PER_FUNCTION = 1
"""Gaps of a kind in one function."""
SHORTEST = 2
"""Statements of a function beside its docstring."""

# Names of the program's own would be those of the file, which may have one of them.
TEST = """

def check(candidate):
    import doctest as _doctest
    import sys as _sys

    runner = _doctest.DocTestRunner(verbose=False)
    module = _sys.modules[candidate.__module__]
    for example in _doctest.DocTestFinder(recurse=False).find(candidate, module=module, globs=dict(vars(module))):
        runner.run(example, out=lambda _text: None)
    assert runner.tries and not runner.failures
"""


@dataclass(frozen=True)
class Function:
    """A function of a file; its body is from line ``first`` to line ``last``, the docstring not included."""

    name: str
    first: int
    last: int


def functions(text: str) -> list[Function]:
    """The functions of a file's top level that have examples and can run without other packages."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    if not all(_is_standard(node) for node in ast.walk(tree)):
        return []
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and ">>>" in (ast.get_docstring(node) or ""):
            body = node.body[1:]
            if body and (body[-1].end_lineno or 0) - body[0].lineno + 1 >= SHORTEST:
                found.append(Function(node.name, body[0].lineno, body[-1].end_lineno or 0))
    return found


def _is_standard(node: ast.AST) -> bool:
    """Whether an import, if it is one, is of the standard library."""
    if isinstance(node, ast.Import):
        return all(each.name.partition(".")[0] in sys.stdlib_module_names for each in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.level == 0 and (node.module or "").partition(".")[0] in sys.stdlib_module_names
    return True


def tasks(path: Path, text: str, kind: str, chooser: random.Random) -> Iterator[Task]:
    """Gaps of a kind in the functions of a file, at most ``PER_FUNCTION`` in each.

    Yields:
        those whose test passes with what the author wrote, and fails with nothing.
    """
    found = functions(text)
    if not found:
        return
    everywhere = list(cut(path.name, text, by_id("python"), kind, sys.maxsize, chooser))
    for function in found:
        given = 0
        for task in everywhere:
            first = task.prompt.count("\n") + 1
            last = first + task.canonical_solution.count("\n")
            if given == PER_FUNCTION or not (function.first <= first and last <= function.last):
                continue
            tested = replace(task, test=TEST, entry_point=function.name)
            if passes(tested, task.canonical_solution, alone=True) and not passes(tested, "", alone=True):
                given += 1
                yield tested
            elif not passes(tested, task.canonical_solution, alone=True):
                break  # of this function
