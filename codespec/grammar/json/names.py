"""The names of an object's properties: which are listed, which others there may be, and what their values satisfy."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import llguidance

from codespec.grammar.json import logic
from codespec.grammar.json.look_around import alternatives
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
    whole = [_whole(pattern) for pattern in patterns]
    if None in whole or len(patterns) > _MOST_PATTERNS:
        return None
    expressions = [f"/{llguidance.regex_to_lark(each or '')}/" for each in whole]
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


def may_match(pattern: str, key: str) -> bool:
    """Whether a translated pattern is found in a name, as far as can be told."""
    try:
        return "&&" in pattern or re.search(_for_python(pattern), key) is not None
    except re.error:
        return True


@functools.cache
def only_name(pattern: str) -> str | None:
    """The name that a translated pattern is found in, if there is only one."""
    found = re.fullmatch(r"\^((?:[\w-]|\\[^\w\s])+)\$", pattern)
    return re.sub(r"\\(.)", r"\1", found[1]) if found else None


def _for_python(pattern: str) -> str:
    """Of a translated pattern, whose ``$`` is the end of the text."""
    return re.sub(r"\\x\{([0-9A-Fa-f]+)\}", lambda code: re.escape(chr(int(code[1], 16))), pattern)


def _whole(pattern: str) -> str | None:
    """A regular expression for whole names in quotes in which ``pattern`` is found; None where it cannot be told."""
    try:
        re.compile(_for_python(pattern))
    except re.error:
        return None
    if "&&" in pattern:
        return None  # Python has no intersections
    options = []
    for option in alternatives(pattern):
        begins, ends = option.startswith("^"), bool(re.search(r"(?<!\\)(?:\\\\)*\$$", option))
        body = option[begins : len(option) - ends]
        if re.search(r"[\^$]", re.sub(r"\\.|\[(?:\\.|[^\]\\])*\]?", "", body)) or re.search(r"\\[bBAzZ<]", body):
            return None
        options.append(f"{'' if begins else _PLAIN}(?:{body}){'' if ends else _PLAIN}")
    return f'"(?:{"|".join(options)})"'
