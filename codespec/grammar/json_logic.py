"""Opposites, exclusion and completion of rewritten JSON Schemas: what llguidance lacks, in keywords that it has.

Every function takes schemas whose references are ``#/$defs/NAME`` with NAME in ``definitions``, and gives None where it
cannot answer exactly.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from codespec.grammar.json_refs import Schema

Definitions = Mapping[str, "Schema | None"]

TYPES = frozenset({"null", "boolean", "number", "string", "array", "object"})
EVALUATES = "x-evaluates"
"""Marks a part standing for keywords that evaluate no members (``nothing``), or not all it names (``unknown``)."""
_OF_OBJECTS = frozenset({
    "properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties", "allOf",
    "$ref", EVALUATES,
})  # fmt: skip
_DEPTH = 8  # references and combinations followed
_MAX_OPTIONS = 4  # alternatives whose combinations are written out


def both(*schemas: Schema) -> Schema:
    """What satisfies all of ``schemas``."""
    if any(schema is False for schema in schemas):
        return False
    parts = [schema for schema in schemas if schema is not True]
    return parts[0] if len(parts) == 1 else {"allOf": parts} if parts else True


def evaluates_nothing(schema: Schema) -> Schema:
    """``schema``, whose members do not count as evaluated."""
    return schema if isinstance(schema, bool) else {**schema, EVALUATES: "nothing"}


def definition_of(schema: Mapping[str, Any]) -> str:
    """The name that a rewritten ``$ref`` points to."""
    reference: str = schema["$ref"]
    return reference.removeprefix("#/$defs/")


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
    """What ``const`` or ``enum`` list; None without them."""
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


def _same(a: Any, b: Any) -> bool:
    """Equality of JSON values: 1 is 1.0, true is not 1."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    return bool(type_of(a) == type_of(b) and a == b)


# Exclusion


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
    parts = list(_conjuncts(schema, definitions, _DEPTH))
    return bool(parts) and all(part.keys() <= _OF_OBJECTS for part in parts)


def _beyond(schema: Schema, given: Schema) -> Schema:
    """``schema`` without the keywords that ``given`` has too: where that holds, they say nothing more."""
    if isinstance(schema, bool) or isinstance(given, bool):
        return schema
    rest = {key: item for key, item in schema.items() if key not in given or given[key] != item}
    # These look at their neighbours: what they say changes when one of those goes.
    together = ("properties", "patternProperties", "additionalProperties", "prefixItems", "items")
    return {**rest, **{key: schema[key] for key in together if key in schema}} or True


def disjoint(a: Schema, b: Schema, definitions: Definitions, depth: int = _DEPTH) -> bool:
    """Whether it is certain that no value satisfies both."""
    if a is False or b is False:
        return True
    if depth == 0:
        return False
    if isinstance(a, dict) and isinstance(b, dict) and "const" in a and "const" in b:
        return not _same(a["const"], b["const"])
    parts = [list(_conjuncts(schema, definitions, depth)) for schema in (a, b)]
    if not frozenset.intersection(*(_types(part) for part in parts)):
        return True
    pairs = itertools.product(*parts)
    return any(_disjoint_parts(x, y, definitions, depth) for x, y in pairs) or _disjoint_objects(
        parts[0], parts[1], definitions, depth
    )


def _conjuncts(schema: Schema, definitions: Definitions, depth: int) -> Iterator[dict[str, Any]]:
    """Schemas that all hold wherever ``schema`` holds, without ``allOf`` and ``$ref``."""
    if isinstance(schema, bool) or depth == 0:
        return
    yield schema
    for part in schema.get("allOf", ()):
        yield from _conjuncts(part, definitions, depth - 1)
    if "$ref" in schema:
        yield from _conjuncts(definitions[definition_of(schema)] or True, definitions, depth - 1)


