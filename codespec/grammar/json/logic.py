"""Rewritten JSON Schemas: what they say of types and values, and their completion in keywords that llguidance has.

Every function takes schemas whose references are ``#/$defs/NAME`` with NAME in ``definitions``, and gives None where it
cannot answer exactly.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from codespec.grammar.json.patterns.lower import both_of, whole
from codespec.grammar.json.refs import Schema

Definitions = Mapping[str, "Schema | None"]

TYPES = frozenset({"null", "boolean", "number", "string", "array", "object"})
EVALUATES = "x-evaluates"
"""Marks a part standing for keywords that evaluate no members (``nothing``), or not all it names (``unknown``)."""
OPTIONAL = "x-optional"
"""Marks what validators need not assert, such as formats: nothing may follow from a value that fails it."""
OF_OBJECTS = frozenset({
    "properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties", "allOf",
    "$ref", EVALUATES,
})  # fmt: skip
DEPTH = 8  # references and combinations followed
MAX_OPTIONS = 4  # alternatives whose combinations are written out


def both(*schemas: Schema) -> Schema:
    """A schema for the values that satisfy all of ``schemas``."""
    if any(schema is False for schema in schemas):
        return False
    parts = [schema for schema in schemas if schema is not True]
    return parts[0] if len(parts) == 1 else {"allOf": parts} if parts else True


def only(value: Any) -> Schema:
    """``const: value``, with an object's properties listed."""
    if not isinstance(value, dict):
        return {"const": value}
    properties = {key: only(item) for key, item in value.items()}
    return {"type": ["object"], "properties": properties, "required": list(value), "additionalProperties": False}


def holds_one(wanted: Schema, limit: int) -> Schema:
    """``contains: wanted`` of at most ``limit`` items."""
    options: list[Schema] = [{"type": sorted(TYPES - {"array"})}]
    options += [{"prefixItems": [True] * n + [wanted], "minItems": n + 1} for n in range(limit)]
    return {"anyOf": options, EVALUATES: "unknown"}


def evaluates_nothing(schema: Schema) -> Schema:
    """``schema``, whose members do not count as evaluated."""
    return schema if isinstance(schema, bool) else {**schema, EVALUATES: "nothing"}


def definition_of(schema: Mapping[str, Any]) -> str:
    """The name that a rewritten ``$ref`` points to."""
    reference: str = schema["$ref"]
    return reference.removeprefix("#/$defs/")


def is_circle(name: str, definitions: Definitions) -> bool:
    """Whether a definition is nothing but a reference that leads back to itself."""
    seen, schema = {name}, definitions[name]
    while isinstance(schema, dict) and list(schema) == ["$ref"]:
        target = definition_of(schema)
        if target in seen:
            return True
        seen.add(target)
        schema = definitions[target]
    return False


def types_of(schema: Mapping[str, Any]) -> frozenset[str]:
    """The types that ``type``, ``const`` and ``enum`` leave; ``integer`` counts as ``number``."""
    types = TYPES
    if "type" in schema:
        written = schema["type"]
        names = [written] if isinstance(written, str) else written
        types = frozenset("number" if name == "integer" else name for name in names)
    values = values_of(schema)
    return types if values is None else types & {type_of(value) for value in values}


def values_of(schema: Mapping[str, Any]) -> list[Any] | None:
    """The values that ``const`` or ``enum`` list; None without them."""
    if "const" in schema:
        return [schema["const"]]
    values: list[Any] | None = schema.get("enum")
    return values


