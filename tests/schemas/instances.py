"""Schemas of real files, and instances of them with ``jsonschema`` as the judge."""

from __future__ import annotations

import copy
import json
import random
import signal
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import hypothesis
import jsonschema
from hypothesis_jsonschema import from_schema

DRAWN, MUTATIONS = 6, 4
SECONDS = 4  # to draw instances of one schema
MAX_BYTES = 300_000
MAX_TEXT = 20_000
_KEYWORDS = {"properties", "$ref", "items", "oneOf", "anyOf", "allOf", "enum", "additionalProperties"}


def is_schema(file: Path, content: bytes) -> bool:
    """Whether a JSON file says that it is a JSON Schema, is named one, or looks like one."""
    if len(content) > MAX_BYTES:
        return False
    try:
        schema = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return False
    if not isinstance(schema, dict):
        return False
    declared = "json-schema.org" in str(schema.get("$schema")) and bool(_KEYWORDS & schema.keys())
    named = "schema" in file.name.lower() and "type" in schema and bool(_KEYWORDS & schema.keys())
    shaped = "type" in schema and isinstance(schema.get("properties"), dict)
    try:
        validator(schema).check_schema(schema)
    except Exception:
        return False
    return (declared or named or shaped) and not any(_outside(schema))


def _outside(node: Any) -> Iterator[bool]:
    """Whether each reference leaves the document, which neither side can follow."""
    if isinstance(node, dict):
        yield isinstance(node.get("$ref"), str) and not node["$ref"].startswith("#")
        node = list(node.values())
    if isinstance(node, list):
        for item in node:
            yield from _outside(item)


def validator(schema: Any) -> Any:
    """What says which instances are valid. Patterns are ECMA-262's, in which ``\\d`` and ``\\w`` are ASCII; 0.47 is a
    multiple of 0.01, whatever floats say."""
    schema = _ascii(schema)
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    kind = jsonschema.validators.extend(kind, {"multipleOf": _multiple_of})
    return kind(schema, format_checker=kind.FORMAT_CHECKER)


def _multiple_of(check: Any, factor: Any, value: Any, schema: Any) -> Iterator[Any]:
    if check.is_type(value, "number") and Fraction(str(value)) % Fraction(str(factor)):
        yield jsonschema.ValidationError(f"{value} is not a multiple of {factor}")


def _ascii(node: Any) -> Any:
    if isinstance(node, list):
        return [_ascii(item) for item in node]
    if not isinstance(node, dict):
        return node
    out = {key: _ascii(item) for key, item in node.items()}
    if isinstance(out.get("pattern"), str):
        out["pattern"] = f"(?a:{out['pattern']})"
    if isinstance(out.get("patternProperties"), dict):
        out["patternProperties"] = {f"(?a:{key})": item for key, item in out["patternProperties"].items()}
    return out


def instances(schema: Any, check: Any, rng: random.Random) -> Iterator[Any]:
    """Values drawn for ``schema``, and some with a small change each; every number and text in a plain spelling."""
    drawn = _drawn(schema, rng.randrange(2**32))
    for value in drawn or [{}, [], "x", {"x": 1}]:
        for changed in (value, *(_mutated(value, rng) for _ in range(MUTATIONS))):
            made = _plain(changed)
            if len(json.dumps(made)) <= MAX_TEXT:
                yield made


def can_draw() -> bool:
    """Whether the generator works with the hypothesis that is installed: with some it fails at every object."""
    return bool(_drawn({"type": "object", "required": ["a"]}, 1))


def _drawn(schema: Any, seed: int) -> list[Any]:
    found: list[Any] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=DRAWN,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(value=from_schema(schema))
    def draw(value: Any) -> None:
        found.append(copy.deepcopy(value))

    def stop(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            draw()
    except BaseException as error:  # what the generator cannot do is left out, whatever it raises
        if isinstance(error, KeyboardInterrupt):
            raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return found


def _plain(value: Any) -> Any:
    """``value`` without exponents, fractions beyond 3 digits, numbers beyond 2^53 and control characters."""
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        return "".join("x" if ord(c) < 32 or 0xD800 <= ord(c) < 0xE000 or ord(c) == 127 else c for c in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if abs(value) >= 1e9:
        return 1_000_000_000 if value > 0 else -1_000_000_000
    rounded = round(value, 3)
    return int(rounded) if rounded == int(rounded) else 0 if abs(rounded) < 0.001 else rounded


def _mutated(value: Any, rng: random.Random) -> Any:
    """A copy of ``value`` with one member or item taken out, put in or replaced somewhere."""
    value = copy.deepcopy(value)
    places = list(_containers(value))
    if not places:
        return rng.choice([None, True, 0, -1, 2.5, "", "x", [], {}])
    node = rng.choice(places)
    other: Any = rng.choice([None, True, False, 0, 1, -1, 2.5, "", "x", "a b", [], ["x"], {}, {"x": 1}])
    keys = list(node) if isinstance(node, dict) else list(range(len(node)))
    action = rng.choice(["out", "replace", "replace", "in"])
    if action == "in" or not keys:
        if isinstance(node, dict):
            node[rng.choice(["x", "name", "id", "$x"])] = other
        else:
            node.append(rng.choice([*node, other]))
    elif action == "out":
        del node[rng.choice(keys)]
    else:
        node[rng.choice(keys)] = other
    return value


def _containers(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        yield value
        for item in value.values() if isinstance(value, dict) else value:
            yield from _containers(item)


def text_of(value: Any, rng: random.Random) -> str:
    """The JSON text with every object's keys shuffled."""
    return json.dumps(_shuffled(value, rng), ensure_ascii=False)


def _shuffled(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: _shuffled(value[key], rng) for key in keys}
    return [_shuffled(item, rng) for item in value] if isinstance(value, list) else value


def doubled(schema: Any, value: Any, rng: random.Random) -> str | None:
    """The text of an object with one of the schema's own properties in it twice; None without any."""
    keys = [key for key in schema.get("properties", {}) if isinstance(value, dict) and key in value]
    if not keys:
        return None
    key = rng.choice(keys)
    member = f"{json.dumps(key, ensure_ascii=False)}: {text_of(value[key], rng)}"
    return f"{text_of(value, rng)[:-1]}, {member}}}"
