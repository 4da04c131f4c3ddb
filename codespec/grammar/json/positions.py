"""The positions in texts of a rewritten JSON Schema where items (``uniqueItems``), or names too many for rules, must
differ."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from codespec.grammar.json.logic import both
from codespec.grammar.json.patterns.lower import apart, may_match, may_overlap
from codespec.grammar.json.refs import Schema

UNIQUE = "uniqueItems"
_NEXT = 1e-6  # how near a number comes to an exclusive whole bound
_MOST_PATTERNS = 4  # of one object
_DEPTH = 8  # references and combinations followed
MAX_PROPERTIES = 64
"""The bits of a rule's parameter, see ``json_order``."""
_MAPS, _LISTS = ("properties", "patternProperties"), ("allOf", "anyOf", "prefixItems")
_ONE = ("additionalProperties", "items")


def subschemas(schema: Schema) -> Iterator[Schema]:
    """The schemas in a rewritten schema's keywords, definitions aside."""
    if isinstance(schema, dict):
        for keyword in _MAPS:
            yield from schema.get(keyword, {}).values()
        for keyword in _LISTS:
            yield from schema.get(keyword, ())
        for keyword in _ONE:
            if keyword in schema:
                yield schema[keyword]


def for_engine(schema: Schema) -> Schema:
    """A rewritten schema and its definitions as the engine takes them: without ``uniqueItems``, which it does not know,
    without bounds that it overlooks, and without patterns that overlap."""
    if isinstance(schema, bool):
        return schema
    out = _bounded({key: item for key, item in schema.items() if key != UNIQUE})
    for keyword in (*_MAPS, "$defs"):
        if keyword in out:
            out[keyword] = {name: for_engine(item) for name, item in out[keyword].items()}
    for keyword in _LISTS:
        if keyword in out:
            out[keyword] = [for_engine(item) for item in out[keyword]]
    for keyword in _ONE:
        if keyword in out:
            out[keyword] = for_engine(out[keyword])
    if 1 < len(out.get("patternProperties", ())) <= _MOST_PATTERNS:
        out["patternProperties"] = _apart(out["patternProperties"])
    return out


def _apart(patterns: dict[str, Schema]) -> dict[str, Schema]:
    """With patterns that exclude each other, as the engine wants them."""
    schemas = list(patterns.values())
    parts = apart(list(patterns)) if any(may_overlap(pair) for pair in itertools.combinations(patterns, 2)) else None
    if parts is None:
        return patterns
    return {pattern: both(*(schemas[index] for index in held)) for pattern, held in parts}


def names_must_differ(schema: dict[str, Any]) -> bool:
    """Whether a name that comes twice would count twice, which no parser of JSON does."""
    return bool(schema.get("minProperties", 0) > 1)


def _bounded(schema: dict[str, Any]) -> dict[str, Any]:
    """With bounds that take the value next to an exclusive whole one.

    The engine takes 0 under ``exclusiveMinimum: 0`` where a maximum below 1 stands beside it.
    """
    for exclusive, inclusive, sign in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
        bound = schema.get(exclusive)
        if bound is not None and bound == int(bound):
            next_ = float(bound) + sign * max(_NEXT, math.ulp(bound))
            stricter = max if sign == 1 else min
            schema[inclusive] = stricter(schema.get(inclusive, next_), next_)
            del schema[exclusive]
    return schema


ValuePosition: TypeAlias = "frozenset[int]"
"""The schemas that a value may have to satisfy, by number. Where alternatives differ it holds those of all of them."""


