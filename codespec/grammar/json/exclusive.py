"""Opposites and exclusion of rewritten JSON Schemas: what llguidance lacks, in keywords that it has.

Every function takes schemas whose references are ``#/$defs/NAME`` with NAME in ``definitions``, and gives None where it
cannot answer exactly.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from codespec.grammar.json.logic import (
    DEPTH,
    EVALUATES,
    MAX_OPTIONS,
    OF_OBJECTS,
    TYPES,
    Definitions,
    both,
    common_types,
    conjuncts,
    definition_of,
    evaluates_nothing,
    item_of,
    only,
    same,
    type_of,
    values_of,
)
from codespec.grammar.json.patterns.lower import all_but, may_match, may_overlap, only_text, opposite_of
from codespec.grammar.json.refs import Schema

MAX_ITEMS = 8  # of an array whose opposite is written out


def exclusive(options: list[Schema], definitions: Definitions, given: Schema = True) -> list[Schema] | None:
    """Alternatives of which at most one can hold, together what exactly one of ``options`` takes beside ``given``."""
    options = [option for option in options if option is not False]
    if sum(_takes_all_but_objects(option, definitions) for option in options) > 1:
        # Whatever is no object satisfies two of them, so it is not what exactly one takes.
        options = [both({"type": ["object"]}, option) for option in options]
    others: list[list[Schema]] = [[] for _ in options]
    for first, second in itertools.combinations(range(len(options)), 2):
        if not disjoint(both(given, options[first]), options[second], definitions):
            for own, other in ((first, second), (second, first)):
                beside = both(given, options[own])
                negated = negate(_beyond(options[other], options[own]), definitions, beside)
                if negated is None:
                    return None
                others[own].append(negated)
    return [both(option, *excluded) for option, excluded in zip(options, others, strict=True)]


def _takes_all_but_objects(schema: Schema, definitions: Definitions) -> bool:
    parts = list(conjuncts(schema, definitions, DEPTH))
    return bool(parts) and all(part.keys() <= OF_OBJECTS for part in parts)


def _beyond(schema: Schema, given: Schema) -> Schema:
    """``schema`` without the keywords that ``given`` has too: where that holds, they say nothing more."""
    if isinstance(schema, bool) or isinstance(given, bool):
        return schema
    rest = {key: item for key, item in schema.items() if key not in given or given[key] != item}
    # These look at their neighbours: what they say changes when one of those goes.
    together = ("properties", "patternProperties", "additionalProperties", "prefixItems", "items")
    return {**rest, **{key: schema[key] for key in together if key in schema}} or True


def disjoint(a: Schema, b: Schema, definitions: Definitions, depth: int = DEPTH) -> bool:
    """Whether it is certain that no value satisfies both."""
    if a is False or b is False:
        return True
    if depth == 0:
        return False
    if isinstance(a, dict) and isinstance(b, dict) and "const" in a and "const" in b:
        return not same(a["const"], b["const"])
    parts = [list(conjuncts(schema, definitions, depth)) for schema in (a, b)]
    if not frozenset.intersection(*(common_types(part) for part in parts)):
        return True
    pairs = itertools.product(*parts)
    return (
        any(_disjoint_parts(x, y, definitions, depth) for x, y in pairs)
        or _disjoint_texts(parts[0], parts[1])
        or _disjoint_objects(parts[0], parts[1], definitions, depth)
        or _disjoint_arrays(parts[0], parts[1], definitions, depth)
    )


def _disjoint_parts(a: dict[str, Any], b: dict[str, Any], definitions: Definitions, depth: int) -> bool:
    for x, y in ((a, b), (b, a)):
        if "anyOf" in x and all(disjoint(option, y, definitions, depth - 1) for option in x["anyOf"]):
            return True
        values = values_of(x)
        pattern = y.get("pattern")
        if values is not None and pattern is not None and not any(_may_match(pattern, value) for value in values):
            return True
    mine, other = values_of(a), values_of(b)
    if mine is not None and other is not None:
        return not any(same(x, y) for x in mine for y in other)
    return False


def _may_match(pattern: str, value: Any) -> bool:
    return not isinstance(value, str) or may_match(pattern, value)


def _disjoint_texts(a: list[dict[str, Any]], b: list[dict[str, Any]]) -> bool:
    """Both are strings only, and no text has the patterns of both."""
    patterns = [part["pattern"] for part in (*a, *b) if "pattern" in part]
    return len(patterns) > 1 and common_types(a) & common_types(b) == {"string"} and not may_overlap(patterns)


def _disjoint_objects(a: list[dict[str, Any]], b: list[dict[str, Any]], definitions: Definitions, depth: int) -> bool:
    """Both are objects only, and a property that one of them requires cannot satisfy both."""
    if common_types(a) & common_types(b) != {"object"}:
        return False
    for key in {key for part in (*a, *b) for key in part.get("required", ())}:
        mine, other = _property(a, key), _property(b, key)
        if any(disjoint(x, y, definitions, depth - 1) for x in mine for y in other):
            return True
    return False


def _disjoint_arrays(a: list[dict[str, Any]], b: list[dict[str, Any]], definitions: Definitions, depth: int) -> bool:
    """Both are arrays only, and an item that one of them requires cannot satisfy both."""
    if common_types(a) & common_types(b) != {"array"}:
        return False
    for index in range(min(MAX_OPTIONS, max(part.get("minItems", 0) for part in (*a, *b)))):
        mine, other = ([item_of(part, index) for part in parts] for parts in (a, b))
        if any(disjoint(x, y, definitions, depth - 1) for x in mine for y in other):
            return True
    return False


def _property(parts: list[dict[str, Any]], key: str) -> list[Schema]:
    """What the value of ``key`` must satisfy, as far as it is plain."""
    found: list[Schema] = [True]
    for part in parts:
        patterns = part.get("patternProperties", {})
        found += [item for pattern, item in patterns.items() if only_text(pattern) == key]
        if key in part.get("properties", {}):
            found.append(part["properties"][key])
        elif not any(may_match(pattern, key) for pattern in patterns):
            found.append(part.get("additionalProperties", True))
    return found


# Opposites


def negate(schema: Schema | None, definitions: Definitions, given: Schema = True, depth: int = DEPTH) -> Schema | None:
    """A schema for the values that do not satisfy ``schema``, given that they satisfy ``given``."""
    if isinstance(schema, bool):
        return not schema
    if schema is None or depth == 0:
        return None
    if given is not True and disjoint(given, schema, definitions, depth):
        return True
    beside = _Beside(schema, definitions, given, depth - 1)
    options: list[Schema] = []
    for keyword, value in schema.items():
        if keyword == EVALUATES:
            continue
        rule = _OPPOSITES.get(keyword)
        negated = rule(value, beside) if rule else None
        if negated is None:
            return None
        if negated is not False:
            options.append(negated)
    if True in options:
        return True
    return evaluates_nothing({"anyOf": options}) if options else False


class _Beside:
    """Where a keyword to be negated stands: its neighbours and itself, and what holds anyway."""

    def __init__(self, schema: dict[str, Any], definitions: Definitions, given: Schema, depth: int) -> None:
        self.schema, self.definitions, self.given, self.depth = schema, definitions, given, depth
        self.parts = list(conjuncts(given, definitions, DEPTH))

    def negate(self, schema: Schema | None) -> Schema | None:
        """The opposite of a part that is asked of the same value."""
        return negate(schema, self.definitions, self.given, self.depth)

    def property(self, name: str, schema: Schema) -> Schema | None:
        """An object with a property that does not satisfy ``schema``."""
        negated = negate(schema, self.definitions, both(*_property(self.parts, name)), self.depth)
        if negated is None or negated is False:
            return negated
        return {"type": ["object"], "properties": {name: negated}, "required": [name]}

    def at(self, index: int, schema: Schema) -> Schema | None:
        """What does not satisfy ``schema``, of the items there."""
        given = both(*(item_of(part, index) for part in self.parts))
        return negate(schema, self.definitions, given, self.depth)

    def item(self, index: int, schema: Schema) -> Schema | None:
        """An array with an item that does not satisfy ``schema``."""
        negated = self.at(index, schema)
        if negated is None or negated is False:
            return negated
        return {"type": ["array"], "prefixItems": [True] * index + [negated], "minItems": index + 1}

    def names(self) -> set[str] | None:
        """The only names that there may be anyway; None: any."""
        closed = (part for part in self.parts if part.get("additionalProperties") is False)
        found = [set(part.get("properties", ())) for part in closed if not part.get("patternProperties")]
        return set.intersection(*found) if found else None


def _except(*types: str) -> Schema:
    rest = sorted(TYPES - set(types))
    return {"type": rest} if rest else False


def _not_type(value: Any, beside: _Beside) -> Schema | None:
    names = [value] if isinstance(value, str) else value
    if "integer" in names and "number" not in names:
        if "number" in common_types(beside.parts) and not any(map(_integers_only, beside.parts)):
            return None
        names = [*names, "number"]
    return _except(*names)


def _integers_only(schema: dict[str, Any]) -> bool:
    types = schema.get("type", ("number",))
    return "number" not in ([types] if isinstance(types, str) else types)


def _not_values(values: list[Any], beside: _Beside) -> Schema | None:
    """Anything but some constants; of arrays only the empty one."""
    options = [_except(*{type_of(value) for value in values})]
    strings = [value for value in values if isinstance(value, str)]
    if strings:
        options.append({"type": ["string"], "pattern": all_but(strings)})
    truths = {value for value in values if isinstance(value, bool)}
    if len(truths) == 1:
        options.append({"const": not truths.pop()})
    numbers = sorted({value for value in values if type_of(value) == "number"})
    for low, high in zip([None, *numbers], [*numbers, None], strict=True) if numbers else ():
        gap = {"type": ["number"], "exclusiveMinimum": low, "exclusiveMaximum": high}
        options.append({key: item for key, item in gap.items() if item is not None})
    if [] in values:
        options.append({"type": ["array"], "minItems": 1})
    if any(isinstance(value, list) and value for value in values):
        return None
    objects = [value for value in values if isinstance(value, dict)]
    if objects:
        negated = _not_any([only(value) for value in objects], beside)
        if negated is None:
            return None
        options.append(both({"type": ["object"]}, negated))
    return _any_of(options)


def _not_bound(kind: str, opposite: str, shift: int = 0) -> Callable[[Any, _Beside], Schema | None]:
    def rule(value: Any, beside: _Beside) -> Schema | None:
        if isinstance(value, bool):
            return None
        return False if value + shift < 0 and shift else {"type": [kind], opposite: value + shift}

    return rule


def _not_pattern(value: str, beside: _Beside) -> Schema | None:
    negated = opposite_of(value)
    return None if negated is None else {"type": ["string"], "pattern": negated}


def _not_required(value: Any, beside: _Beside) -> Schema | None:
    return _any_of({"type": ["object"], "properties": {key: False}} for key in value)


def _not_properties(value: dict[str, Any], beside: _Beside) -> Schema | None:
    return _any_of(beside.property(name, item) for name, item in value.items())


def _not_patterns(value: dict[str, Any], beside: _Beside) -> Schema | None:
    """Only of patterns that say nothing, or fit no name that there may be."""
    names = beside.names()
    if all(item is True for item in value.values()):
        return False
    return None if names is None or any(may_match(pattern, name) for pattern in value for name in names) else False


def _not_additional(value: Any, beside: _Beside) -> Schema | None:
    """Only where it is known which names there may be."""
    if value is True:
        return False
    names = beside.names()
    patterns = beside.schema.get("patternProperties", ())
    if names is None or any(may_match(pattern, name) for pattern in patterns for name in names):
        return None
    further = sorted(names - beside.schema.get("properties", {}).keys())
    return _any_of(beside.property(name, value) for name in further)


def _not_items(value: Any, beside: _Beside) -> Schema | None:
    """Only of few items, or where nothing that may stand there satisfies the schema."""
    if value is True:
        return False
    first = len(beside.schema.get("prefixItems", ()))
    most = min((part["maxItems"] for part in (beside.schema, *beside.parts) if "maxItems" in part), default=None)
    if most is not None and most <= MAX_ITEMS:
        return _any_of(beside.item(index, value) for index in range(first, most))
    last = max((len(part.get("prefixItems", ())) for part in beside.parts), default=0)
    if any(beside.at(index, value) is not True for index in range(first, max(first, last) + 1)):
        return None
    return {"type": ["array"], "minItems": first + 1}


def _any_of(options: Iterable[Schema | None]) -> Schema | None:
    found = list(options)
    if None in found:
        return None
    found = [option for option in found if option is not False]
    return True if True in found else {"anyOf": found} if found else False


def _not_any(value: Any, beside: _Beside) -> Schema | None:
    negated = [beside.negate(item) for item in value]
    return None if None in negated else both(*(item for item in negated if item is not None))


_OPPOSITES: dict[str, Callable[[Any, _Beside], Schema | None]] = {
    "type": _not_type,
    "const": lambda value, beside: _not_values([value], beside),
    "enum": _not_values,
    "minimum": _not_bound("number", "exclusiveMaximum"),
    "maximum": _not_bound("number", "exclusiveMinimum"),
    "exclusiveMinimum": _not_bound("number", "maximum"),
    "exclusiveMaximum": _not_bound("number", "minimum"),
    "pattern": _not_pattern,
    "minLength": _not_bound("string", "maxLength", -1),
    "maxLength": _not_bound("string", "minLength", 1),
    "minItems": _not_bound("array", "maxItems", -1),
    "maxItems": _not_bound("array", "minItems", 1),
    "minProperties": _not_bound("object", "maxProperties", -1),
    "maxProperties": _not_bound("object", "minProperties", 1),
    "required": _not_required,
    "properties": _not_properties,
    "patternProperties": _not_patterns,
    "additionalProperties": _not_additional,
    "prefixItems": lambda value, beside: _any_of(beside.item(*each) for each in enumerate(value)),
    "items": _not_items,
    "allOf": lambda value, beside: _any_of(beside.negate(item) for item in value),
    "anyOf": _not_any,
    "$ref": lambda value, beside: beside.negate(beside.definitions[definition_of(beside.schema)]),
}
