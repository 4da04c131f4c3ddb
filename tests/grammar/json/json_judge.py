"""Random JSON Schemas and values, and every text of a value; the ``jsonschema`` package says what is valid."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

KEYS = ["a", "b", "c", "é"]
PATTERNS = ["^a", "b$", "^[a-c]+$", "^.{2}$", "a|é", "[0-9]", "^(?:ab)*$", "\\d\\.\\d", "^[^b]*$", "^\\S+$"]
STRINGS = ["", "a", "b", "ab", "abc", "é", "b a", "1.5", "12", 'a"b', "a\\b", "a\nb", "2020-02-29", "2021-02-29"]
NUMBERS = [0, 1, 2, -1, 3, 7, 10, 12, -5, 100, 0.5, -0.5, 1.5, 2.25, 0.1, 99.99, -12.5]
CONSTANTS: list[Any] = [None, True, False, 0, 1, -5, 2.5, "a", "ab", "", [], {}, [1], ["a", 2], {"a": 1}]


def texts(value: Any, limit: int = 96, alike: bool = True) -> Iterator[str]:
    """JSON texts of ``value``, up to a limit for each: its objects in every order, whole numbers with a fraction and
    without.

    Args:
        alike: whether 1.0 is the same value as 1.
    """
    if isinstance(value, dict):
        for keys in itertools.islice(itertools.permutations(value), limit):
            parts = (list(itertools.islice(texts(value[key], alike=alike), 48)) for key in keys)
            for chosen in itertools.islice(itertools.product(*parts), limit):
                members = (
                    f"{json.dumps(key, ensure_ascii=False)}:{text}" for key, text in zip(keys, chosen, strict=True)
                )
                yield "{" + ",".join(members) + "}"
    elif isinstance(value, list):
        for chosen in itertools.islice(
            itertools.product(*(list(itertools.islice(texts(v, alike=alike), 48)) for v in value)), limit
        ):
            yield "[" + ",".join(chosen) + "]"
    else:
        yield json.dumps(value, ensure_ascii=False)
        if alike and isinstance(value, float) and value.is_integer():
            yield str(int(value))


def shuffled(made: Any, rng: random.Random) -> Any:
    """The same schema with its keywords in another order, which says the same."""
    if isinstance(made, list):
        return [shuffled(each, rng) for each in made]
    if not isinstance(made, dict):
        return made
    keys = list(made)
    rng.shuffle(keys)
    return {key: shuffled(made[key], rng) for key in keys}


def schema(rng: random.Random, depth: int = 3) -> Any:
    """A random schema, made mostly of keywords that go together."""
    if depth <= 0 or rng.random() < 0.04:
        return rng.choice(
            [True, True, False, {}, {"type": "string"}, {"type": "integer"}, {"const": rng.choice(CONSTANTS)}]
        )
    makers = [_strings, _numbers, _arrays, _objects, _objects, _values, _combined, _conditional]
    made: dict[str, Any] = rng.choice(makers)(rng, depth)
    if rng.random() < 0.25:
        made = {**made, **rng.choice(makers)(rng, depth - 1)}
    return made


def _type(rng: random.Random, name: str) -> dict[str, Any]:
    if rng.random() < 0.75:
        return {"type": name}
    return {"type": [name, rng.choice(["null", "boolean"])]} if rng.random() < 0.5 else {}


def _some(rng: random.Random, options: dict[str, Any], chance: float = 0.4) -> dict[str, Any]:
    return {key: value for key, value in options.items() if rng.random() < chance}


def _strings(rng: random.Random, depth: int) -> dict[str, Any]:
    low = rng.randrange(4)
    options = {"minLength": low, "maxLength": low + rng.randrange(3), "pattern": rng.choice(PATTERNS)}
    return {**_type(rng, "string"), **_some(rng, options)}


def _numbers(rng: random.Random, depth: int) -> dict[str, Any]:
    low, high = sorted(rng.sample(NUMBERS, 2))
    bounds = {rng.choice(["minimum", "exclusiveMinimum"]): low, rng.choice(["maximum", "exclusiveMaximum"]): high}
    factor = {"multipleOf": rng.choice([1, 2, 3, 5, 0.5, 0.25, 0.1, 1.5])}
    return {**_type(rng, rng.choice(["integer", "number"])), **_some(rng, bounds, 0.6), **_some(rng, factor, 0.25)}


def _arrays(rng: random.Random, depth: int) -> dict[str, Any]:
    low = rng.randrange(3)
    options = {
        "items": schema(rng, depth - 1),
        "prefixItems": [schema(rng, depth - 1) for _ in range(rng.randint(1, 2))],
        "minItems": low,
        "maxItems": low + rng.randrange(3),
    }
    extra = {"contains": schema(rng, 1), "unevaluatedItems": rng.choice([False, {"type": "string"}])}
    return {**_type(rng, "array"), **_some(rng, options), **_some(rng, extra, 0.15)}


def _objects(rng: random.Random, depth: int) -> dict[str, Any]:
    keys = rng.sample(KEYS, rng.randint(1, 3))
    options = {
        "properties": {key: schema(rng, depth - 1) for key in keys},
        "required": rng.sample(KEYS, rng.randint(0, 2)),
        "additionalProperties": rng.choice([False, False, schema(rng, depth - 1)]),
    }
    extra = {
        "patternProperties": {rng.choice(PATTERNS[:5]): schema(rng, depth - 1)},
        "propertyNames": rng.choice([{"pattern": rng.choice(PATTERNS)}, {"enum": KEYS[:2]}, {"maxLength": 1}, True]),
        "minProperties": rng.randrange(3),
        "maxProperties": rng.randrange(4),
        "dependentRequired": {rng.choice(KEYS): [rng.choice(KEYS)]},
        "dependentSchemas": {rng.choice(KEYS): schema(rng, depth - 1)},
        "unevaluatedProperties": rng.choice([False, schema(rng, 1)]),
    }
    return {**_type(rng, "object"), **_some(rng, options, 0.7), **_some(rng, extra, 0.12)}


def _values(rng: random.Random, depth: int) -> dict[str, Any]:
    if rng.random() < 0.5:
        return {"enum": rng.sample(CONSTANTS, rng.randint(1, 4))}
    return {"const": rng.choice(CONSTANTS)}


def _combined(rng: random.Random, depth: int) -> dict[str, Any]:
    keyword = rng.choice(["anyOf", "allOf", "oneOf", "oneOf"])
    return {keyword: [schema(rng, depth - 1) for _ in range(rng.randint(1, 3))]}


def _conditional(rng: random.Random, depth: int) -> dict[str, Any]:
    if rng.random() < 0.4:
        return {"not": schema(rng, depth - 1)}
    key = rng.choice(KEYS)
    tests = [{"properties": {key: {"const": rng.choice(CONSTANTS)}}, "required": [key]}, {"required": [key]}]
    made = {"if": rng.choice([*tests, schema(rng, 1)]), "then": schema(rng, depth - 1)}
    return {**made, **_some(rng, {"else": schema(rng, depth - 1)}, 0.6)}


def value(rng: random.Random, depth: int = 3) -> Any:
    """A random value over the same few keys, strings and numbers."""
    kind = rng.random()
    if depth and kind < 0.35:
        return {key: value(rng, depth - 1) for key in rng.sample(KEYS, rng.randint(0, 3))}
    if depth and kind < 0.5:
        return [value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    return rng.choice([rng.choice(STRINGS), rng.choice(NUMBERS), rng.choice(CONSTANTS)])


def fitting(rng: random.Random, made: Any, depth: int = 4) -> Any:
    """A value that tries to satisfy ``made``."""
    if not isinstance(made, dict) or depth == 0 or rng.random() < 0.1:
        return value(rng, 1)
    for keyword in ("const",):
        if keyword in made:
            return made[keyword]
    if made.get("enum"):
        return rng.choice(made["enum"])
    for keyword in ("anyOf", "oneOf", "allOf"):
        if made.get(keyword) and rng.random() < 0.7:
            return fitting(rng, {**made, **_dict(rng.choice(made[keyword])), keyword: []}, depth - 1)
    kind = made.get("type", "object" if "properties" in made else rng.choice(["object", "array", "string", "number"]))
    kind = rng.choice(kind) if isinstance(kind, list) else kind
    if kind == "object":
        keys = [*made.get("required", ()), *made.get("properties", ())]
        chosen = {key for key in [*keys, *rng.sample(KEYS, 1)] if rng.random() < 0.8}
        members = made.get("properties", {})
        order = sorted(chosen, key=lambda key: keys.index(key) if key in keys else 99)
        return {key: fitting(rng, members.get(key, made.get("additionalProperties", True)), depth - 1) for key in order}
    if kind == "array":
        prefix = made.get("prefixItems", [])
        count = (
            rng.randint(made.get("minItems", 0), made.get("maxItems", 3))
            if made.get("maxItems", 3) >= made.get("minItems", 0)
            else 0
        )
        return [
            fitting(rng, prefix[i] if i < len(prefix) else made.get("items", True), depth - 1) for i in range(count)
        ]
    if kind == "string":
        return rng.choice(STRINGS)
    if kind in ("integer", "number"):
        return rng.choice(NUMBERS)
    return rng.choice([None, True, False])


def _dict(made: Any) -> dict[str, Any]:
    return made if isinstance(made, dict) else {}


def many_spellings(made: Any) -> bool:
    """Whether a number can be valid and yet not taken as Python writes it: 0.5 is 0.50 where 0.25 divides it."""
    if isinstance(made, dict):
        return made.get("multipleOf") in (0.25,) or any(map(many_spellings, made.values()))
    return isinstance(made, list) and any(map(many_spellings, made))


def alternatives(rng: random.Random) -> dict[str, Any]:
    """``oneOf``, ``not`` or ``if`` beside other keywords, of shapes like those of published schemas."""
    of = {"oneOf": [_shape(rng) for _ in range(rng.randint(2, 3))]}
    keyword: dict[str, Any] = rng.choice([of, of, {"not": _shape(rng)}, {"if": _shape(rng), "then": _shape(rng)}])
    beside = _shape(rng)
    return rng.choice([keyword, {**beside, **keyword}, {"allOf": [beside, keyword]}, {"allOf": [keyword, beside]}])


def _shape(rng: random.Random, depth: int = 2) -> dict[str, Any]:
    if depth <= 0:
        leaves: list[Any] = [
            {"type": "string"},
            {"type": "integer"},
            {"const": 1},
            {"enum": ["a", "b"]},
            {"const": "a"},
        ]
        leaf: dict[str, Any] = rng.choice(leaves)
        return leaf
    below = [_shape(rng, depth - rng.randint(1, 2)) for _ in range(2)]
    keys = rng.sample(KEYS[:3], rng.randint(1, 2))
    objects = {
        "properties": dict(zip(keys, below, strict=False)),
        "required": rng.sample(KEYS[:3], 1),
        "additionalProperties": rng.choice([False, False, True, below[0]]),
        "patternProperties": {rng.choice(["^a$", "^[ab]"]): below[1]},
    }
    arrays = {
        "items": below[0],
        "prefixItems": below[: rng.randint(1, 2)],
        "minItems": 1,
        "maxItems": rng.randint(1, 3),
    }
    if rng.random() < 0.3:
        return {**_some(rng, {"type": "array"}, 0.8), **_some(rng, arrays, 0.5)}
    return {**_some(rng, {"type": "object"}, 0.8), **_some(rng, objects, 0.5)}


def small_values() -> list[Any]:
    """Values over few names, up to two levels."""
    leaves: list[Any] = [1, 2, "a", "c"]
    inner = [
        *leaves,
        *([leaf] for leaf in leaves),
        [1, "a"],
        *({key: leaf} for key in "ab" for leaf in (1, "a")),
        {},
        [],
    ]
    objects = [{key: item} for key in KEYS[:3] for item in inner]
    objects += [{"a": a, "b": b} for a in [*leaves, [1], {"a": 1}] for b in [*leaves, ["a"], {}]]
    return [
        *inner,
        *objects,
        *({"b": item, "c": 1} for item in leaves),
        *([a, b] for a in leaves for b in leaves),
        [1, 1, 1],
    ]
