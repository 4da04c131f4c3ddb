"""JSON Schemas of Python types, as narrow as what pydantic reads from JSON.

pydantic's own schemas are wider in places: names of ``dict[int, str]`` may be any, a ``Decimal`` any text, dates may be
of year 0. Here they are narrowed, or what cannot be said is named.
"""

from __future__ import annotations

import re
from typing import Any

import pydantic
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from codespec.grammar.json.formats import BASE64

_INTEGER = r"^(?:0|-?[1-9][0-9]{0,17})$"
_NUMBER = r"^-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,9})?$"
_LARGEST = 9e15  # of a number that must be finite
_DAY = r"^(?!0000)"
_CLOCK = r"^[^:]*:[^:]*:[0-5]"  # pydantic knows no leap seconds
_NAIVE_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
_NAIVE_DAY = r"(?!0000)[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
_DURATION = (
    r"^-?P(?=[0-9]|T[0-9])(?:[0-9]{1,3}Y)?(?:[0-9]{1,3}M)?(?:[0-9]{1,4}D)?"
    r"(?:T(?=[0-9])(?:[0-9]{1,4}H)?(?:[0-9]{1,4}M)?(?:[0-9]{1,4}(?:\.[0-9]{1,6})?S)?)?$"
)
_HOST = r"[a-z](?:[a-z0-9]{0,20})(?:-[a-z0-9]{1,20})?(?:\.[a-z][a-z0-9]{1,20}){1,3}"
_REST = r"(?::[1-9][0-9]{0,3})?(?:/[A-Za-z0-9._~-]{0,40}){0,8}(?:\?[A-Za-z0-9._~=&-]{0,80})?(?:#[A-Za-z0-9._~-]{0,40})?"
# What Rust's syntax and classes mean otherwise than JavaScript's.
_RUST_ONLY = re.compile(r"&&|~~|\[\[|\[:|\\[zAbB<pP]|\(\?[a-z-]*x")
_UNICODE_CLASS = re.compile(r"\\[WDSs]|\[\^(?:[^\]\[]|\[(?!\^))*\\[wds]")


def _versioned(version: str) -> str:
    return rf"^[0-9a-f]{{8}}-[0-9a-f]{{4}}-{version}[0-9a-f]{{3}}-[89ab][0-9a-f]{{3}}-[0-9a-f]{{12}}$"


