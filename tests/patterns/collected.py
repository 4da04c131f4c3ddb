"""Every regular expression of the package: those of its modules, and those that its functions write at each call."""

from __future__ import annotations

import ast
import contextlib
import importlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

import codespec

PACKAGE = Path(codespec.__file__).parent
_CALLS = {"compile", "search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split"}
_ANYWHERE = _CALLS - {"compile", "match", "fullmatch"}


@dataclass(frozen=True)
class Found:
    """A pattern of the package.

    Attributes:
        place: module and line, or module and name.
        way: ``search`` where a match may begin at many places of one text, else ``match`` or ``fullmatch``.
    """

    place: str
    pattern: re.Pattern[Any]
    way: str


@dataclass(frozen=True)
class Unknown:
    """A call whose pattern cannot be told from the module alone: its function needs samples of its names."""

    place: str
    function: str


def modules() -> Iterator[tuple[str, Path]]:
    """Names and files of all modules that can be imported without the extras of training."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        if "__main__" not in parts:
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def patterns(samples: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[Found | Unknown]:
    """All patterns.

    Args:
        samples: for functions that write patterns, as ``module:function``: values of the names that they write them
            of, once or several times.
    """
    for name, path in modules():
        tree = ast.parse(path.read_text("utf-8"))
        if not any(isinstance(node, ast.Import) and node.names[0].name == "re" for node in ast.walk(tree)):
            continue
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:  # an extra that is not installed
            module = ModuleType(name)
            module.re = re  # type: ignore[attr-defined]
        ways = _ways(tree)
        held = dict(_held(module))
        for key, pattern in held.items():
            yield Found(f"{name}:{key}", pattern, ways.get(key, "search"))
        yield from _calls(name, tree, module, samples, set(held.values()))


def _held(module: ModuleType) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Compiled patterns that a module keeps, also in tables."""
    for name, value in vars(module).items():
        if not name.startswith("__"):
            yield from _inside(name, value, set())


def _inside(name: str, value: Any, seen: set[int]) -> Iterator[tuple[str, re.Pattern[Any]]]:
    if isinstance(value, re.Pattern):
        yield name, value
    elif id(value) in seen or isinstance(value, (str, bytes, ModuleType, Enum)):
        return
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _inside(f"{name}[{key}]", each, {*seen, id(value)})
    elif isinstance(value, (list, tuple, set, frozenset)):
        for index, each in enumerate(value):
            yield from _inside(f"{name}[{index}]", each, {*seen, id(value)})
    elif hasattr(value, "__dict__") and type(value).__module__.startswith("codespec") and not isinstance(value, type):
        for key, each in vars(value).items():
            yield from _inside(f"{name}.{key}", each, {*seen, id(value)})


def _ways(tree: ast.Module) -> dict[str, str]:
    """How the patterns that stand in names are used: by the methods called on the names."""
    ways: dict[str, set[str]] = {}
    used: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            used[node.id] = used.get(node.id, 0) + 1
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ):
            way = node.func.attr
            if way in _CALLS:
                anywhere = way in _ANYWHERE or len(node.args) > 1
                ways.setdefault(node.func.value.id, set()).add("search" if anywhere else way)
                used[node.func.value.id] = used.get(node.func.value.id, 0) - 1
    # A name that is also used otherwise may be passed on, and searched for elsewhere.
    return {
        name: "search" if "search" in found or used.get(name, 0) > 0 else min(found) for name, found in ways.items()
    }


def _calls(
    name: str,
    tree: ast.Module,
    module: ModuleType,
    samples: Mapping[str, Sequence[Mapping[str, Any]]],
    known: set[re.Pattern[Any]],
) -> Iterator[Found | Unknown]:
    for function, node in _re_calls(tree, ""):
        if not function and module.__dict__.get("__file__"):
            continue  # it stands in the module, where it was found
        key = f"{name}:{function}"
        place = f"{name}:{node.lineno}"
        found = list(_values(node.args[0], place, module, samples.get(key, ({},))))
        if not found:
            yield Unknown(place, key)
        for value in found:
            compiled = value if isinstance(value, re.Pattern) else re.compile(value, _flags(node, module))
            assert isinstance(node.func, ast.Attribute)
            if compiled not in known:
                way = node.func.attr
                yield Found(place, compiled, way if way in ("match", "fullmatch") else "search")


def _values(node: ast.expr, place: str, module: ModuleType, samples: Iterable[Mapping[str, Any]]) -> Iterator[Any]:
    """What an expression of a module is, for each sample of its names for which it is anything."""
    code = compile(ast.Expression(node), place, "eval")
    for sample in samples:
        with contextlib.suppress(Exception):
            yield eval(code, vars(module), dict(sample))  # the text of the package itself


def _flags(node: ast.Call, module: ModuleType) -> int:
    for each in (*node.args[1:], *(keyword.value for keyword in node.keywords if keyword.arg == "flags")):
        try:
            value = eval(compile(ast.Expression(each), "flags", "eval"), vars(module))
        except Exception:
            continue
        if isinstance(value, re.RegexFlag):
            return int(value)
    return 0


def _re_calls(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Call]]:
    for child in ast.iter_child_nodes(node):
        inner = function
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inner = child.name
        if isinstance(child, ast.Call) and _is_re(child.func) and child.args:
            yield inner, child
        yield from _re_calls(child, inner)


def _is_re(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "re"
        and node.attr in _CALLS
    )
