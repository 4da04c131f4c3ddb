"""``oneOf``, ``not`` and ``if``: by example, and against ``jsonschema`` for every value of a small universe."""

from __future__ import annotations

import json
import random

import pytest

from codespec.grammar import Grammar, GrammarError
from codespec.grammar.check import accepts_text
from tests.grammar.json import json_judge

jsonschema = pytest.importorskip("jsonschema", reason="pip install jsonschema")

CLOSED = {"additionalProperties": False}

# (schema, valid texts, invalid texts)
CASES = [
    (
        {"oneOf": [{"type": "object", "properties": {key: True}, **CLOSED} for key in "ab"]},
        ['{"a":1}', '{"b":1}'],
        ["{}", '{"a":1,"b":1}', "1"],
    ),
    (
        {"oneOf": [{"items": {"type": kind}, "type": "array"} for kind in ("string", "number")]},
        ['["a","b"]', "[1,2]"],
        ["[]", '["a",1]'],
    ),
    (
        {
            "allOf": [
                {"required": ["k"], "type": "object"},
                {"oneOf": [{"properties": {"k": {"const": n}}} for n in (1, 2)]},
            ]
        },
        ['{"k":1}', '{"k":2}'],
        ["{}", '{"k":3}'],
    ),
    (
        {"not": {"const": {"a": 1}}, "type": "object", "properties": {"a": True}, **CLOSED},
        ["{}", '{"a":2}'],
        ['{"a":1}', '{"b":1}'],
    ),
    (
        {
            "oneOf": [
                {"type": "object", "required": ["$ref"], "patternProperties": {"^\\$ref$": {"type": "string"}}},
                {"type": "object", "additionalProperties": {"type": "object"}},
            ]
        },
        ['{"$ref":"a"}', '{"a":{}}', "{}", '{"$ref":{}}'],
        ['{"a":1}', '{"$ref":1}'],
    ),
    (
        {"oneOf": [{"enum": ["inherit"]}, {"type": "string", "pattern": "^\\$"}]},
        ['"inherit"', '"$x"'],
        ['"x"', "1"],
    ),
    (
        {
            "anyOf": [{"prefixItems": [True, {"const": 1}], "required": ["a"]}, {"prefixItems": [True], "minItems": 1}],
            "items": {"type": "string"},
            "type": "array",
        },
        ['["a"]'],
        ["[1]"],
    ),
    (
        {
            "allOf": [
                {"anyOf": [{"allOf": [{"prefixItems": [True]}, {"required": ["a"]}]}, {"prefixItems": [True]}]},
                {"items": {"type": "string"}},
            ],
            "type": "array",
        },
        ['["a"]', '["a","b"]'],
        ["[1]", '["a",1]'],
    ),
    (  # what is allowed is said after what must not be together
        {
            "additionalProperties": False,
            "allOf": [{"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}],
            "properties": {"a": True, "b": True},
        },
        ['{"a":1}', '{"b":1}'],
        ["{}", '{"a":1,"b":1}', "1"],
    ),
]


@pytest.mark.parametrize(("schema", "valid", "invalid"), CASES)
def test_what_is_taken(schema: object, valid: list[str], invalid: list[str]) -> None:
    grammar, check = Grammar.from_json_schema(json.dumps(schema)), jsonschema.Draft202012Validator(schema)
    assert [text for text in valid if not accepts_text(grammar, text).accepted] == []
    assert [text for text in invalid if accepts_text(grammar, text).accepted] == []
    assert all(check.is_valid(json.loads(text)) for text in valid)
    assert not any(check.is_valid(json.loads(text)) for text in invalid)


def test_keywords_that_the_schemas_own_draft_does_not_know() -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "unevaluatedProperties": False}
    grammar = Grammar.from_json_schema(json.dumps(schema), "s")
    assert accepts_text(grammar, '{"a":1}').accepted
    assert grammar.warnings == ("s: /unevaluatedProperties: ignored, as draft 7 has no such keyword",)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    grammar = Grammar.from_json_schema(json.dumps(schema), "s")
    assert not accepts_text(grammar, '{"a":1}').accepted
    assert not grammar.warnings


@pytest.mark.parametrize("start", range(0, 400, 100))
def test_every_small_value_is_judged_rightly(start: int) -> None:
    values = json_judge.small_values()
    enforced, wrong = 0, []
    for seed in range(start, start + 100):
        rng = random.Random(seed)
        schema = json_judge.shuffled(json_judge.alternatives(rng), rng)
        check = jsonschema.Draft202012Validator(schema)
        try:
            grammar = Grammar.from_json_schema(json.dumps(schema))
        except GrammarError as error:
            if "no value satisfies" in error.cause:
                wrong += [(seed, schema, value) for value in values if check.is_valid(value)]
            continue
        enforced += 1
        for value in values:
            taken = any(accepts_text(grammar, text).accepted for text in json_judge.texts(value))
            if taken != check.is_valid(value):
                wrong.append((seed, schema, value))
    assert wrong == []
    assert enforced > 30
