"""JSON Schema (draft 2020-12) to a schema that llguidance compiles and enforces.

llguidance refuses many keywords, and takes some without enforcing them. Here every schema is rewritten first:
references are resolved, what has an equivalent in supported keywords is replaced by it (``not``, ``if``, ``oneOf``,
``dependentRequired`` …, see ``json_logic``), annotations are dropped, and what remains is an error that names the
keyword by its JSON pointer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from codespec.grammar import json_logic as logic
from codespec.grammar.errors import GrammarError, did_you_mean
from codespec.grammar.json_exclusive import exclusive, negate
from codespec.grammar.json_formats import ANY_TEXT, ASCII_ONLY, ENGINE_FORMATS, FORMATS, NOT_ENFORCED
from codespec.grammar.json_places import UNIQUE
from codespec.grammar.json_refs import BadReference, References, Schema, escape
from codespec.grammar.look_around import without_look_around
from codespec.grammar.regex import RegexError, translate

MAX_EXACT = 2**53
"""Numbers up to here are the same as 64-bit floats, which is what llguidance computes with."""
MAX_SCHEMAS, MAX_DEPTH = 20_000, 200
"""Subschemas after references are resolved; schemas within schemas."""

_ANNOTATIONS = frozenset([
    "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$comment", "$defs",
    "definitions", "title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly",
    "contentMediaType", "contentEncoding", "contentSchema",
    "additionalItems", "then", "else", "minContains", "maxContains",  # read where items, if and contains are
])  # fmt: skip
COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")


def rewrite(schema: Schema, name: str, lenient: bool = False, unique: bool = False) -> tuple[Schema, list[str]]:
    """An equivalent schema in the keywords that llguidance enforces, and warnings.

    With ``lenient``, keywords that cannot be enforced are left out and the warnings list them. With ``unique``,
    ``uniqueItems`` stays in the schema, for ``json_unique``.

    Raises:
        GrammarError: a keyword cannot be enforced, or its value is wrong; the message begins with its JSON pointer.
    """
    try:
        rewriter = _Rewriter(schema, name, lenient, unique)
        try:
            return rewriter.run()
        except _Unknown:
            # An alternative refers to what it is a part of. Once more, with what that is but for its alternatives.
            rewriter = _Rewriter(schema, name, True, unique)
            rewriter.run()
            return _Rewriter(schema, name, lenient, unique, rewriter.definitions).run()
    except RecursionError:
        raise GrammarError(name, "the schema is nested too deeply", f"at most {MAX_DEPTH} levels are allowed") from None


class _Unknown(Exception):
    """Alternatives cannot be told apart as long as a definition is being rewritten."""


class _Rewriter:
    """Rewrites one document. ``out`` is the schema being built, ``also`` what must hold besides.

    Args:
        known: definitions of an earlier attempt, which take all that they should, or more.
    """

    def __init__(
        self, root: Schema, name: str, lenient: bool, unique: bool, known: dict[str, Schema | None] | None = None
    ) -> None:
        self.known = known
        self.root, self.name, self.lenient, self.keeps_unique = root, name, lenient, unique
        self.references = References(root)
        self.definitions: dict[str, Schema | None] = {}  # None: being rewritten
        self.names: dict[str, str] = {}  # by pointer
        self.warnings: list[str] = []
        self.count = self.depth = 0
        self.factor: Fraction | None = None

    def run(self) -> tuple[Schema, list[str]]:
        schema = self.schema(self.root, "")
        for pointer, name in self.names.items():
            if logic.is_circle(name, self.definitions):
                raise self.error(pointer, "the reference leads to itself", "point it at a schema")
        if isinstance(schema, bool):
            return schema, self.warnings
        return {**schema, "$defs": self.definitions} if self.definitions else schema, self.warnings

    def schema(self, node: Any, where: str) -> Schema:
        if isinstance(node, bool):
            return node
        if not isinstance(node, dict):
            raise self.error(where, "a schema is an object, true or false", "")
        self.count += 1
        self.depth += 1
        if self.count > MAX_SCHEMAS or self.depth > MAX_DEPTH:
            remedy = f"at most {MAX_SCHEMAS} subschemas in {MAX_DEPTH} levels are allowed"
            raise self.error(where, "the schema is too large", remedy)
        out: dict[str, Any] = {}
        also: list[Schema] = []
        for keyword, value in node.items():
            self._keyword(keyword, value, node, f"{where}/{escape(keyword)}", out, also)
        self.depth -= 1
        self._check_counts(out, where)
        if also:
            out["allOf"] = [*out.get("allOf", ()), *also]
        return out or True

    def _keyword(
        self, keyword: str, value: Any, node: dict[str, Any], where: str, out: dict[str, Any], also: list[Schema]
    ) -> None:
        if keyword in _ANNOTATIONS or (keyword == "x-guidance" and where == "/x-guidance"):
            return
        handler = HANDLERS.get(keyword)
        if handler is not None:
            handler(self, value, node, where, out, also)
        elif keyword in COUNTS:
            out[keyword] = self.count_value(value, where)
        elif not keyword.startswith(("x-", "$")):
            hint = did_you_mean(keyword, [*HANDLERS, *COUNTS])
            if hint:
                self.warnings.append(f"{where}: unknown keyword, ignored; {hint}")
        elif keyword in ("$dynamicRef", "$recursiveRef"):
            self.unsupported(where, f"{keyword} is not supported", "write $ref")

    def error(self, where: str, cause: str, remedy: str) -> GrammarError:
        return GrammarError(self.name, f"{where or '/'}: {cause}", remedy)

    def unsupported(self, where: str, cause: str, remedy: str) -> None:
        """Raises, or with ``lenient`` warns; the caller then leaves the keyword out."""
        if not self.lenient:
            raise self.error(where, cause, f"{remedy}, or ignore it with --lenient")
        self.warnings.append(f"{where}: {cause}; ignored")

    def _check_counts(self, out: dict[str, Any], where: str) -> None:
        """llguidance counts properties only where each must be there, or of a closed object up to one."""
        names, required = out.get("properties", {}).keys(), set(out.get("required", ()))
        if out.get("maxProperties") == 0:
            del out["maxProperties"]
            out.update(properties={}, patternProperties={}, additionalProperties=False)
        closed = out.get("additionalProperties") is False and not out.get("patternProperties")
        if out.get("minProperties", 0) <= len(required):
            out.pop("minProperties", None)
        if closed and out.get("maxProperties", 0) >= len(names):
            out.pop("maxProperties", None)
        for keyword in ("minProperties", "maxProperties"):
            if not names <= required and out.get(keyword, 0) > int(closed or keyword == "minProperties"):
                remedy = "require all of properties, or allow no others and ask for at least or at most 1"
                self.unsupported(f"{where}/{keyword}", "cannot be enforced beside optional properties", remedy)
                del out[keyword]

    # Values

    def count_value(self, value: Any, where: str) -> int:
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not number or value < 0 or value != int(value):
            raise self.error(where, "must be a whole number from 0", "")
        return int(value)

    def _number(self, value: Any, where: str) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(where, "must be a number", "")
        if not abs(value) <= MAX_EXACT:
            self.unsupported(where, "a number beyond 2^53 cannot be enforced exactly", "use a smaller one")
            return False
        return True

    def _schemas(self, value: Any, where: str) -> list[Schema]:
        if not isinstance(value, list):
            raise self.error(where, "must be a list of schemas", "")
        return [self.schema(item, f"{where}/{index}") for index, item in enumerate(value)]

    def _names(self, value: Any, where: str) -> list[str]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(where, "must be a list of names", "")
        return value

    def _map(self, value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.error(where, "must be an object", "")
        return value

    # Keywords: (self, value, node, where, out, also)

    def type_(self, value: Any, node: Any, where: str, out: dict[str, Any], also: Any) -> None:
        types = [value] if isinstance(value, str) else self._names(value, where)
        for name in types:
            if name not in _TYPES:
                raise self.error(where, f"unknown type {name!r}", did_you_mean(name, _TYPES) or ", ".join(_TYPES))
        # As alternatives, number and integer overlap: the engine would read 1 in two ways.
        out["type"] = [name for name in types if name != "integer" or "number" not in types]

    def values(self, value: Any, node: Any, where: str, out: dict[str, Any], also: list[Schema]) -> None:
        keyword = where.rpartition("/")[2]
        if keyword == "enum" and not isinstance(value, list):
            raise self.error(where, "must be a list of values", "")
        values = value if keyword == "enum" else [value]
        if not all(self._exact(item, where) for item in values):
            return
        objects = [item for item in values if isinstance(item, dict) and len(item) > 1]
        if not objects:
            out[keyword] = value
            return
        others = [item for item in values if item not in objects]  # their names may come in any order
        also.append({"anyOf": [*map(logic.only, objects), *([{"enum": others}] if others else [])]})

    def _exact(self, value: Any, where: str) -> bool:
        """Whether every number in a constant is one that the engine writes as it is."""
        if isinstance(value, list | dict):
            return all(self._exact(item, where) for item in (value.values() if isinstance(value, dict) else value))
        return isinstance(value, bool) or not isinstance(value, int | float) or self._number(value, where)

    def bound(self, value: Any, node: dict[str, Any], where: str, out: dict[str, Any], also: Any) -> None:
        keyword = where.rpartition("/")[2]
        from_draft_4 = isinstance(value, bool) and keyword.startswith("exclusive")
        if from_draft_4 or self._number(value, where):
            out[keyword] = value

    def multiple_of(self, value: Any, node: Any, where: str, out: dict[str, Any], also: Any) -> None:
        if not self._number(value, where):
            return
        if value <= 0:
            raise self.error(where, "must be more than 0", "")
        digits, scaled = 0, float(value)
        while scaled % 1 and digits < 20:  # as llguidance does it
            digits, scaled = digits + 1, scaled * 10
        if scaled > 2**32 - 1 or Fraction(int(scaled), 10**digits) != Fraction(str(value)):
            self.unsupported(where, f"{value} has too many digits for the engine", "use a shorter number")
            return
        factor = Fraction(str(value))
        if self.factor is not None and self.factor != factor and self.factor * factor * 10 ** (2 * digits) >= 2**32:
            self.unsupported(where, "two large multipleOf in one schema can overflow in the engine", "keep one")
            return
        self.factor = factor
        out["multipleOf"] = value

    def pattern(self, value: Any, node: Any, where: str, out: dict[str, Any], also: list[Schema]) -> None:
        parts = without_look_around(value) if isinstance(value, str) and "(?" in value else [value]
        found = [self._pattern(part, where, value) for part in parts]
        if None not in found:
            out["pattern"] = found[-1]
            also += [{"pattern": each} for each in found[:-1]]

    def _pattern(self, value: Any, where: str, written: str = "") -> str | None:
        """A pattern in the engine's dialect; None where it has none.

        Args:
            written: what the schema has in its place.
        """
        if not isinstance(value, str):
            raise self.error(where, "must be a regular expression", "")
        try:
            return translate(value, "ecma", whole=False)
        except RegexError as error:
            if written not in ("", value):
                return self._pattern(written, where)  # complains of the place in what was written
            self.unsupported(where, f"{error.cause} (character {error.position + 1})", error.remedy or "change it")
            return None

    def format(self, value: Any, node: Any, where: str, out: dict[str, Any], also: list[Schema]) -> None:
        value = ASCII_ONLY.get(value, value) if isinstance(value, str) else value
        if value in FORMATS:
            also.append({"pattern": f"^(?:{FORMATS[value]})$"})
        elif value in ENGINE_FORMATS:
            out["format"] = value
        elif value in NOT_ENFORCED:
            self.unsupported(where, f"format {value!r} cannot be enforced", "leave it out, or write a pattern")
        elif value not in ANY_TEXT and node.get("type", "string") == "string":  # 7.2.3: others are annotations
            hint = did_you_mean(str(value), [*FORMATS, *ENGINE_FORMATS])
            self.warnings.append(f"{where}: unknown format {value!r}, ignored" + (f"; {hint}" if hint else ""))

    def reference(self, value: Any, node: dict[str, Any], where: str, out: dict[str, Any], also: Any) -> None:
        if not isinstance(value, str):
            raise self.error(where, "must be a reference", "")
        try:
            target, pointer = self.references.resolve(node, value)
        except BadReference as error:
            remedy = "copy that schema into $defs" if "outside" in str(error) else "define it"
            raise self.error(where, str(error), remedy) from None
        name = self.names.get(pointer)
        if name is None:
            name = self.names[pointer] = f"d{len(self.names)}"
            self.definitions[name] = None
            self.definitions[name] = self.schema(target, pointer)
        out["$ref"] = f"#/$defs/{name}"

    def all_of(self, value: Any, node: Any, where: str, out: dict[str, Any], also: Any) -> None:
        out["allOf"] = self._schemas(value, where)

    def any_of(self, value: Any, node: Any, where: str, out: dict[str, Any], also: Any) -> None:
        out["anyOf"] = self._schemas(value, where)

    def one_of(self, value: Any, node: Any, where: str, out: dict[str, Any], also: list[Schema]) -> None:
        options = self._schemas(value, where)
        whole = {name: each for name, each in self.definitions.items() if each is not None}
        found = exclusive(options, {**self.definitions, **(self.known or {}), **whole})
        if found is None:
            if self.known is None and not self.lenient and len(whole) < len(self.definitions):
                raise _Unknown
            cause = "oneOf whose alternatives may hold together cannot be enforced"
            self.unsupported(where, cause, "use anyOf, or give each a required property with its own const")
        also.append({"anyOf": options if found is None else found})

    def not_(self, value: Any, node: Any, where: str, out: dict[str, Any], also: list[Schema]) -> None:
        negated = negate(self.schema(value, where), self.definitions)
        if negated is None:
            self.unsupported(where, "this schema has no opposite that can be enforced", "say what is allowed instead")
        else:
            also.append(negated)

    def if_(self, value: Any, node: dict[str, Any], where: str, out: dict[str, Any], also: list[Schema]) -> None:
        parent = where.rpartition("/")[0]
        then, otherwise = (self.schema(node.get(key, True), f"{parent}/{key}") for key in ("then", "else"))
        if then is True and otherwise is True:
            return
        condition = self.schema(value, where)
        negated = negate(condition, self.definitions)
        if negated is None:
            remedy = "write anyOf with both cases"
            self.unsupported(where, "a condition without an opposite that can be enforced", remedy)
        else:
            also.append({"anyOf": [logic.both(condition, then), logic.both(negated, otherwise)]})

    def items(self, value: Any, node: dict[str, Any], where: str, out: dict[str, Any], also: Any) -> None:
        if isinstance(value, list):  # drafts up to 2019-09
            out["prefixItems"] = self._schemas(value, where)
            rest = where.rpartition("/")[0] + "/additionalItems"
            out["items"] = self.schema(node.get("additionalItems", True), rest)
        else:
            out["items"] = self.schema(value, where)

    def prefix_items(self, value: Any, node: Any, where: str, out: dict[str, Any], also: Any) -> None:
        out["prefixItems"] = self._schemas(value, where)

    def additional(self, value: Any, node: Any, where: str, out: dict[str, Any], also: Any) -> None:
        out["additionalProperties"] = self.schema(value, where)

    def properties(self, value: Any, node: Any, where: str, out: dict[str, Any], also: Any) -> None:
        members = self._map(value, where)
        out["properties"] = {key: self.schema(item, f"{where}/{escape(key)}") for key, item in members.items()}

    def pattern_properties(self, value: Any, node: Any, where: str, out: dict[str, Any], also: Any) -> None:
        patterns: dict[str, Schema] = {}
        for key, item in self._map(value, where).items():
            pattern = self._pattern(key, f"{where}/{escape(key)}")
            if pattern is not None:
                patterns[pattern] = self.schema(item, f"{where}/{escape(key)}")
        out["patternProperties"] = patterns

    def required(self, value: Any, node: Any, where: str, out: dict[str, Any], also: Any) -> None:
        if isinstance(value, bool):
            raise self.error(where, "must be a list of names", "list it in the object that holds the property")
        out["required"] = self._names(value, where)

    def property_names(self, value: Any, node: Any, where: str, out: dict[str, Any], also: list[Schema]) -> None:
        rule = logic.names_rule(self.schema(value, where), self.definitions)
        if rule is None:
            self.unsupported(where, "this rule for names cannot be enforced", "use one pattern, enum or const")
        else:
            also.append(logic.evaluates_nothing(rule))

    def dependent(self, value: Any, node: Any, where: str, out: dict[str, Any], also: list[Schema]) -> None:
        for key, needs in self._map(value, where).items():
            place = f"{where}/{escape(key)}"
            present: dict[str, Any] = {"required": [key]}
            if isinstance(needs, list):
                then: Schema = {"required": [key, *self._names(needs, place)]}
            else:
                then = logic.both(present, self.schema(needs, place))
            also.append({"anyOf": [{"properties": {key: False}}, then]})

    def contains(self, value: Any, node: dict[str, Any], where: str, out: dict[str, Any], also: list[Schema]) -> None:
        parent = where.rpartition("/")[0]
        least = self.count_value(node.get("minContains", 1), f"{parent}/minContains")
        if least == 0 and "maxContains" not in node:
            return
        limit = node.get("maxItems")
        if least == 1 and "maxContains" not in node and isinstance(limit, int) and limit <= 16:
            also.append(logic.holds_one(self.schema(value, where), limit))
        else:
            self.unsupported(
                where, "contains cannot be enforced", "put the items in prefixItems, or give maxItems up to 16"
            )

    def unique(self, value: Any, node: dict[str, Any], where: str, out: dict[str, Any], also: Any) -> None:
        limit = node.get("maxItems")
        if value is not True or (isinstance(limit, int) and limit <= 1):
            return
        if self.keeps_unique:
            out[UNIQUE] = True
        else:
            self.unsupported(where, "uniqueItems cannot be enforced here", "leave it out")

    def unevaluated(
        self, value: Any, node: dict[str, Any], where: str, out: dict[str, Any], also: list[Schema]
    ) -> None:
        rest = self.schema(value, where)
        keyword = where.rpartition("/")[2]
        if rest is True:  # takes everything, and counts as having looked at it
            out.setdefault("additionalProperties" if keyword == "unevaluatedProperties" else "items", True)
            return
        bare = {key: item for key, item in node.items() if key != keyword}
        base = self.schema(bare, where.rpartition("/")[0]) if bare else True
        closed = logic.close(base, rest, keyword == "unevaluatedProperties", self.definitions)
        if closed is None:
            remedy = "list everything in one place and use additionalProperties or items"
            self.unsupported(where, f"{keyword} cannot be enforced here", remedy)
        else:
            also.append(closed)


Handler = Callable[[_Rewriter, Any, dict[str, Any], str, dict[str, Any], list[Schema]], None]
_R = _Rewriter
HANDLERS: dict[str, Handler] = {
    "type": _R.type_, "const": _R.values, "enum": _R.values, "minimum": _R.bound, "maximum": _R.bound,
    "exclusiveMinimum": _R.bound, "exclusiveMaximum": _R.bound, "multipleOf": _R.multiple_of, "pattern": _R.pattern,
    "format": _R.format, "$ref": _R.reference, "allOf": _R.all_of, "anyOf": _R.any_of, "oneOf": _R.one_of,
    "not": _R.not_, "if": _R.if_, "items": _R.items, "prefixItems": _R.prefix_items, "properties": _R.properties,
    "additionalProperties": _R.additional, "patternProperties": _R.pattern_properties, "required": _R.required,
    "propertyNames": _R.property_names, "dependentRequired": _R.dependent, "dependentSchemas": _R.dependent,
    "dependencies": _R.dependent, "contains": _R.contains, "uniqueItems": _R.unique,
    "unevaluatedProperties": _R.unevaluated, "unevaluatedItems": _R.unevaluated,
}  # fmt: skip
