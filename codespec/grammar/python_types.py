"""Python types as JSON Schemas: whatever pydantic makes a schema of."""

from __future__ import annotations

import json
from typing import Any

from codespec.grammar.errors import GrammarError, one_line
from codespec.protocols import CodespecError

# pydantic's pattern for decimal numbers begins with a look-ahead that asks for a digit; this one asks for it without.
_DECIMAL, _DECIMAL_REWRITTEN = r"(?!^[-+.]*$)[+-]?0*\d*\.?\d*", r"[+-]?(?:\d+\.?\d*|\.\d+)"


def schema_of(kind: Any) -> str:
    """The JSON Schema of a Python type: a pydantic model, dataclass, TypedDict, NamedTuple, Enum, Literal, or what
    ``typing`` builds of those and of str, int, float, bool, None, list, dict, tuple, date and time. Objects with named
    fields have no others, unless the type says so (pydantic's ``extra="allow"``).

    Raises:
        CodespecError: pydantic is not installed.
        GrammarError: the type has no schema.
    """
    try:
        import pydantic
    except ImportError:
        remedy = "pip install pydantic (or codespec[types])"
        raise CodespecError(f"grammars of Python types need pydantic, which is not installed; {remedy}") from None
    try:
        schema = pydantic.TypeAdapter(kind).json_schema()
    except (pydantic.errors.PydanticUserError, TypeError, NameError) as error:
        cause = one_line(str(error).split("\n")[0], 200)
        raise GrammarError(type_name(kind), f"no schema for this type: {cause}", "use plain data types") from None
    return json.dumps(_prepared(schema))


def type_name(kind: Any) -> str:
    """How messages call a type."""
    name = getattr(kind, "__name__", None)
    return name if isinstance(name, str) and not getattr(kind, "__args__", None) else one_line(str(kind), 60)


def _prepared(node: Any) -> Any:
    if isinstance(node, list):
        return [_prepared(item) for item in node]
    if not isinstance(node, dict):
        return node
    made = {key: _prepared(item) for key, item in node.items()}
    if isinstance(made.get("pattern"), str):
        made["pattern"] = made["pattern"].replace(_DECIMAL, _DECIMAL_REWRITTEN)
    if made.get("type") == "object" and isinstance(made.get("properties"), dict):
        made.setdefault("additionalProperties", False)
    return made
