"""Parts of a rewritten JSON Schema that must hold together, in one schema."""

from __future__ import annotations

from typing import Any

from codespec.grammar.json import logic
from codespec.grammar.json.positions import UNIQUE

_ONLY_OBJECTS = frozenset({
    "properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties",
})  # fmt: skip
_ONLY_ARRAYS = frozenset({"items", "prefixItems", "minItems", "maxItems", UNIQUE})


def listing_all(options: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The alternatives, where a name that one of them lists is listed in all: then it cannot come twice in any."""
    names = {key: None for option in options for key in (*option.get("properties", ()), *option.get("required", ()))}
    found = []
    for option in options:
        rest = option.get("additionalProperties", True)
        if rest is not False and "patternProperties" not in option and "object" in logic.types_of(option):
            missing = dict.fromkeys((key for key in names if key not in option.get("properties", ())), rest)
            option = {**option, "properties": {**option.get("properties", {}), **missing}} if missing else option
        found.append(option)
    return found


def by_type(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The schema for objects, for arrays and for everything else, as far as it takes any."""
    written = schema.get("type", sorted(logic.TYPES))
    names = [written] if isinstance(written, str) else list(written)
    if "enum" in schema or "const" in schema:
        return [schema]
    rest = [name for name in names if name not in ("object", "array")]
    groups = [(["object"], _ONLY_ARRAYS), (["array"], _ONLY_OBJECTS), (rest, _ONLY_ARRAYS | _ONLY_OBJECTS)]
    return [
        {**{key: item for key, item in schema.items() if key not in drop}, "type": group}
        for group, drop in groups
        if group and set(group) <= set(names)
    ]


def joined(parts: list[dict[str, Any]]) -> dict[str, Any] | bool | None:
    """One schema for the values that satisfy all parts; None if these keywords have none, False if no value does."""
    out: dict[str, Any] = {}
    for part in parts:
        for keyword, value in part.items():
            if keyword in ("properties", "additionalProperties", "prefixItems", "items", logic.EVALUATES):
                continue
            if keyword not in out or out[keyword] == value:
                out[keyword] = value
            elif keyword == "required":
                out[keyword] = list(dict.fromkeys([*out[keyword], *value]))
            elif keyword == "type":
                out[keyword] = _common_types(out[keyword], value)
                if not out[keyword]:
                    return False
            elif keyword in ("minItems", "minLength"):
                out[keyword] = max(out[keyword], value)
            elif keyword in ("maxItems", "maxLength"):
                out[keyword] = min(out[keyword], value)
            else:
                out.setdefault("allOf", []).append({keyword: value})
    return None if "allOf" in out else _with_members(_with_items(out, parts), parts)


def _common_types(first: list[str] | str, second: list[str] | str) -> list[str]:
    mine, other = ([types] if isinstance(types, str) else types for types in (first, second))
    found = [name for name in mine if name in other or (name == "integer" and "number" in other)]
    return found + [name for name in other if name == "integer" and "number" in mine and name not in found]


def _with_items(out: dict[str, Any], parts: list[dict[str, Any]]) -> dict[str, Any]:
    """``out`` with the items of all parts; a part's ``items`` hold for what stands at the start in others."""
    longest = max(len(part.get("prefixItems", ())) for part in parts)
    if longest:
        out["prefixItems"] = [logic.both(*(logic.item_of(part, index) for part in parts)) for index in range(longest)]
    rest = logic.both(*(part.get("items", True) for part in parts))
    return out if rest is True else {**out, "items": rest}


def _with_members(out: dict[str, Any], parts: list[dict[str, Any]]) -> dict[str, Any] | None:
    """``out`` with the properties of all parts; a part's ``additionalProperties`` hold for those of the others."""
    closed = [part for part in parts if "additionalProperties" in part]
    patterns = any(part.get("patternProperties") for part in parts)
    if patterns and (len(parts) > 1 and any("additionalProperties" in part or "properties" in part for part in parts)):
        owners = [part for part in parts if _ONLY_OBJECTS & part.keys() - {"required"}]
        if len(owners) > 1:
            return None
    keys = dict.fromkeys(key for part in parts for key in part.get("properties", ()))
    if keys or any("properties" in part for part in parts):
        out["properties"] = {
            key: logic.both(*(part["properties"][key] for part in parts if key in part.get("properties", ())),
                            *(part["additionalProperties"] for part in closed if key not in part.get("properties", ())))
            for key in keys
        }  # fmt: skip
    if closed:
        out["additionalProperties"] = logic.both(*(part["additionalProperties"] for part in closed))
    return out