class NarrowSchema(GenerateJsonSchema):  # type: ignore[misc]
    """Makes the schemas.

    Attributes:
        too_wide: what pydantic reads less of than the schema says, and cannot be said.
        unseen: what checks values besides, in Python.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.too_wide: dict[str, None] = {}
        self.unseen: dict[str, None] = {}

    def _narrowed(self, schema: Any, found: JsonSchemaValue, *allowed: str) -> JsonSchemaValue:
        """``found``, where a core schema has no constraints but those that are allowed."""
        checked = {"gt", "ge", "lt", "le", "multiple_of", "now_op", "pattern", "min_length", "max_length"}
        for word in checked & schema.keys() - set(allowed):
            self.too_wide[f"{schema['type']} with {word}"] = None
        return found

    # Names

    def _names(self, found: JsonSchemaValue, schema: Any) -> JsonSchemaValue:
        """The schema of a dict, with its names."""
        values = found.pop("patternProperties", None)
        if values:
            found["additionalProperties"] = next(iter(values.values()))
        found.pop("propertyNames", None)
        names = self._name(schema["keys_schema"]) if "keys_schema" in schema else {}
        return {**found, "propertyNames": names} if names else found

    def _name(self, schema: Any) -> JsonSchemaValue:
        kind = schema["type"]
        if kind in ("int", "float", "decimal"):
            pattern = _INTEGER if kind == "int" else _NUMBER
            return self._narrowed(schema, {"type": "string", "pattern": pattern})
        if kind == "bool":
            return {"enum": ["true", "false"]}
        if kind == "any":
            return {}
        if kind == "union":
            choices = [each[0] if isinstance(each, tuple) else each for each in schema["choices"]]
            if any(each["type"] == "str" and not self._constrained(each) for each in choices):
                return {}
        found = self.generate_inner(schema)
        plain = self._resolved(found)
        names = [plain["const"]] if "const" in plain else plain.get("enum")
        if plain.get("type") == "string" or (names and all(isinstance(name, str) for name in names)):
            return found
        self.too_wide[f"names of type {kind}"] = None
        return {}

    @staticmethod
    def _constrained(schema: Any) -> bool:
        return not {"pattern", "min_length", "max_length"}.isdisjoint(schema)

    def _resolved(self, found: JsonSchemaValue) -> JsonSchemaValue:
        for _ in range(8):
            target = self.definitions.get(self.json_to_defs_refs.get(found.get("$ref", ""), ""), None)
            if target is None:
                return found
            found = target
        return found

    def dict_schema(self, schema: Any) -> JsonSchemaValue:
        return self._names(super().dict_schema(schema), schema)

    def ordered_dict_schema(self, schema: Any) -> JsonSchemaValue:
        return self._names(super().ordered_dict_schema(schema), schema)

    def counter_schema(self, schema: Any) -> JsonSchemaValue:
        return self._names(super().counter_schema(schema), schema)

    def frozendict_schema(self, schema: Any) -> JsonSchemaValue:
        return self._names(super().frozendict_schema(schema), schema)

    # Values

    def str_schema(self, schema: Any) -> JsonSchemaValue:
        found = super().str_schema(schema)
        changed = {"strip_whitespace", "to_lower", "to_upper"} & {word for word in schema if schema[word]}
        if changed and self._constrained(schema):
            self.too_wide[f"a text with {min(changed)} and a pattern or length"] = None
        pattern = found.get("pattern")
        if isinstance(pattern, str) and _RUST_ONLY.search(pattern):
            self.too_wide[f"pattern {pattern!r}, which Rust reads in its own way,"] = None
        elif isinstance(pattern, str) and _UNICODE_CLASS.search(pattern):
            found["allOf"] = [{"pattern": r"^[\x00-\x7F]*$"}]  # there both read the classes alike
        return found

    def float_schema(self, schema: Any) -> JsonSchemaValue:
        found = super().float_schema(schema)
        return found if schema.get("allow_inf_nan", True) else self._finite(found)

    @staticmethod
    def _finite(found: JsonSchemaValue) -> JsonSchemaValue:
        low, high = ({"minimum", "exclusiveMinimum"} & found.keys()), ({"maximum", "exclusiveMaximum"} & found.keys())
        return {**found, **({} if low else {"minimum": -_LARGEST}), **({} if high else {"maximum": _LARGEST})}

    def decimal_schema(self, schema: Any) -> JsonSchemaValue:
        digits, places = schema.get("max_digits"), schema.get("decimal_places")
        found = self.float_schema({**schema, "type": "float", "allow_inf_nan": False})
        if places is not None:
            found["multipleOf"] = 10**-places if places else 1
        elif digits is not None:
            found["multipleOf"] = 1
        whole = None if digits is None else digits - (places or 0)
        if whole is not None and whole <= 15:
            parts = [{"exclusiveMinimum": -(10**whole), "exclusiveMaximum": 10**whole}]
            return {**found, "allOf": parts}
        return found

    def complex_schema(self, schema: Any) -> JsonSchemaValue:
        return {"type": "string", "pattern": r"^-?[0-9]{1,9}(?:\.[0-9]{1,9})?[+-][0-9]{1,9}(?:\.[0-9]{1,9})?j$"}

    def date_schema(self, schema: Any) -> JsonSchemaValue:
        return self._narrowed(schema, {"type": "string", "format": "date", "pattern": _DAY})

    def time_schema(self, schema: Any) -> JsonSchemaValue:
        if schema.get("tz_constraint") == "naive":
            return self._narrowed(schema, {"type": "string", "pattern": f"^{_NAIVE_TIME}$"})
        return self._narrowed(schema, {"type": "string", "format": "time", "pattern": _CLOCK})

    def datetime_schema(self, schema: Any) -> JsonSchemaValue:
        if schema.get("tz_constraint") == "naive":
            return self._narrowed(schema, {"type": "string", "pattern": f"^{_NAIVE_DAY}T{_NAIVE_TIME}$"})
        patterns = [{"pattern": _DAY}, {"pattern": _CLOCK}]
        return self._narrowed(schema, {"type": "string", "format": "date-time", "allOf": patterns})

    def timedelta_schema(self, schema: Any) -> JsonSchemaValue:
        return self._narrowed(schema, {"type": "string", "pattern": _DURATION})

    def uuid_schema(self, schema: Any) -> JsonSchemaValue:
        version = schema.get("version")
        return {"type": "string", "pattern": _versioned("[1-8]" if version is None else str(version))}

    def url_schema(self, schema: Any) -> JsonSchemaValue:
        schemes = "|".join(map(re.escape, schema.get("allowed_schemes") or ["https", "http"]))
        return {
            "type": "string",
            "pattern": f"^(?:{schemes})://{_HOST}{_REST}$",
            "maxLength": schema.get("max_length") or 2000,
        }

    def multi_host_url_schema(self, schema: Any) -> JsonSchemaValue:
        return self.url_schema(schema)

    def json_schema(self, schema: Any) -> JsonSchemaValue:
        self.too_wide["JSON inside of a text"] = None
        return super().json_schema(schema)

    # Functions

    def _function(self, schema: Any) -> None:
        function = schema.get("function", {}).get("function")
        function = getattr(function, "func", function)  # of a functools.partial
        module, name = getattr(function, "__module__", "") or "", getattr(function, "__qualname__", "a function")
        if not module.startswith("pydantic") or name == "import_string":
            self.unseen[f"{name} checks values besides the grammar"] = None

    def function_after_schema(self, schema: Any) -> JsonSchemaValue:
        self._function(schema)
        return super().function_after_schema(schema)

    def function_before_schema(self, schema: Any) -> JsonSchemaValue:
        self._function(schema)
        return super().function_before_schema(schema)

    def function_wrap_schema(self, schema: Any) -> JsonSchemaValue:
        self._function(schema)
        return super().function_wrap_schema(schema)

    def function_plain_schema(self, schema: Any) -> JsonSchemaValue:
        self._function(schema)
        return super().function_plain_schema(schema)


def schema_of(kind: Any) -> tuple[JsonSchemaValue, list[str], list[str]]:
    """The schema of a type, what of it is too wide, and what checks values besides it.

    Raises:
        PydanticUserError, TypeError, NameError: the type has none.
    """
    made: list[NarrowSchema] = []

    class Kept(NarrowSchema):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            made.append(self)

    schema = pydantic.TypeAdapter(kind).json_schema(schema_generator=Kept)
    return schema, [each for one in made for each in one.too_wide], [each for one in made for each in one.unseen]


FORMATS = {
    "base64": f"^(?:{BASE64})$",
    "base64url": r"^(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2}==|[A-Za-z0-9_-]{3}=)?$",
    **{f"uuid{version}": _versioned(str(version)) for version in range(1, 9)},
}
"""Formats that pydantic writes and JSON Schema does not have."""
PATTERNS = {r"^\s*(\d*\.?\d+)\s*(\w+)?": r"^[0-9]{1,9}(?:\.[0-9]{1,3})?(?:[KMGT]i?B)?$"}
"""Patterns that pydantic writes for what it reads less of: ``ByteSize``."""
