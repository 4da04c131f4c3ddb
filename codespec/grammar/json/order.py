"""A rewritten JSON Schema as Lark rules for llguidance in which an object's properties come in any order.

llguidance's own compiler fixes the order. Its parametric rules carry a 64-bit number: one bit for each property says
that it has been written, so no property comes twice and the object ends only once the required ones are there. What is
neither a plain object, nor an array or alternative with one inside, stays a ``%json`` of its own.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from codespec.grammar.json import logic
from codespec.grammar.json.join import by_type, joined, listing_all
from codespec.grammar.json.names import literal, names_of
from codespec.grammar.json.positions import MAX_PROPERTIES, UNIQUE, for_engine, names_must_differ, subschemas
from codespec.grammar.json.refs import Schema
from codespec.grammar.json.unique import comparable

_MAX_RULES, _MAX_LEAVES, _MAX_SIZE = 4_000, 1_500, 2_000_000  # per schema; the size in characters
_MAX_ALTERNATIVES = 24  # of one value, once parts that must hold together are multiplied out
_MAX_COUNT = 64  # minItems and maxItems of an array whose items are rules
_OBJECT = frozenset({
    "type", "properties", "required", "additionalProperties", "patternProperties", "minProperties", logic.EVALUATES,
})  # fmt: skip
_ARRAY = frozenset({"type", "items", "minItems", "maxItems", UNIQUE, logic.EVALUATES})
_NEEDS_RULES = frozenset({"properties", "required", UNIQUE})


class RulesTooLarge(Exception):
    """The rules would be larger than what compiles in a moment."""


class Found(NamedTuple):
    """A schema as Lark rules.

    Attributes:
        text: of the grammar.
        ordered: how many of its parts keep the schema's order.
        loose: whether somewhere items must differ that the rules do not hold apart.
    """

    text: str
    ordered: int
    loose: bool


def any_order(schema: Schema, options: dict[str, Any], impossible: Collection[str] = ()) -> Found | None:
    """A Lark grammar; None where there is nothing in a schema that needs rules.

    Args:
        impossible: ``%json`` parts of an earlier one that no value satisfies.

    ``options`` are what ``x-guidance`` says to every ``%json``; white space is the pattern in it.
    """
    if isinstance(schema, bool):
        return None
    try:
        return _Rules(schema, options, impossible).run()
    except (RulesTooLarge, RecursionError):
        return None


def several_names(schema: Schema) -> bool:
    """Whether some object in a rewritten schema has two properties, or one besides those that it does not list: an
    order."""
    if isinstance(schema, bool):
        return False
    listed = {*schema.get("properties", ()), *schema.get("required", ())}
    if len(listed) + (schema.get("additionalProperties") is not False) > 1 and listed:
        return True
    return any(map(several_names, (*subschemas(schema), *schema.get("$defs", {}).values())))


def _looks_at_all(schema: Schema) -> bool:
    """Whether items or names must differ somewhere."""
    if isinstance(schema, bool):
        return False
    return UNIQUE in schema or names_must_differ(schema) or any(map(_looks_at_all, subschemas(schema)))


class _Rules:
    """Rules being written. A rule that is None takes nothing."""

    def __init__(self, schema: dict[str, Any], options: dict[str, Any], impossible: Collection[str] = ()) -> None:
        self.root = {key: item for key, item in schema.items() if key != "$defs"}
        self.definitions: dict[str, Schema] = schema.get("$defs", {})
        self.options, self.impossible = options, impossible
        self.names: dict[str, str | None] = {}  # of a rule, by the schema's text
        self.lines: list[str] = []
        self.keys: dict[str, str] = {}  # terminals of property names
        self.others: dict[str, str] = {}  # terminals of all names but some
        self.naming: dict[str, bool] = {}  # definitions that name properties, by name
        self.size = self.leaves = self.ordered = self.objects = self.count = 0
        self.loose = False

    def run(self) -> Found | None:
        start = self.rule(self.root)
        if start is None or not self.objects:
            return None
        white = self.options["whitespace_pattern"].removesuffix("?")
        head = [f"start: {start}", "ws: WS?", f"WS: /{white}/"]
        return Found("\n".join([*head, *self.lines]), self.ordered, self.loose)

    # Rules

    def rule(self, schema: Schema) -> str | None:
        if schema is False:
            return None
        text = json.dumps(schema)
        if text not in self.names:
            if len(self.names) > _MAX_RULES:
                raise RulesTooLarge
            name = self.names[text] = f"r{len(self.names)}"
            if not self._write(name, {} if schema is True else schema):
                self.names[text] = None
        return self.names[text]

    def _write(self, name: str, schema: dict[str, Any]) -> bool:
        if not self._needs_rules(schema, set()):
            return self._leaf(name, schema)
        if schema.keys() == {"$ref"}:
            return self._either(name, [self.rule(self.definitions[logic.definition_of(schema)])])
        options = self._alternatives(schema)
        if options is None:
            return self._leaf(name, schema)
        if options != [schema]:
            return self._either(name, [self.rule(option) for option in options])
        types = logic.types_of(schema)
        if schema.keys() <= _OBJECT and types == {"object"} and schema.get("minProperties", 0) < 2:
            return self._object(name, schema)
        if schema.keys() <= _ARRAY and types == {"array"} and "integer" not in schema["type"]:
            return self._array(name, schema)
        return self._leaf(name, schema)

    def _either(self, name: str, options: Iterable[str | None]) -> bool:
        found = list(dict.fromkeys(option for option in options if option is not None))
        if found:
            self._line(f"{name}: {' | '.join(found)}")
        return bool(found)

    def _line(self, line: str) -> None:
        self.size += len(line)
        if self.size > _MAX_SIZE:
            raise RulesTooLarge
        self.lines.append(line)

    def _leaf(self, name: str, schema: dict[str, Any]) -> bool:
        """The schema as llguidance compiles it, with the definitions that it leads to."""
        self.leaves += 1
        if self.leaves > _MAX_LEAVES:
            raise RulesTooLarge
        needed: dict[str, Schema] = {}
        self._reach(schema, needed)
        whole: dict[str, Any] = {**schema, **({"$defs": needed} if needed else {})}
        plain: Any = for_engine(whole)
        self.loose = self.loose or any(map(_looks_at_all, (schema, *needed.values())))
        part = f"%json {json.dumps({**plain, 'x-guidance': self.options})}"
        if part in self.impossible:
            return False
        self.ordered += any(map(several_names, (schema, *needed.values())))
        self._line(f"{name}: {part}")
        return True

    def _reach(self, schema: Schema, found: dict[str, Schema]) -> None:
        if isinstance(schema, bool):
            return
        name = logic.definition_of(schema) if "$ref" in schema else None
        if name is not None and name not in found:
            found[name] = self.definitions[name]
            self._reach(found[name], found)
        for below in subschemas(schema):
            self._reach(below, found)

    def _needs_rules(self, schema: Schema, seen: set[str]) -> bool:
        """Whether an object with properties, or an array with different items, is somewhere in a value."""
        if isinstance(schema, bool):
            return False
        if _NEEDS_RULES & schema.keys():
            return True
        name = logic.definition_of(schema) if "$ref" in schema else None
        if name is not None and name not in seen:
            seen.add(name)
            if self._needs_rules(self.definitions[name], seen):
                return True
        return any(self._needs_rules(below, seen) for below in subschemas(schema))

    # Objects and arrays

    def _object(self, name: str, schema: dict[str, Any]) -> bool:
        names = names_of(schema)
        if names is None:
            return self._leaf(name, schema)
        required = list(dict.fromkeys(schema.get("required", ())))
        rules = {key: self.rule(member) for key, member in names.listed.items()}
        if any(rules[key] is None for key in required):
            return False
        written = [key for key in rules if rules[key] is not None]
        others = [(text, rule) for text, rest in names.others if (rule := self.rule(rest)) is not None]
        if len(written) > MAX_PROPERTIES:
            if len(required) > MAX_PROPERTIES:
                return self._leaf(name, schema)
            self.loose = True  # what has no bit may come twice here
        self.objects += len(written) + len(others) > 1
        options = [
            f'{self._key(key)} ws ":" ws {rules[key]} ws {name}t::set_bit({bit}) %if bit_clear({bit})'
            if bit < MAX_PROPERTIES
            else f'{self._key(key)} ws ":" ws {rules[key]} ws {name}t::_'
            for bit, key in enumerate(written)
        ]
        options += [f'{self._other(text)} ws ":" ws {rule} ws {name}t::_' for text, rule in others]
        empty = '"}"' if not required and not schema.get("minProperties") else ""
        if not options:
            if empty:
                self._line(f'{name}: "{{" ws "}}"')
            return bool(empty)
        self._line(f'{name}: "{{" ws {name}m::0x0' + (f' | "{{" ws {empty}' if empty else ""))
        self._line(f"{name}m::_: " + "\n  | ".join(options))
        end = f" %if is_ones([0:{len(required)}])" if required else ""
        bits = len(written)
        more = "" if others or bits > MAX_PROPERTIES else f" %if bit_count_lt([0:{bits}], {bits})"
        self._line(f'{name}t::_: "," ws {name}m::_{more}\n  | "}}"{end}')
        return True

    def _array(self, name: str, schema: dict[str, Any]) -> bool:
        low, high = schema.get("minItems", 0), schema.get("maxItems")
        if schema.get(UNIQUE):
            values = self._values(schema.get("items", True))
            if values is not None:
                return self._set(name, values, low, len(values) if high is None else min(high, len(values)))
            self.loose = True
        item = self.rule(schema.get("items", True))
        if high is not None and high < low:
            return False
        if item is None or high == 0:
            if low == 0:
                self._line(f'{name}: "[" ws "]"')
            return bool(low == 0)
        if max(low, high or 0) > _MAX_COUNT:
            return self._leaf(name, schema)
        more = f"{{{max(low - 1, 0)},{'' if high is None else high - 1}}}"
        empty = "" if low else ' | "[" ws "]"'
        self._line(f'{name}: "[" ws {item} ws ("," ws {item} ws){more} "]"{empty}')
        return True

    def _values(self, schema: Schema) -> list[str] | None:
        """The texts of all values that a schema takes, where that are a few strings, numbers and the like."""
        while isinstance(schema, dict) and schema.keys() == {"$ref"}:
            schema = self.definitions[logic.definition_of(schema)]
        if isinstance(schema, bool) or not schema.keys() <= {"type", "enum", "const"}:
            return None
        types = logic.types_of(schema)
        values = logic.values_of(schema)
        if values is None and types <= {"boolean", "null"}:
            values = [value for value in (None, True, False) if logic.type_of(value) in types]
        if values is None or any(isinstance(value, list | dict) for value in values):
            return None
        if "integer" in schema.get("type", ()) or len(values) > MAX_PROPERTIES:
            return None
        texts = [json.dumps(value, ensure_ascii=False) for value in values if logic.type_of(value) in types]
        found = {comparable(text.encode()): text for text in reversed(texts)}
        return list(found.values())[::-1]

    def _set(self, name: str, values: list[str], low: int, high: int) -> bool:
        """An array of different ones of a few values: a bit says that a value has come."""
        if low > high:
            return False
        self.objects += 1
        if high == 0:
            self._line(f'{name}: "[" ws "]"')
            return True
        bits = f"[0:{len(values)}]"
        items = [
            f"{json.dumps(text, ensure_ascii=False)} ws {name}t::set_bit({bit}) %if bit_clear({bit})"
            for bit, text in enumerate(values)
        ]
        self._line(f'{name}: "[" ws {name}m::0x0' + (' | "[" ws "]"' if low == 0 else ""))
        self._line(f"{name}m::_: " + "\n  | ".join(items))
        more = f'"," ws {name}m::_ %if bit_count_lt({bits}, {high})'
        self._line(f'{name}t::_: {more}\n  | "]"' + (f" %if bit_count_ge({bits}, {low})" if low > 1 else ""))
        return True

    def _key(self, key: str) -> str:
        if key not in self.keys:
            self.keys[key] = f"K{len(self.keys)}"
            self._line(f"{self.keys[key]}: {literal(key)}")
        return self.keys[key]

    def _other(self, text: str) -> str:
        if text not in self.others:
            self.others[text] = f"O{len(self.others)}"
            self._line(f"{self.others[text]}: {text}")
        return self.others[text]

    # Parts that must hold together

    def _alternatives(self, schema: dict[str, Any]) -> list[dict[str, Any]] | None:
        """Schemas of one type each, without ``allOf``, ``anyOf`` and ``$ref`` of their own, of which ``schema`` takes
        what any takes; None where they are too many, or parts cannot be joined."""
        found: list[dict[str, Any]] = []
        parts = self._multiplied(schema, 12)
        for conjunction in parts or ():
            whole = joined(conjunction)
            if whole is None:
                return None
            if isinstance(whole, dict):
                found += by_type(whole)
        return None if parts is None or len(found) > 2 * _MAX_ALTERNATIVES else listing_all(found)

    def _multiplied(self, schema: Schema, depth: int) -> list[list[dict[str, Any]]] | None:
        """Every way in which ``schema`` can hold, as parts that hold together."""
        if isinstance(schema, bool):
            return [[]] if schema else []
        if depth == 0:
            return None
        own = {key: item for key, item in schema.items() if key not in ("allOf", "anyOf", "$ref")}
        groups: list[list[list[dict[str, Any]]] | None] = [[[own]]]
        groups += [self._multiplied(part, depth - 1) for part in schema.get("allOf", ())]
        if "$ref" in schema:
            groups.append(self._multiplied(self.definitions[logic.definition_of(schema)], depth - 1))
        if "anyOf" in schema:
            options = [self._multiplied(part, depth - 1) for part in schema["anyOf"]]
            groups.append(None if None in options else [case for option in options for case in option or ()])
        cases: list[list[dict[str, Any]]] = [[]]
        for group in groups:
            if group is None or len(cases) * len(group) > _MAX_ALTERNATIVES:
                return None
            cases = [a + b for a, b in itertools.product(cases, group)]
        return cases
