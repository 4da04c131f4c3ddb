"""Each draft of JSON Schema is read by its own rules; the validator of that draft in ``jsonschema`` judges."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codespec.grammar import Grammar, GrammarError
from codespec.grammar.check import accepts_text

jsonschema = pytest.importorskip("jsonschema", reason="pip install jsonschema")

ADDRESSES = {
    4: "http://json-schema.org/draft-04/schema#",
    6: "http://json-schema.org/draft-06/schema#",
    7: "http://json-schema.org/draft-07/schema#",
    2019: "https://json-schema.org/draft/2019-09/schema",
    2020: "https://json-schema.org/draft/2020-12/schema",
}
STRING: dict[str, Any] = {"type": "string"}
# What drafts read differently, above all where reading too much into a schema takes too much: under not, oneOf and if.
SCHEMAS: list[dict[str, Any]] = [
    {"type": "array", "contains": {"const": 1}, "minContains": 0, "maxItems": 3},
    {"type": "array", "contains": {"const": 1}, "maxItems": 3, "not": {"minContains": 2}},
    {"oneOf": [{"$ref": "#/definitions/s", "maxLength": 2}, {**STRING, "minLength": 3}], "definitions": {"s": STRING}},
    {"not": {"$ref": "#/definitions/s", "maxLength": 2}, "definitions": {"s": STRING}},
    {"if": {"$ref": "#/definitions/s", "maxLength": 1}, "then": {"const": "a"}, "definitions": {"s": STRING}},
    {"not": {"const": 1}},
    {"not": {"if": {"const": 1}, "then": {"const": 2}, "else": {"const": 1}}},
    {"type": "object", "not": {"propertyNames": {"enum": ["a"]}}},
    {"type": "object", "not": {"dependentRequired": {"a": ["b"]}}, "required": ["a"]},
    {"type": "object", "dependencies": {"a": ["b"]}},
    {"oneOf": [{"prefixItems": [{"const": 1}]}, {"type": "array", "items": {"const": "a"}}]},
    {"type": "array", "items": [{"const": 1}], "additionalItems": {"const": 2}},
    {"type": "array", "items": {"const": 1}, "additionalItems": {"const": 2}},
    {"type": "array", "not": {"unevaluatedItems": {"const": 1}}, "maxItems": 2},
    {"type": "number", "minimum": 1, "exclusiveMinimum": True},
    {"type": "number", "exclusiveMinimum": 1},
    {"type": "object", "$defs": {"a": STRING}, "properties": {"a": {"$ref": "#/$defs/a"}}},
    {"$id": "http://x.y/s", "properties": {"a": {"$ref": "#n"}}, "$defs": {"n": {"$anchor": "n", "const": 1}}},
    {"properties": {"a": {"$ref": "#n"}}, "definitions": {"n": {"$id": "#n", "const": 1}}},
    {"properties": {"a": {"$ref": "#n"}}, "definitions": {"n": {"id": "#n", "const": 1}}},
    {"id": "http://x.y/s", "properties": {"a": {"$ref": "b"}}, "definitions": {"n": {"id": "b", **STRING}}},
    {"$id": "http://x.y/s", "properties": {"a": {"$ref": "b"}}, "definitions": {"n": {"$id": "b", **STRING}}},
    {"properties": {"a": {"$recursiveRef": "#"}}, "additionalProperties": False, "type": "object"},
    {"properties": {"a": {"$dynamicRef": "#n"}}, "$defs": {"n": {"$dynamicAnchor": "n", **STRING}}},
    {"type": "object", "properties": {"a": {"const": 1}, "b": {"not": {"contains": {"const": 1}}}}},
]
VALUES: list[Any] = [
    None, 1, 2, 0.5, "a", "ab", "abc", [], [1], [2], ["a"], [1, 1], [1, 2], [2, 1], [1, 3], ["a", 2], {}, {"a": 1},
    {"a": 2}, {"a": "a"}, {"b": 1}, {"a": 1, "b": 1}, {"a": {}}, {"a": {"a": {}}}, {"a": {"b": 1}}, {"b": [1]},
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema))
@pytest.mark.parametrize("draft", ADDRESSES)
def test_a_draft_is_read_by_its_own_rules(draft: int, schema: dict[str, Any]) -> None:
    schema = {"$schema": ADDRESSES[draft], **schema}
    kind = jsonschema.validators.validator_for(schema)
    try:
        kind.check_schema(schema)
        valid = [kind(schema).is_valid(value) for value in VALUES]
    except Exception:  # what is no schema of the draft, or refers to what it does not know
        with pytest.raises(GrammarError):
            Grammar.from_json_schema(json.dumps(schema))
        return
    grammar = _grammar(schema)
    if grammar is None:
        return
    taken = [accepts_text(grammar, json.dumps(value, separators=(",", ":"))).accepted for value in VALUES]
    if "dependencies" in schema:  # no keyword of the newer drafts, but still read
        valid = [valid[at] and accepted for at, accepted in enumerate(taken)]
        assert not taken[VALUES.index({"a": 1})]
    assert taken == valid


def _grammar(schema: dict[str, Any]) -> Grammar | None:
    """The grammar; None where it is refused by name."""
    try:
        return Grammar.from_json_schema(json.dumps(schema))
    except GrammarError as error:
        named = error.cause.startswith(("/", "no value satisfies"))
    assert named
    return None


WORDS = [
    "default",
    "const",
    "enum",
    "examples",
    "$ref",
    "$id",
    "properties",
    "items",
    "not",
    "type",
    "pattern",
    "$defs",
]


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("draft", ADDRESSES)
def test_a_property_may_be_called_like_a_keyword(draft: int, word: str) -> None:
    identifier = "id" if draft == 4 else "$id"
    anchor = {"$anchor": "n"} if draft > 2000 else {identifier: "#n"}
    schema = {
        "$schema": ADDRESSES[draft],
        identifier: "http://x.y/s",
        "type": "object",
        "properties": {word: {"$ref": "#n"}},
        "required": [word],
        "definitions": {word: {**anchor, "type": "integer"}},
    }
    grammar = Grammar.from_json_schema(json.dumps(schema))
    valid, invalid = {word: 1}, {word: "a"}
    assert accepts_text(grammar, json.dumps(valid)).accepted
    assert not accepts_text(grammar, json.dumps(invalid)).accepted


# Constants, defaults and the like are values, whatever they look like.
DATA = {"$ref": "#/nowhere", "$id": "http://x.y/z", "$anchor": "a", "type": "object", "properties": {"a": 1}}


@pytest.mark.parametrize("word", ["const", "enum", "default", "examples", "x-mine", "unknown"])
def test_data_is_no_schema(word: str) -> None:
    value = [DATA] if word in ("enum", "examples") else DATA
    schema = {"properties": {"p": {word: value}, "q": {"$ref": "#a"}}, "$defs": {"d": {"$anchor": "a", "const": 1}}}
    grammar = Grammar.from_json_schema(json.dumps(schema))
    assert accepts_text(grammar, json.dumps({"p": DATA, "q": 1})).accepted
    assert accepts_text(grammar, json.dumps({"p": 1})).accepted == (word not in ("const", "enum"))
    assert not accepts_text(grammar, json.dumps({"q": 2})).accepted


def test_an_embedded_schema_has_a_draft_of_its_own() -> None:
    inner: dict[str, Any] = {"$schema": ADDRESSES[7], "$id": "http://x.y/seven", "definitions": {"s": STRING}}
    schema = {"$schema": ADDRESSES[2020], "properties": {"a": {"$ref": "http://x.y/seven"}}, "$defs": {"i": inner}}
    inner["$ref"], inner["maxLength"] = "#/definitions/s", 2
    inner.pop("$id")
    with pytest.raises(GrammarError, match=r"no address of its own|outside"):
        Grammar.from_json_schema(json.dumps(schema))
    inner |= {"$id": "http://x.y/seven", "allOf": [{"$ref": "#/definitions/s", "maxLength": 2}]}
    del inner["$ref"], inner["maxLength"]
    grammar = Grammar.from_json_schema(json.dumps(schema))
    assert accepts_text(grammar, '{"a":"abc"}').accepted
    assert not accepts_text(grammar, '{"a":1}').accepted
    assert "/$defs/i/allOf/0/maxLength: ignored beside $ref, as draft 7 says" in grammar.warnings[0]


@pytest.mark.parametrize(
    ("schema", "cause"),
    [
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, "draft-03"),
        ({"properties": {"a": {"$schema": ADDRESSES[4]}}}, "no address of its own"),
        ({"$schema": ADDRESSES[2020], "items": [True]}, "write prefixItems"),
        ({"$schema": ADDRESSES[4], "minimum": 1, "exclusiveMinimum": 1}, "true or false in draft 4"),
        ({"$schema": ADDRESSES[6], "minimum": 1, "exclusiveMinimum": True}, "must be a number"),
        ({"$ref": "a", "$defs": {n: {"$id": "a", "const": n} for n in "bc"}}, "names several schemas"),
        ({"$id": "http://x.y/", "$ref": "http://["}, "is no address"),
    ],
)
def test_what_no_draft_allows(schema: dict[str, Any], cause: str) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.from_json_schema(json.dumps(schema))
    assert cause in str(caught.value)


def test_an_unknown_dialect_is_a_warning() -> None:
    grammar = Grammar.from_json_schema('{"$schema": "http://x.y/mine", "type": "null"}', "s")
    assert grammar.warnings == ("s: /$schema: an unknown dialect, read as draft 2020-12",)