def _demands(schema: Schema | None, definitions: Definitions, depth: int) -> list[Schema] | None:
    """Schemas that hold together exactly where ``schema`` holds, once ``allOf`` and ``$ref`` are left out of them; None
    if there are too many, or one is not known yet."""
    if isinstance(schema, bool):
        return [schema]
    if schema is None or depth == 0:
        return None
    found: list[Schema] = [schema]
    further = [*schema.get("allOf", ()), *([definitions[definition_of(schema)]] if "$ref" in schema else [])]
    for part in further:
        demands = _demands(part, definitions, depth - 1)
        if demands is None:
            return None
        found += demands
    return found


def _types(parts: list[dict[str, Any]]) -> frozenset[str]:
    types = TYPES
    for part in parts:
        types &= types_of(part)
    return types


def _disjoint_parts(a: dict[str, Any], b: dict[str, Any], definitions: Definitions, depth: int) -> bool:
    for x, y in ((a, b), (b, a)):
        if "anyOf" in x and all(disjoint(option, y, definitions, depth - 1) for option in x["anyOf"]):
            return True
    mine, other = values_of(a), values_of(b)
    if mine is not None and other is not None:
        return not any(_same(x, y) for x in mine for y in other)
    return False


def _disjoint_objects(a: list[dict[str, Any]], b: list[dict[str, Any]], definitions: Definitions, depth: int) -> bool:
    """Both are objects only, and a property that one of them requires cannot satisfy both."""
    if _types(a) & _types(b) != {"object"}:
        return False
    for key in {key for part in (*a, *b) for key in part.get("required", ())}:
        mine, other = _property(a, key), _property(b, key)
        if any(disjoint(x, y, definitions, depth - 1) for x in mine for y in other):
            return True
    return False


def _property(parts: list[dict[str, Any]], key: str) -> list[Schema]:
    """What the value of ``key`` must satisfy, as far as it is plain."""
    found: list[Schema] = [True]
    for part in parts:
        if key in part.get("properties", {}):
            found.append(part["properties"][key])
        elif "additionalProperties" in part and not part.get("patternProperties"):
            found.append(part["additionalProperties"])
    return found


# Opposites


def negate(schema: Schema | None, definitions: Definitions, depth: int = _DEPTH) -> Schema | None:
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


def all_but(texts: list[str]) -> str:
    """A regular expression for every text but these."""
    heads: dict[str, list[str]] = {}
    for text in texts:
        if text:
            heads.setdefault(text[0], []).append(text[1:])
    options = [] if "" in texts else [""]
    options += [f"{re.escape(head)}(?:{all_but(tails)})" for head, tails in heads.items()]
    others = "".join(f"\\x{{{ord(head):X}}}" for head in heads)
    options.append(f"[^{others}](?s:.*)" if others else "(?s:.+)")
    return "|".join(options)


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


# Names and what is left over


def names_rule(schema: Schema, definitions: Definitions) -> Schema | None:
    """``propertyNames: schema`` in other keywords."""
    found = _demands(schema, definitions, _DEPTH)
    if found is None:
        return None
    parts = [part for part in found if isinstance(part, dict)]
    if False in found or "string" not in _types(parts):
        return {"maxProperties": 0}
    if not parts:
        return True
    known = {"type", "pattern", "minLength", "maxLength", "const", "enum", "allOf", "$ref"}
    if any(set(part) - known for part in parts):
        return None
    rules: list[Schema] = []
    for part in parts:
        values = values_of(part)
        if values is not None:
            rules.append({"properties": dict.fromkeys(filter(lambda v: isinstance(v, str), values), True)})
        if "pattern" in part:
            rules.append({"patternProperties": {part["pattern"]: True}})
        if "minLength" in part or "maxLength" in part:
            length = f"{{{part.get('minLength', 0)},{part.get('maxLength', '')}}}"
            rules.append({"patternProperties": {f"^(?s:.{length})$": True}})
    return both(*({**rule, "additionalProperties": False} for rule in rules if isinstance(rule, dict)))


def close(schema: Schema, rest: Schema, objects: bool, definitions: Definitions) -> Schema | None:
    """``schema`` whose members that nothing in it evaluates satisfy ``rest``."""
    options = list(_cases(schema, definitions, _DEPTH))
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
        if len(schema["anyOf"]) > _MAX_OPTIONS:
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
