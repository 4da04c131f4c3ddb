"""The names of an object's properties: which are listed, which others there may be, and what their values satisfy."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import llguidance

from codespec.grammar.json import logic
from codespec.grammar.json.patterns.lower import body, may_match
from codespec.grammar.json.refs import Schema

_TEXT = r'/"([^"\\\x00-\x1f\x7f]|\\[nrbtf\\"])*"/'
_PLAIN = r'[^"\\\x00-\x1f\x7f]*'
_MOST_PATTERNS = 3


class Names(NamedTuple):
    """The property names of one object.

    Attributes:
        listed: those that the schema lists or requires, and what their values satisfy; the required ones first.
        others: Lark expressions for other names in their quotes, and what their values satisfy.
    """

    listed: dict[str, Schema]
    others: list[tuple[str, Schema]]


def names_of(schema: dict[str, Any]) -> Names | None:
    """The names that a rewritten schema of objects allows; None where its patterns are too many or too odd.

    Beside patterns, names with a quote, a backslash or a control character in them are left out.
    """
    rest = schema.get("additionalProperties", True)
    members: dict[str, Schema] = schema.get("properties", {})
    patterns: dict[str, Schema] = schema.get("patternProperties", {})
    keys = list(dict.fromkeys([*schema.get("required", ()), *members]))
    if not patterns:
        return Names({key: members.get(key, rest) for key in keys}, [(_but(_TEXT, map(literal, keys)), rest)])
    if len(patterns) > _MOST_PATTERNS:
        return None
    quoted = (f'"(?:{body(pattern)})"' for pattern in patterns)
    expressions = [f"/{llguidance.regex_to_lark(each)}/" for each in quoted]
    listed: dict[str, Schema] = {}
    for key in keys:
        own = [item for pattern, item in patterns.items() if may_match(pattern, key)]
        if key in members:
            own.append(members[key])
        listed[key] = logic.both(*own) if own else rest
    others = []
    for chosen in itertools.product((True, False), repeat=len(patterns)):
        held = [item for item, holds in zip(patterns.values(), chosen, strict=True) if holds]
        wanted = [each for each, holds in zip(expressions, chosen, strict=True) if holds]
        unwanted = [each for each, holds in zip(expressions, chosen, strict=True) if not holds]
        name = " & ".join([f'/"{_PLAIN}"/', *wanted])
        others.append((_but(name, [*unwanted, *map(literal, keys)]), logic.both(*held) if held else rest))
    return Names(listed, others)


def literal(key: str) -> str:
    """A Lark string for a property name in its quotes, as JSON spells it."""
    return json.dumps(json.dumps(key, ensure_ascii=False), ensure_ascii=False)


def _but(name: str, excluded: Iterable[str]) -> str:
    text = " | ".join(sorted(excluded))
    return f"{name} & ~({text})" if text else name
