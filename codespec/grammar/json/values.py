"""Keywords of JSON Schemas that speak of one value: types, constants, numbers, texts."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from codespec.grammar.errors import OR_IGNORE, GrammarError, did_you_mean
from codespec.grammar.json import logic
from codespec.grammar.json.drafts import DEFAULT, DRAFT_7
from codespec.grammar.json.formats import ANY_TEXT, BASE64, ENGINE_FORMATS, FORMATS, JSON
from codespec.grammar.json.patterns.lower import lower, lower_to_one, whole
from codespec.grammar.json.refs import Place, Schema
from codespec.grammar.regex import RegexError

MAX_EXACT = 2**53
"""Numbers up to here are the same as 64-bit floats, which is what llguidance computes with."""
_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")


class ValueKeywords:
    """Rewrites keywords of a document that is called ``name``. Each gets its value, the schema that it stands in, its
    JSON pointer, the schema being built (``out``) and what must hold besides (``also``).

    Attributes:
        place: where that schema stands.
    """

    def __init__(self, name: str, lenient: bool) -> None:
        self.name, self.lenient = name, lenient
        self.warnings: list[str] = []
        self.place = Place("", "", DEFAULT)
        self._factor: Fraction | None = None

    def error(self, where: str, cause: str, remedy: str) -> GrammarError:
        return GrammarError(self.name, f"{where or '/'}: {cause}", remedy)

    def unsupported(self, where: str, cause: str, remedy: str) -> None:
        """Raises, or with ``lenient`` warns; the caller then leaves the keyword out."""
        if not self.lenient:
            raise self.error(where, cause, remedy + OR_IGNORE)
        self.warnings.append(f"{where}: {cause}; ignored")

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

    def names_in(self, value: Any, where: str) -> list[str]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(where, "must be a list of names", "")
        return value

    def members(self, value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.error(where, "must be an object", "")
        return value

    def type_(self, value: Any, node: Any, where: str, out: dict[str, Any], also: Any) -> None:
        types = [value] if isinstance(value, str) else self.names_in(value, where)
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
        if keyword.startswith("exclusive") and self._says_exclusive(value, where):
            return
        if self._number(value, where):
            exclusive = f"exclusive{keyword.capitalize()}"
            out[exclusive if node.get(exclusive) is True else keyword] = value

    def _says_exclusive(self, value: Any, where: str) -> bool:
        """Whether ``exclusiveMinimum`` speaks of the ``minimum`` beside it, as in draft 4."""
        draft = self.place.draft
        if draft.identifier == "id" and not isinstance(value, bool):
            raise self.error(where, "must be true or false in draft 4", "write minimum or maximum beside it")
        return isinstance(value, bool) and (draft.identifier == "id" or not draft.declared)

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
        if self._factor is not None and self._factor != factor and self._factor * factor * 10 ** (2 * digits) >= 2**32:
            self.unsupported(where, "two large multipleOf in one schema can overflow in the engine", "keep one")
            return
        self._factor = factor
        out["multipleOf"] = value

    def pattern(self, value: Any, node: Any, where: str, out: dict[str, Any], also: list[Schema]) -> None:
        found = self._patterns(value, where)
        if found:
            out["pattern"] = found[-1]
            also += [{"pattern": each} for each in found[:-1]]

    def _patterns(self, value: Any, where: str, one: bool = False) -> list[str]:
        """Patterns in the engine's dialect that together are ``value``, or a single one; none where it has none."""
        if not isinstance(value, str):
            raise self.error(where, "must be a regular expression", "")
        try:
            return [lower_to_one(value)] if one else lower(value)
        except RegexError as error:
            self.unsupported(where, f"{error.cause} (character {error.position + 1})", error.remedy or "change it")
            return []

    def content(self, value: Any, node: dict[str, Any], where: str, out: dict[str, Any], also: list[Schema]) -> None:
        """What a text stands for, which only draft 7 lets validators assert."""
        if self.place.draft != DRAFT_7:
            return
        encoded = isinstance(node.get("contentEncoding"), str)
        is_json = node.get("contentMediaType") == "application/json"
        if encoded and is_json:
            self.unsupported(where, "encoded JSON cannot be enforced", "leave it out")
        elif where.endswith("/contentEncoding") and value == "base64":
            also.append({"pattern": whole(BASE64), logic.OPTIONAL: value})
        elif where.endswith("/contentMediaType") and is_json:
            also.append({"pattern": whole(JSON), logic.OPTIONAL: value})

    def format(self, value: Any, node: Any, where: str, out: dict[str, Any], also: list[Schema]) -> None:
        if value in FORMATS:
            also.append({"pattern": whole(FORMATS[value]), logic.OPTIONAL: value})
        elif value in ENGINE_FORMATS:
            out["format"] = value
        elif value not in ANY_TEXT and node.get("type", "string") == "string":  # 7.2.3: others are annotations
            hint = did_you_mean(str(value), [*FORMATS, *ENGINE_FORMATS])
            self.warnings.append(f"{where}: unknown format {value!r}, ignored" + (f"; {hint}" if hint else ""))
