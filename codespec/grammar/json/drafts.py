"""The drafts of JSON Schema: which keywords each knows, and where in their values schemas stand.

A value that is no schema may look like one: a constant, a default, the name of a property. Every walk over schemas
goes by these tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Any, NamedTuple


class Holds(Enum):
    """What a keyword's value holds."""

    DATA = auto()
    SCHEMA = auto()
    LIST = auto()
    MAP = auto()
    SCHEMA_OR_LIST = auto()
    MAP_OF_SCHEMAS_OR_NAMES = auto()


class Draft(NamedTuple):
    """One draft.

    Attributes:
        name: in messages.
        keywords: those it knows.
        identifier: the keyword that names a schema.
        ref_alone: beside ``$ref`` nothing counts.
        declared: a schema said that it is of this draft. Otherwise what older ones wrote is read as well.
    """

    name: str
    keywords: Mapping[str, Holds]
    identifier: str = "$id"
    ref_alone: bool = False
    declared: bool = True

    def identifier_of(self, node: Mapping[str, Any]) -> str | None:
        """The name that a schema has."""
        found = node.get(self.identifier)
        return found if isinstance(found, str) and not (self.ref_alone and "$ref" in node) else None

    def anchors_of(self, node: Mapping[str, Any]) -> list[str]:
        """The names that a schema has inside of the one around it."""
        if self.ref_alone:
            name = self.identifier_of(node) or ""
            return [name[1:]] if name.startswith("#") and len(name) > 1 else []
        words = ("$anchor", "$dynamicAnchor") if "$dynamicAnchor" in self.keywords else ("$anchor",)
        return [node[word] for word in words if isinstance(node.get(word), str)]


def _words(text: str) -> dict[str, Holds]:
    return dict.fromkeys(text.split(), Holds.DATA)


_4: dict[str, Holds] = {
    **_words(
        "$schema id $ref title description default format type enum multipleOf maximum exclusiveMaximum minimum"
        " exclusiveMinimum maxLength minLength pattern maxItems minItems uniqueItems maxProperties minProperties"
        " required"
    ),
    **dict.fromkeys(["additionalItems", "additionalProperties", "not"], Holds.SCHEMA),
    **dict.fromkeys(["allOf", "anyOf", "oneOf"], Holds.LIST),
    **dict.fromkeys(["properties", "patternProperties", "definitions"], Holds.MAP),
    "items": Holds.SCHEMA_OR_LIST,
    "dependencies": Holds.MAP_OF_SCHEMAS_OR_NAMES,
}
_6 = {word: holds for word, holds in _4.items() if word != "id"} | {
    **_words("$id const examples"),
    "contains": Holds.SCHEMA,
    "propertyNames": Holds.SCHEMA,
}
_7 = _6 | {
    **_words("$comment readOnly writeOnly contentEncoding contentMediaType"),
    **dict.fromkeys(["if", "then", "else"], Holds.SCHEMA),
}
# "dependencies" and "definitions" have no meaning any more, but are still in use: validators may read them.
_2019 = _7 | {
    **_words("$anchor $recursiveRef $recursiveAnchor $vocabulary deprecated dependentRequired minContains maxContains"),
    **dict.fromkeys(["unevaluatedItems", "unevaluatedProperties", "contentSchema"], Holds.SCHEMA),
    **dict.fromkeys(["$defs", "dependentSchemas"], Holds.MAP),
}
_2020 = {word: holds for word, holds in _2019.items() if not word.startswith("$rec") and word != "additionalItems"} | {
    **_words("$dynamicRef $dynamicAnchor"),
    "prefixItems": Holds.LIST,
    "items": Holds.SCHEMA,
}

DRAFT_7 = Draft("draft 7", _7, ref_alone=True)
DRAFTS = {
    "4": Draft("draft 4", _4, "id", ref_alone=True),
    "6": Draft("draft 6", _6, ref_alone=True),
    "7": DRAFT_7,
    "2019": Draft("draft 2019-09", _2019),
    "2020": Draft("draft 2020-12", _2020),
}
DEFAULT = Draft(
    "draft 2020-12",
    {**_2020, "items": Holds.SCHEMA_OR_LIST, "additionalItems": Holds.SCHEMA},
    declared=False,
)
"""Of schemas that name none."""

KNOWN = frozenset().union(*(draft.keywords for draft in DRAFTS.values()))
"""The keywords of all drafts."""

_META_SCHEMA = re.compile(r"https?://json-schema\.org/draft(?:-0|/)(\d+)(?:-\d+)?/(?:hyper-)?schema#?")


class UnknownDraft(ValueError):
    """``$schema`` names a draft that is not read here."""


def draft_of(node: Any, around: Draft) -> Draft:
    """The draft that a schema's ``$schema`` names; ``around`` where it names none, or a dialect of its own.

    Raises:
        UnknownDraft: it is one of json-schema.org's, but none of the five.
    """
    uri = node.get("$schema") if isinstance(node, dict) else None
    match = _META_SCHEMA.fullmatch(uri) if isinstance(uri, str) else None
    if match is None:
        return around
    if match[1] not in DRAFTS:
        raise UnknownDraft(uri)
    return DRAFTS[match[1]]


def names_dialect(node: Any) -> bool:
    """Whether a schema names a dialect that is none of the drafts."""
    uri = node.get("$schema") if isinstance(node, dict) else None
    newest = ("http://json-schema.org/schema", "http://json-schema.org/schema#", "https://json-schema.org/schema")
    return isinstance(uri, str) and _META_SCHEMA.fullmatch(uri) is None and uri not in newest


def subschemas(node: Mapping[str, Any], draft: Draft) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """What a schema's keywords hold that may be schemas, with the way there."""
    for keyword, value in node.items():
        holds = draft.keywords.get(keyword, Holds.DATA)
        if isinstance(value, list) and holds in (Holds.LIST, Holds.SCHEMA_OR_LIST):
            for index, item in enumerate(value):
                yield (keyword, index), item
        elif isinstance(value, dict) and holds in (Holds.MAP, Holds.MAP_OF_SCHEMAS_OR_NAMES):
            for key, item in value.items():
                if not isinstance(item, list):
                    yield (keyword, key), item
        elif holds in (Holds.SCHEMA, Holds.SCHEMA_OR_LIST):
            yield (keyword,), value
