"""Python types as JSON Schemas: whatever pydantic makes a schema of."""

from __future__ import annotations

import json
from typing import Any

from codespec.extras import remedy
from codespec.grammar.errors import OR_IGNORE, GrammarError, one_line
from codespec.grammar.json.refs import References
from codespec.protocols import CodespecError


def schema_of(kind: Any, lenient: bool = False) -> tuple[str, list[str]]:
    """The JSON Schema of a Python type, and warnings.

    Types are pydantic models, dataclasses, TypedDict, NamedTuple, Enum, Literal, and what ``typing`` builds of those
    and of str, int, float, bool, None, list, dict, tuple, date and time. Objects with named fields have no others,
    unless the type says so (pydantic's ``extra="allow"``).

    Raises:
        CodespecError: pydantic is not installed.
        GrammarError: the type has no schema, or pydantic reads less than one can say (with ``lenient`` a warning).
    """
    try:
        import pydantic

        from codespec.grammar import pydantic_schema
    except ImportError:
        raise CodespecError(f"grammars of Python types need pydantic, which is missing: {remedy('types')}") from None
    try:
        schema, too_wide, unseen = pydantic_schema.schema_of(kind)
    except (pydantic.errors.PydanticUserError, TypeError, NameError) as error:
        cause = one_line(str(error).split("\n")[0], 200)
        raise GrammarError(type_name(kind), f"no schema for this type: {cause}", "use plain data types") from None
    if too_wide and not lenient:
        raise GrammarError(type_name(kind), f"{too_wide[0]} cannot be enforced", f"use a plainer type{OR_IGNORE}")
    _close(schema, pydantic_schema.FORMATS, pydantic_schema.PATTERNS)
    return json.dumps(schema), [*(f"{each}: ignored" for each in too_wide), *unseen]


def type_name(kind: Any) -> str:
    """How messages call a type."""
    name = getattr(kind, "__name__", None)
    return name if isinstance(name, str) and not getattr(kind, "__args__", None) else one_line(str(kind), 60)


def _close(schema: Any, formats: dict[str, str], patterns: dict[str, str]) -> None:
    """Give objects with named fields no others, texts of some formats their patterns, and some patterns better ones."""
    for node, _ in References(schema).schemas():
        if node.get("type") == "object" and isinstance(node.get("properties"), dict):
            node.setdefault("additionalProperties", False)
        if isinstance(node.get("pattern"), str):
            node["pattern"] = patterns.get(node["pattern"], node["pattern"])
        pattern = formats.get(node["format"]) if isinstance(node.get("format"), str) else None
        if pattern is not None:
            node["allOf"] = [*node.get("allOf", ()), {"pattern": pattern}]
            del node["format"]