def type_of(value: Any) -> str:
    """The type of a JSON value, ``integer`` counting as ``number``."""
    if value is None:
        return "null"
    for kind, name in ((bool, "boolean"), (int | float, "number"), (str, "string"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "object"


def same(a: Any, b: Any) -> bool:
    """Equality of JSON values: 1 is 1.0, true is not 1."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(type_of(a) == type_of(b) and a == b)


def conjuncts(schema: Schema, definitions: Definitions, depth: int) -> Iterator[dict[str, Any]]:
    """Schemas that all hold wherever ``schema`` holds, without ``allOf`` and ``$ref``, and what is optional."""
    if isinstance(schema, bool) or depth == 0 or OPTIONAL in schema:
        return
    yield schema
    for part in schema.get("allOf", ()):
        yield from conjuncts(part, definitions, depth - 1)
    if "$ref" in schema:
        yield from conjuncts(definitions[definition_of(schema)] or True, definitions, depth - 1)


def demands_of(schema: Schema | None, definitions: Definitions, depth: int) -> list[Schema] | None:
    """Schemas that hold together exactly where ``schema`` holds, once ``allOf`` and ``$ref`` are left out of them; None
    if there are too many, or one is not known yet."""
    if isinstance(schema, bool):
        return [schema]
    if schema is None or depth == 0:
        return None
    found: list[Schema] = [schema]
    further = [*schema.get("allOf", ()), *([definitions[definition_of(schema)]] if "$ref" in schema else [])]
    for part in further:
        demands = demands_of(part, definitions, depth - 1)
        if demands is None:
            return None
        found += demands
    return found


def item_of(schema: dict[str, Any], index: int) -> Schema:
    """The schema of the item at ``index``."""
    first = schema.get("prefixItems", ())
    found: Schema = first[index] if index < len(first) else schema.get("items", True)
    return found


def common_types(parts: list[dict[str, Any]]) -> frozenset[str]:
    types = TYPES
    for part in parts:
        types &= types_of(part)
    return types


# Names and what is left over


def names_rule(schema: Schema, definitions: Definitions) -> Schema | None:
    """``propertyNames: schema`` in other keywords."""
    found = demands_of(schema, definitions, DEPTH)
    if found is None:
        return None
    parts = [part for part in found if isinstance(part, dict)]
    if False in found or "string" not in common_types(parts):
        return {"maxProperties": 0}
    if not parts:
        return True
    known = {"type", "pattern", "minLength", "maxLength", "const", "enum", "allOf", "$ref", OPTIONAL}
    if any(set(part) - known for part in parts):
        return None
    rules: list[Schema] = []
    patterns: list[str] = []
    for part in parts:
        values = values_of(part)
        if values is not None:
            rules.append({"properties": dict.fromkeys(filter(lambda v: isinstance(v, str), values), True)})
        if "pattern" in part:
            patterns.append(part["pattern"])
        if "minLength" in part or "maxLength" in part:
            patterns.append(whole(f"(?s:.){{{part.get('minLength', 0)},{part.get('maxLength', '')}}}"))
    # The engine wants the patterns of one object to exclude each other.
    one = None if len(patterns) < 2 else both_of(patterns)
    rules += [{"patternProperties": {pattern: True}} for pattern in (patterns if one is None else [one])]
    return both(*({**rule, "additionalProperties": False} for rule in rules if isinstance(rule, dict)))


def close(schema: Schema, rest: Schema, objects: bool, definitions: Definitions) -> Schema | None:
    """``schema`` whose members that nothing in it evaluates satisfy ``rest``."""
    options = list(_cases(schema, definitions, DEPTH))
    if not options or None in options:
        return None
    closed = [(_close_object if objects else _close_array)(option or [], rest) for option in options]
    return {"anyOf": closed} if len(closed) > 1 else closed[0]


def _cases(schema: Schema, definitions: Definitions, depth: int) -> list[list[dict[str, Any]] | None]:
    """The ways in which ``schema`` can hold, each as the schemas whose evaluation counts; None: too many to tell."""
    if isinstance(schema, bool) or schema.get(EVALUATES) == "nothing":
        return [[]]
    if depth == 0 or EVALUATES in schema:
        return [None]
    cases: list[list[dict[str, Any]] | None] = [[schema]]
    groups: list[list[Any]] = [_cases(part, definitions, depth - 1) for part in schema.get("allOf", ())]
    if "$ref" in schema:
        groups.append(_cases(definitions[definition_of(schema)] or True, definitions, depth - 1))
    if "anyOf" in schema:
        if len(schema["anyOf"]) > MAX_OPTIONS:
            return [None]
        options = [(option, _cases(option, definitions, depth - 1)) for option in schema["anyOf"]]
        groups.append(_combinations(options))
    for group in groups:
        cases = [None if a is None or b is None else a + b for a in cases for b in group]
        if len(cases) > 64:
            return [None]
    return cases


def _combinations(options: list[tuple[Schema, list[Any]]]) -> list[Any]:
    """Every way in which at least one alternative holds: several may, and each evaluates its own members."""
    found: list[Any] = []
    for size in range(1, len(options) + 1):
        for chosen in itertools.combinations(options, size):
            for parts in itertools.product(*(cases for _, cases in chosen)):
                held = [{"allOf": [option]} for option, _ in chosen]
                found.append(None if None in parts else [*held, *itertools.chain(*parts)])
    return found


def _close_object(parts: list[dict[str, Any]], rest: Schema) -> Schema:
    if any("additionalProperties" in part for part in parts):
        return both(*_held(parts))
    names = dict.fromkeys((key for part in parts for key in part.get("properties", ())), True)
    patterns = dict.fromkeys((key for part in parts for key in part.get("patternProperties", ())), True)
    closed = {"properties": names, "patternProperties": patterns, "additionalProperties": rest}
    return both(*_held(parts), closed if patterns else {k: v for k, v in closed.items() if k != "patternProperties"})


def _close_array(parts: list[dict[str, Any]], rest: Schema) -> Schema:
    if any("items" in part for part in parts):
        return both(*_held(parts))
    longest = max((len(part.get("prefixItems", ())) for part in parts), default=0)
    return both(*_held(parts), {"prefixItems": [True] * longest, "items": rest} if longest else {"items": rest})


def _held(parts: list[dict[str, Any]]) -> list[Schema]:
    """The alternatives that a case assumes to hold."""
    return [part["allOf"][0] for part in parts if list(part) == ["allOf"] and len(part["allOf"]) == 1]
