"""Instances of schemas, right and wrong ones."""

from __future__ import annotations

import copy
import json
import random
import signal
import warnings
from collections.abc import Iterator
from typing import Any

import hypothesis
from hypothesis_jsonschema import from_schema

DRAWN, MUTATIONS = 6, 4
SECONDS = 4  # to draw instances of one schema
MAX_TEXT = 20_000


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