class ValuePositions:
    """The positions of a rewritten schema's values, as far as items or names must differ in them."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._definitions: Mapping[str, Schema] = schema.get("$defs", {})
        self._schemas: list[dict[str, Any]] = []
        self._numbers: dict[int, int] = {}
        self._watched: set[int] = set()
        self._steps: dict[tuple[ValuePosition, str | int], ValuePosition] = {}
        reached = self._reach(schema)
        found = {number for number, each in enumerate(self._schemas) if each.get(UNIQUE) or self._names_differ(each)}
        while found:  # and what leads there, by whatever detours
            self._watched |= found
            found = {number for number, below in reached.items() if not self._watched.isdisjoint(below)} - self._watched
        self.start = self._watched_of([schema])

    def _reach(self, schema: dict[str, Any]) -> dict[int, list[int]]:
        """Every schema, and those that it leads to."""
        reached: dict[int, list[int]] = {}
        waiting: list[Schema] = [schema]
        while waiting:
            each = waiting.pop()
            if isinstance(each, bool) or self._number(each) in reached:
                continue
            below = [*subschemas(each), *self._target(each)]
            reached[self._number(each)] = [self._number(item) for item in below if not isinstance(item, bool)]
            waiting += below
        return reached

    def _target(self, schema: dict[str, Any]) -> list[Schema]:
        reference = schema.get("$ref")
        return [self._definitions[reference.removeprefix("#/$defs/")]] if isinstance(reference, str) else []

    def _number(self, schema: dict[str, Any]) -> int:
        number = self._numbers.setdefault(id(schema), len(self._schemas))
        if number == len(self._schemas):
            self._schemas.append(schema)
        return number

    def _together(self, schemas: Sequence[Schema]) -> list[dict[str, Any]]:
        """With all that may have to hold for the same value."""
        found: dict[int, dict[str, Any]] = {}
        waiting = list(schemas)
        while waiting:
            each = waiting.pop()
            if not isinstance(each, bool) and id(each) not in found:
                found[id(each)] = each
                waiting += [*each.get("allOf", ()), *each.get("anyOf", ()), *self._target(each)]
        return list(found.values())

    def _watched_of(self, schemas: Sequence[Schema]) -> ValuePosition:
        return frozenset(self._number(each) for each in self._together(schemas)) & self._watched

    def _names_differ(self, schema: dict[str, Any]) -> bool:
        if names_must_differ(schema):
            return True
        names = {name for each in self._together([schema]) for name in each.get("properties", ())}
        return len(names) > MAX_PROPERTIES

    def differ(self, place: ValuePosition, array: bool) -> bool:
        """Whether the items of an array there must differ, or the names of an object."""
        schemas = (self._schemas[number] for number in place)
        return any(each.get(UNIQUE) if array else self._names_differ(each) for each in schemas)

    def names(self, place: ValuePosition) -> tuple[bytes, ...] | None:
        """All names that an object there may have, in their quotes; None where it may have others."""
        found: dict[str, None] = {}
        for number in place:
            names = self._names_of(self._schemas[number], _DEPTH)
            if names is None:
                return None
            found |= names
        return tuple(json.dumps(name, ensure_ascii=False).encode() for name in found)

    def _names_of(self, schema: Schema, depth: int) -> dict[str, None] | None:
        if isinstance(schema, bool) or depth == 0:
            return None if schema else {}
        if "object" not in schema.get("type", ("object",)):
            return {}
        closed = schema.get("additionalProperties", True) is False and not schema.get("patternProperties")
        parts = [dict.fromkeys(schema.get("properties", ())) if closed else None]
        parts += [self._names_of(each, depth - 1) for each in (*schema.get("allOf", ()), *self._target(schema))]
        if "anyOf" in schema:
            options = [self._names_of(each, depth - 1) for each in schema["anyOf"]]
            known = [each for each in options if each is not None]
            parts.append({name: None for each in known for name in each} if len(known) == len(options) else None)
        told = [part for part in parts if part is not None]
        return {name: None for name in told[0] if all(name in part for part in told)} if told else None

    def below(self, place: ValuePosition, step: str | int) -> ValuePosition:
        """The position of a property's value, or of an item."""
        if not place:
            return place
        found = self._steps.get((place, step))
        if found is None:
            schemas = (self._schemas[number] for number in place)
            found = self._watched_of([item for schema in schemas for item in _below(schema, step)])
            if len(self._steps) < 10_000:
                self._steps[place, step] = found
        return found


def _below(schema: dict[str, Any], step: str | int) -> list[Schema]:
    if isinstance(step, int):
        first = schema.get("prefixItems", ())
        return [first[step]] if step < len(first) else [schema.get("items", True)]
    members = schema.get("properties", {})
    own = members[step] if step in members else schema.get("additionalProperties", True)
    patterns = schema.get("patternProperties", {})
    return [own, *(item for pattern, item in patterns.items() if may_match(pattern, step))]
