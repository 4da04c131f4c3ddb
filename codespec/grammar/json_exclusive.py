"""Opposites and exclusion of rewritten JSON Schemas: what llguidance lacks, in keywords that it has.

Every function takes schemas whose references are ``#/$defs/NAME`` with NAME in ``definitions``, and gives None where it
cannot answer exactly.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from codespec.grammar.json_logic import (
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
    same,
    type_of,
    values_of,
)
from codespec.grammar.json_names import may_match
from codespec.grammar.json_refs import Schema
from codespec.grammar.look_around import all_but


def exclusive(options: list[Schema], definitions: Definitions) -> list[Schema] | None:
    """Alternatives of which at most one can hold, together what exactly one of ``options`` takes."""
    options = [option for option in options if option is not False]
    if sum(_takes_all_but_objects(option, definitions) for option in options) > 1:
        # Whatever is no object satisfies two of them, so it is not what exactly one takes.
        options = [both({"type": ["object"]}, option) for option in options]
    others: list[list[Schema]] = [[] for _ in options]
    for first, second in itertools.combinations(range(len(options)), 2):
        if not disjoint(options[first], options[second], definitions):
            for own, other in ((first, second), (second, first)):
                negated = negate(_beyond(options[other], options[own]), definitions)
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
        or _disjoint_objects(parts[0], parts[1], definitions, depth)
        or _disjoint_arrays(parts[0], parts[1], definitions, depth)
    )


def _disjoint_parts(a: dict[str, Any], b: dict[str, Any], definitions: Definitions, depth: int) -> bool:
    for x, y in ((a, b), (b, a)):
        if "anyOf" in x and all(disjoint(option, y, definitions, depth - 1) for option in x["anyOf"]):
            return True
    mine, other = values_of(a), values_of(b)
    if mine is not None and other is not None:
        return not any(same(x, y) for x in mine for y in other)
    return False


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
        mine, other = ([_item(part, index) for part in parts] for parts in (a, b))
        if any(disjoint(x, y, definitions, depth - 1) for x in mine for y in other):
            return True
    return False


def _item(schema: dict[str, Any], index: int) -> Schema:
    first = schema.get("prefixItems", ())
    found: Schema = first[index] if index < len(first) else schema.get("items", True)
    return found


def _property(parts: list[dict[str, Any]], key: str) -> list[Schema]:
    """What the value of ``key`` must satisfy, as far as it is plain."""
    found: list[Schema] = [True]
    for part in parts:
        if key in part.get("properties", {}):
            found.append(part["properties"][key])
        elif not any(may_match(pattern, key) for pattern in part.get("patternProperties", ())):
            found.append(part.get("additionalProperties", True))
    return found


# Opposites


def negate(schema: Schema | None, definitions: Definitions, depth: int = DEPTH) -> Schema | None:
    """What does not satisfy ``schema``."""
    if isinstance(schema, bool):
        return not schema
    if schema is None or depth == 0:
        return None
    options: list[Schema] = []
    for keyword, value in schema.items():
        if keyword == EVALUATES:
            continue
        rule = _OPPOSITES.get(keyword)
        negated = rule(value, schema, definitions, depth - 1) if rule else None
        if negated is None:
            return None
        if negated is not False:
            options.append(negated)
    return evaluates_nothing({"anyOf": options}) if options else False


def _except(*types: str) -> Schema:
    rest = sorted(TYPES - set(types))
    return {"type": rest} if rest else False


def _not_type(value: Any, schema: Any, definitions: Any, depth: int) -> Schema | None:
    names = [value] if isinstance(value, str) else value
    return None if "integer" in names else _except(*names)


def _not_values(values: list[Any]) -> Schema | None:
    """Anything but some constants; of objects and arrays only the empty ones."""
    options = [_except(*{type_of(value) for value in values})]
    strings = [value for value in values if isinstance(value, str)]
    if strings:
        options.append({"type": ["string"], "pattern": f"^(?:{all_but(strings)})$"})
    truths = {value for value in values if isinstance(value, bool)}
    if len(truths) == 1:
        options.append({"const": not truths.pop()})
    numbers = sorted({value for value in values if type_of(value) == "number"})
    for low, high in zip([None, *numbers], [*numbers, None], strict=True) if numbers else ():
        gap = {"type": ["number"], "exclusiveMinimum": low, "exclusiveMaximum": high}
        options.append({key: item for key, item in gap.items() if item is not None})
    for kind, name, count in ((list, "array", "minItems"), (dict, "object", "minProperties")):
        found = [value for value in values if isinstance(value, kind)]
        if any(found):
            return None
        if found:
            options.append({"type": [name], count: 1})
    return {"anyOf": [option for option in options if option is not False]}


def _not_bound(kind: str, opposite: str, shift: int = 0) -> Callable[..., Schema | None]:
    def rule(value: Any, schema: Any, definitions: Any, depth: int) -> Schema | None:
        if isinstance(value, bool):
            return None
        return False if value + shift < 0 and shift else {"type": [kind], opposite: value + shift}

    return rule


def _not_required(value: Any, schema: Any, definitions: Any, depth: int) -> Schema | None:
    options: list[Schema] = [{"type": ["object"], "properties": {key: False}} for key in value]
    return {"anyOf": options} if options else False


def _not_properties(value: Any, schema: Any, definitions: Definitions, depth: int) -> Schema | None:
    options: list[Schema] = []
    for key, item in value.items():
        negated = negate(item, definitions, depth)
        if negated is None:
            return None
        if negated is not False:
            options.append({"type": ["object"], "properties": {key: negated}, "required": [key]})
    return {"anyOf": options} if options else False


def _not_all(value: Any, schema: Any, definitions: Definitions, depth: int) -> Schema | None:
    negated = [negate(item, definitions, depth) for item in value]
    return None if None in negated else {"anyOf": [item for item in negated if item is not None]}


def _not_any(value: Any, schema: Any, definitions: Definitions, depth: int) -> Schema | None:
    negated = [negate(item, definitions, depth) for item in value]
    return None if None in negated else both(*(item for item in negated if item is not None))


def _not_reference(value: Any, schema: Any, definitions: Definitions, depth: int) -> Schema | None:
    return negate(definitions[definition_of(schema)], definitions, depth)


_OPPOSITES: dict[str, Callable[[Any, Any, Definitions, int], Schema | None]] = {
    "type": _not_type,
    "const": lambda value, *_: _not_values([value]),
    "enum": lambda value, *_: _not_values(value) if value else True,
    "minimum": _not_bound("number", "exclusiveMaximum"),
    "maximum": _not_bound("number", "exclusiveMinimum"),
    "exclusiveMinimum": _not_bound("number", "maximum"),
    "exclusiveMaximum": _not_bound("number", "minimum"),
    "minLength": _not_bound("string", "maxLength", -1),
    "maxLength": _not_bound("string", "minLength", 1),
    "minItems": _not_bound("array", "maxItems", -1),
    "maxItems": _not_bound("array", "minItems", 1),
    "minProperties": _not_bound("object", "maxProperties", -1),
    "maxProperties": _not_bound("object", "minProperties", 1),
    "required": _not_required,
    "additionalProperties": lambda value, *_: False if value is True else None,
    "items": lambda value, *_: False if value is True else None,
    "properties": _not_properties,
    "allOf": _not_all,
    "anyOf": _not_any,
    "$ref": _not_reference,
}
