"""JSON Schema: keyword by keyword, what is refused, and random schemas with ``jsonschema`` as the judge."""

from __future__ import annotations

import itertools
import json
import random

import pytest

from codespec.grammar import Grammar, GrammarError
from codespec.grammar.check import accepts_text
from tests.grammar.json import json_judge

jsonschema = pytest.importorskip("jsonschema", reason="pip install jsonschema")

CLOSED = {"additionalProperties": False}
# (schema, valid texts, invalid texts); texts keep the order of the schema's properties.
KEYWORDS = [
    (True, ["1", "null", "{}"], ["", "x"]),
    ({}, ["[1, {}]"], ["[1,]"]),
    ({"type": "null"}, ["null"], ["0"]),
    ({"type": ["integer", "number"]}, ["1", "1.5"], ['"1"']),
    ({"enum": [1, "a", None, [1, 2], {"b": True}]}, ["1", '"a"', "null", "[1,2]", '{"b":true}'], ["2", "true", "{}"]),
    ({"const": 1.5}, ["1.5"], ["1", "1.50001"]),
    ({"const": {"a": [False]}}, ['{"a":[false]}'], ['{"a":[0]}', "{}"]),
    ({"type": "integer", "multipleOf": 3, "minimum": -3}, ["-3", "0", "9"], ["-6", "1", "4"]),
    ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, ["0.5"], ["0", "0.0", "1", "1.0", "-0.5"]),
    ({"type": "number", "exclusiveMinimum": 0, "maximum": 0.5}, ["0.5", "0.1"], ["0", "-0", "0.0", "0.6"]),
    ({"type": "number", "minimum": -1.5, "exclusiveMaximum": -1}, ["-1.5", "-1.1"], ["-1", "-1.0", "-2"]),
    ({"type": "number", "minimum": 0, "exclusiveMinimum": 0, "maximum": 0.5}, ["0.5"], ["0"]),
    ({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 2}, ["1"], ["0", "2"]),
    ({"type": "number", "minimum": 3, "exclusiveMinimum": True}, ["4", "3.1"], ["3", "3.0"]),  # draft 4
    ({"minLength": 2.0, "type": "string"}, ['"ab"'], ['"a"']),
    ({"type": "string", "maxLength": 1}, ['""', '"é"', '"😀"', '"\\n"'], ['"ab"']),
    ({"type": "string", "pattern": "a|^b"}, ['"xa"', '"b"'], ['"xb"']),
    ({"type": "string", "pattern": "^[[a&&]$"}, ['"["', '"&"'], ['"b"']),
    ({"type": "string", "pattern": "^.\\s\\/$"}, ['"a /"', '"a\ufeff/"'], ['"\\n /"', '"\u2028 /"']),
    ({"type": "string", "pattern": "^a*?b$"}, ['"b"', '"aab"'], ['"abb"']),
    ({"items": {"type": "integer"}, "type": "array", "minItems": 1, "maxItems": 2}, ["[1]", "[1,2]"], ["[]", '["a"]']),
    ({"prefixItems": [{"const": 1}], "items": False, "type": "array"}, ["[]", "[1]"], ["[2]", "[1,1]"]),
    ({"items": [{"const": 1}], "additionalItems": {"const": 2}, "type": "array"}, ["[1,2,2]"], ["[1,1]"]),  # 2019-09
    ({"items": {"const": 1}, "additionalItems": False, "type": "array"}, ["[1,1]"], ["[2]"]),  # no keyword of 2020-12
    ({"contains": {"const": 1}, "maxItems": 2, "type": "array"}, ["[1]", "[0,1]"], ["[]", "[0]", "[0,0]"]),
    ({"contains": {"const": 1}, "minContains": 0}, ["[]", "[2]"], []),
    ({"uniqueItems": False}, ["[1,1]"], []),
    ({"uniqueItems": True, "maxItems": 1, "type": "array"}, ["[]", "[1]"], ["[1,2]"]),
    ({"properties": {"a": {"type": "integer"}}}, ['{"a":1,"b":2}', "3"], ['{"a":"x"}', '{"\\u0061":"x"}']),
    ({"type": "object", "required": ["a"], "properties": {"a": {}}}, ['{"a":1}', '{"a":1,"b":1}'], ["{}", '{"b":1}']),
    ({"type": "object", "additionalProperties": False, "properties": {"a": True}}, ['{"a":1}'], ['{"b":1}']),
    ({"patternProperties": {"^a": {"type": "null"}}}, ['{"ab":null,"b":1}'], ['{"ab":1}', '{"\\u0061b":1}']),
    ({"propertyNames": {"pattern": "^a"}, "type": "object"}, ["{}", '{"ab":1}'], ['{"b":1}']),
    ({"propertyNames": {"maxLength": 1}, "type": "object"}, ['{"b":1}'], ['{"ab":1}']),
    ({"propertyNames": {"enum": ["a", "b"]}, "type": "object"}, ['{"a":1,"b":1}'], ['{"c":1}']),
    ({"propertyNames": False, "type": "object"}, ["{}"], ['{"c":1}']),
    ({"propertyNames": {"allOf": [False]}, "type": "object"}, ["{}"], ['{"c":1}']),
    ({"propertyNames": {"$ref": "#/$defs/no"}, "$defs": {"no": False}, "type": "object"}, ["{}"], ['{"c":1}']),
    ({"propertyNames": {"allOf": [True, {"maxLength": 1}]}, "type": "object"}, ['{"c":1}'], ['{"cc":1}']),
    ({"type": "object", "minProperties": 1}, ['{"a":1}'], ["{}"]),
    ({"type": "object", "maxProperties": 0, "properties": {"a": True}}, ["{}"], ['{"a":1}', '{"b":1}']),
    (
        {"type": "object", "minProperties": 1, "maxProperties": 2, "properties": {"a": True, "b": True}, **CLOSED},
        ['{"a":1}', '{"b":1}', '{"a":1,"b":1}'],
        ["{}", '{"c":1}'],
    ),
    (
        {"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}},
        ['{"a":1,"b":2}', '{"a":1,"b":2,"c":3}'],
        ['{"a":1,"a":2}', '{"a":1}', '{"a":1,"\\u0061":2}'],
    ),
    ({"type": "object", "not": {"maxProperties": 1}}, ['{"a":1,"b":2}'], ['{"a":1,"a":2}', "{}"]),
    (
        {"type": "object", "propertyNames": {"pattern": "^[ab]", "maxLength": 2}},
        ['{"a":1,"ba":2}'],
        ['{"c":1}', '{"abc":1}'],
    ),
    ({"type": "object", "minProperties": 2, "required": ["a", "b"]}, ['{"a":1,"b":1,"c":1}'], ['{"a":1}']),
    ({"dependentRequired": {"a": ["b"]}, "type": "object"}, ["{}", '{"b":1}', '{"a":1,"b":2}'], ['{"a":1}']),
    ({"dependencies": {"a": ["b"]}, "type": "object"}, ["{}", '{"a":1,"b":2}'], ['{"a":1}']),
    (
        {"dependentSchemas": {"a": {"properties": {"b": {"const": 1}}}}, "type": "object"},
        ['{"b":2}', '{"b":1,"a":0}'],
        ['{"b":2,"a":0}', '{"a":0,"b":2}'],
    ),
    ({"allOf": [{"minimum": 1}, {"maximum": 2}], "type": "integer"}, ["1", "2"], ["0", "3"]),
    ({"anyOf": [{"const": 1}, {"type": "string"}]}, ["1", '"a"'], ["2"]),
    ({"oneOf": [{"type": "integer", "minimum": 2}, {"type": "integer", "maximum": 3}]}, ["1", "4"], ["2", "3"]),
    ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"}, ['{"a":1}'], ["{}", '{"a":1,"b":1}']),
    (
        {"oneOf": [{"properties": {k: {"const": None}}, "required": [k], "additionalProperties": False} for k in "ab"]},
        ['{"a":null}', '{"b":null}'],
        ["1", "{}", '{"a":1}', '{"a":null,"b":null}'],
    ),
    ({"not": {"type": ["null", "boolean"]}}, ["1", "{}"], ["null", "true"]),
    ({"not": {"enum": ["a", "ab", 1]}}, ['""', '"b"', '"abc"', "2", "1.5"], ['"a"', '"ab"', "1"]),
    ({"not": {"required": ["a"]}, "type": "object"}, ['{"b":1}'], ['{"a":1}']),
    ({"not": {"minLength": 2}, "type": "string"}, ['"a"'], ['"ab"']),
    ({"not": {"pattern": "^a|b$"}}, ['"ba"', '"c"'], ['"a"', '"cb"', "1"]),
    ({"if": {"pattern": "a"}, "then": {"maxLength": 2}}, ['"a"', '"bbb"', "1"], ['"aaa"', '"bab"']),
    ({"oneOf": [{"pattern": "a"}, {"pattern": "b"}]}, ['"a"', '"b"'], ['"ab"', '"c"', "1"]),
    ({"type": "string", "oneOf": [{"pattern": "^a"}, {"pattern": "^b"}]}, ['"a"', '"ba"'], ['"c"']),
    (
        {
            "properties": {"kind": {"enum": ["a", "b"]}},
            "required": ["kind"],
            "type": "object",
            "if": {"properties": {"kind": {"const": "a"}}},
            "then": {"properties": {"n": {"type": "integer"}}, "required": ["n"]},
            "else": {"properties": {"s": {"type": "string"}}, "required": ["s"]},
        },
        ['{"kind":"a","n":1}', '{"kind":"b","s":"x"}', '{"kind":"b","s":"x","n":"no"}'],
        ['{"kind":"a","s":"x"}', '{"kind":"b","n":1}', '{"kind":"c","n":1}'],
    ),
    ({"then": False}, ["1"], []),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}}, ["null"], ["1"]),
    ({"$ref": "#/$defs/a%25~1b", "$defs": {"a%/b": {"type": "null"}}}, ["null"], ["1"]),
    ({"$ref": "#x", "$defs": {"a": {"$anchor": "x", "type": "null"}}}, ["null"], ["1"]),
    ({"$id": "http://a.b/c", "$ref": "d", "$defs": {"a": {"$id": "d", "type": "null"}}}, ["null"], ["1"]),
    ({"$ref": "#/$defs/a", "maximum": 2, "$defs": {"a": {"type": "integer"}}}, ["2"], ["3", "1.5"]),
    (
        {"properties": {"next": {"$ref": "#"}}, "additionalProperties": False, "type": "object"},
        ["{}", '{"next":{"next":{}}}'],
        ['{"next":1}'],
    ),
    (
        {"allOf": [{"properties": {"a": True}}], "properties": {"b": True}, "unevaluatedProperties": False},
        ["{}", '{"a":1,"b":1}', "1"],
        ['{"c":1}'],
    ),
    (
        {
            "type": "object",
            "anyOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]}, {"properties": {"b": {"const": 2}}}],
            "unevaluatedProperties": False,
        },
        ['{"a":1}', '{"b":2}', '{"a":1,"b":2}'],
        ['{"a":2}', '{"c":1}', '{"a":1,"c":1}'],
    ),
    ({"prefixItems": [True], "unevaluatedItems": False, "type": "array"}, ["[]", "[1]"], ["[1,2]"]),
    ({"type": "integer", "format": "int32"}, ["1"], ["1.5"]),
    ({"deprecated": True, "x-mine": 1, "$comment": "c", "unknown": 3}, ["1"], []),
    ({"title": "t", "description": "d", "examples": [1], "default": 2, "type": "null"}, ["null"], ["2"]),
]  # fmt: skip

# (schema, where, part of the cause): refused unless lenient.
REFUSED = [
    ({"contains": {"const": 1}}, "/contains", "contains cannot be enforced"),
    ({"not": {"format": "date"}}, "/not", "no opposite"),
    ({"if": {"format": "date"}, "then": {"maxLength": 2}}, "/if", "a condition without an opposite"),
    ({"oneOf": [{"format": "date"}, {"pattern": "b"}]}, "/oneOf", "may hold together"),
    ({"oneOf": [{"type": "string", "format": "date"}, {"const": "b"}]}, "/oneOf", "may hold together"),
    ({"pattern": "((?!a)|b)*"}, "/pattern", "looks around"),
    ({"pattern": "(a)\\1"}, "/pattern", "back-reference \\1 is not supported (character 4)"),
    ({"patternProperties": {"\\ba": True}}, "/patternProperties/\\ba", "word boundary"),
    (
        {"oneOf": [{"required": ["a"], "additionalProperties": {"type": "null"}}, {"maxProperties": 1}]},
        "/oneOf",
        "may hold together",
    ),
    ({"minimum": 1e30}, "/minimum", "beyond 2^53"),
    ({"const": 2**53 + 1}, "/const", "beyond 2^53"),
    ({"multipleOf": 0.123456789012}, "/multipleOf", "too many digits"),
    ({"allOf": [{"multipleOf": 65537}, {"multipleOf": 65539}]}, "/allOf/1/multipleOf", "can overflow"),
    (
        {"$dynamicRef": "#a", "$defs": {n: {"$id": n, "$dynamicAnchor": "a"} for n in "bc"}, "$dynamicAnchor": "a"},
        "/$dynamicRef",
        "several meanings",
    ),
    ({"propertyNames": {"format": "email"}}, "/propertyNames", "cannot be enforced"),
    (
        {"$defs": {"n": {"pattern": "^a", "propertyNames": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"},
        "/$defs/n/propertyNames",
        "cannot be enforced",
    ),
    ({"contains": {"const": 1}, "maxItems": 2, "unevaluatedItems": False}, "/unevaluatedItems", "cannot be enforced"),
    ({"type": "object", "properties": {"a": True}, "minProperties": 2}, "/minProperties", "optional properties"),
    ({"properties": {"a": True}, "maxProperties": 1}, "/maxProperties", "optional properties"),
    ({"properties": {"a": True}, "allOf": [{"minProperties": 2}]}, "/", "min/maxProperties only supported"),
]

# (schema, where, part of the message): no schema, whatever is ignored.
WRONG = [
    ({"minLength": float("inf")}, "/minLength", "whole number"),
    ({"x-guidance": 5}, "/x-guidance", "must be an object"),
    ({"$ref": "#/prefixItems/²", "prefixItems": [True]}, "/$ref", "does not exist"),
    ({"type": "strin"}, "/type", "unknown type 'strin'; did you mean 'string'?"),
    ({"type": 1}, "/type", "must be a list of names"),
    ({"minLength": -1}, "/minLength", "must be a whole number from 0"),
    ({"minLength": True}, "/minLength", "must be a whole number from 0"),
    ({"maximum": "3"}, "/maximum", "must be a number"),
    ({"multipleOf": 0}, "/multipleOf", "must be more than 0"),
    ({"required": True}, "/required", "must be a list of names"),
    ({"properties": {"a": 3}}, "/properties/a", "a schema is an object, true or false"),
    ({"properties": []}, "/properties", "must be an object"),
    ({"anyOf": {}}, "/anyOf", "must be a list of schemas"),
    ({"enum": 1}, "/enum", "must be a list of values"),
    ({"pattern": 1}, "/pattern", "must be a regular expression"),
    ({"$ref": "https://example.com/s.json"}, "/$ref", "is outside the schema; copy that schema into $defs"),
    ({"$ref": "#/$defs/a"}, "/$ref", "#/$defs/a does not exist; define it"),
    ({"$ref": "#a"}, "/$ref", "there is no anchor 'a'"),
    ({"$ref": "#"}, "/", "the reference leads to itself"),
    ({"$ref": 1}, "/$ref", "must be a reference"),
    (False, "", "no value satisfies the schema"),
    ({"type": "object", "properties": {"a": False}, "required": ["a"]}, "/", "no value satisfies the schema"),
    ({"enum": []}, "/enum", "no value satisfies the schema"),
]


@pytest.mark.parametrize(("schema", "valid", "invalid"), KEYWORDS, ids=lambda value: json.dumps(value)[:50])
def test_keywords(schema: object, valid: list[str], invalid: list[str]) -> None:
    grammar = Grammar.from_json_schema(json.dumps(schema))
    for text in valid:
        assert accepts_text(grammar, text).accepted, text
    for text in invalid:
        assert not accepts_text(grammar, text).accepted, text


@pytest.mark.parametrize(("schema", "where", "cause"), REFUSED, ids=lambda value: json.dumps(value)[:50])
def test_what_cannot_be_enforced_is_named(schema: object, where: str, cause: str) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.from_json_schema(json.dumps(schema), "s.json")
    assert str(caught.value).startswith(f"s.json: {where}")
    assert cause in caught.value.cause
    assert "--lenient" in caught.value.remedy
    warnings = Grammar.from_json_schema(json.dumps(schema), "s.json", lenient=True).warnings
    (warning,) = [warning for warning in warnings if not warning.endswith("schema's order")]
    assert warning.startswith(f"s.json: {where}")
    assert warning.endswith("ignored")


@pytest.mark.parametrize(("schema", "where", "message"), WRONG, ids=lambda value: json.dumps(value)[:50])
@pytest.mark.parametrize("lenient", [False, True])
def test_what_is_no_schema(schema: object, where: str, message: str, lenient: bool) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.from_json_schema(json.dumps(schema), "s.json", lenient)
    assert str(caught.value).startswith(f"s.json: {where}")
    assert message in str(caught.value)


def test_unknown_keywords_are_annotations_but_typing_errors_are_told() -> None:
    (warning,) = Grammar.from_json_schema('{"requried": ["a"], "x": 1}', "s").warnings
    assert warning == "s: /requried: unknown keyword, ignored; did you mean 'required'?"
    grammar = Grammar.from_json_schema('{"type": "string", "format": "dat"}', "s")
    assert grammar.warnings == ("s: /format: unknown format 'dat', ignored; did you mean 'date'?",)
    assert accepts_text(grammar, '"x"').accepted


@pytest.mark.parametrize("text", ["{", "1", "[]", '{"a":' * 5000, '{"not":' * 300 + "{}" + "}" * 300])
def test_no_schema_at_all(text: str) -> None:
    with pytest.raises(GrammarError):
        Grammar.from_json_schema(text)


@pytest.mark.parametrize(
    ("schema", "keys"),
    [
        ({"properties": {"b": True, "a": True}}, "ba"),
        ({"required": ["a"]}, "a"),
        ({"required": ["c"], "properties": {"b": True, "a": True}}, "bac"),
        ({"properties": {"b": True}, "allOf": [{"properties": {"a": True}}]}, "ba"),
        ({"allOf": [{"properties": {"b": True}}, {"properties": {"a": True}}], "properties": {"c": True}}, "bac"),
        ({"$ref": "#/$defs/x", "properties": {"a": True}, "$defs": {"x": {"properties": {"b": True}}}}, "ba"),
        ({"required": ["a"], "anyOf": [{"required": ["b"]}, {"properties": {"c": False}}]}, "ab"),
    ],
)
def test_properties_come_in_any_order_but_not_twice(schema: dict[str, object], keys: str) -> None:
    grammar = Grammar.from_json_schema(json.dumps(schema))
    assert not grammar.warnings
    for order in itertools.permutations(keys):
        text = json.dumps(dict.fromkeys(order, 1))
        assert accepts_text(grammar, text).accepted, text
        for key in order:
            assert not accepts_text(grammar, f'{text[:-1]}, "{key}": 1}}').accepted, (text, key)


def test_names_that_are_not_listed_may_come_first() -> None:
    grammar = Grammar.from_json_schema('{"type": "object", "properties": {"a": {"type": "null"}}}')
    assert accepts_text(grammar, '{"b": 1, "a": null}').accepted
    assert not accepts_text(grammar, '{"b": 1, "a": 1}').accepted


@pytest.mark.parametrize(
    ("schema", "keys"),
    [
        (
            {"properties": {"b": True, "a": True}, "patternProperties": dict.fromkeys(("^w", "^x", "^y", "^z"), True)},
            "ba",
        ),
    ],
)
def test_where_the_order_stays_a_warning_says_so(schema: dict[str, object], keys: str) -> None:
    grammar = Grammar.from_json_schema(json.dumps(schema), "s")
    (warning,) = grammar.warnings
    assert warning == "s: some properties must stand in the schema's order"
    for order in itertools.permutations(keys):
        text = json.dumps(dict.fromkeys(order, 1))
        assert accepts_text(grammar, text).accepted == ("".join(order) == keys), text


@pytest.mark.parametrize(
    ("schema", "taken", "refused"),
    [
        (
            {"properties": {"a": {"type": "null"}, "b": True}, "patternProperties": {"^x-": {"type": "string"}}},
            ['{"x-1": "", "b": 1, "a": null}', '{"b": 1, "q": 5, "x-": "s"}', '{"ax-": 1}'],
            ['{"x-1": 1}', '{"x-1": "", "a": 1}', '{"b": 1, "b": 1}'],
        ),
        (
            {
                "properties": {"ab": {"minimum": 3}},
                "patternProperties": {"^a": {"type": "integer"}, "b$": {"maximum": 9}},
                "additionalProperties": False,
            },
            ['{"b": 2, "ab": 4, "a": 20}', '{"acb": 9}', "{}", '{"zb": "s"}'],
            ['{"ab": 2}', '{"ab": 10}', '{"ab": 4.5}', '{"acb": 10}', '{"acb": 1.5}', '{"q": 1}', '{"a": "s"}'],
        ),
        (
            {
                "required": ["x1"],
                "patternProperties": {"^x[0-9]|y": {"type": "boolean"}},
                "additionalProperties": False,
            },
            ['{"x1": true}', '{"ayb": true, "x1": false, "x22": true}'],
            ["{}", '{"x1": 1}', '{"x1": true, "ax1": true}', '{"x1": true, "x1": true}'],
        ),
        (
            {"type": "object", "minProperties": 1, "patternProperties": {"^a$": {"properties": {"k": True, "l": True}}},
             "additionalProperties": False},
            ['{"a": {"l": 1, "k": 2}}'],
            ["{}", '{"b": 1}'],
        ),
        (
            {"properties": {"a": {"type": "array", "additionalProperties": False,
                                  "items": {"required": ["x"], "properties": {"y": True}}}}},
            ['{"a": [{"y": 1, "x": 2}]}'],
            ['{"a": {}}', '{"a": [{"y": 1}]}'],
        ),
        (
            {"properties": {"a": {"type": "null"}, "b": True}, "minProperties": 1},
            ['{"b": 1}', '{"q": 1}', '{"b": 1, "a": null}'],
            ["{}", '{"a": 1}'],
        ),
        (
            {"properties": {"k": {"oneOf": [{"$ref": "#"}, {"type": "object", "required": ["$ref"]}]}, "l": True},
             "patternProperties": {"^x-": True}, "additionalProperties": False},
            ['{"l": 1, "k": {"l": 2, "k": {"$ref": 1}}}', '{"k": {"x-a": {}}, "x-b": 1}', '{"k": {"b": 1, "$ref": 2}}'],
            ['{"k": {"b": 1}}', '{"$ref": 1}'],
        ),
        (
            {"properties": {"a": {"const": {"p": 1, "q": {"r": [1], "s": 2}}}, "b": {"enum": [1, {"p": 1, "q": 2}]}}},
            ['{"b": {"q": 2, "p": 1}, "a": {"q": {"s": 2, "r": [1]}, "p": 1}}', '{"b": 1}'],
            ['{"a": {"p": 1}}', '{"b": {"p": 1}}', '{"b": {"p": 1, "q": 2, "r": 3}}'],
        ),
        (
            {"properties": {"a": {"allOf": [{"enum": ["x"]}, {"enum": ["y"]}]}, "c": True, "b": True}},
            ['{"b": 1, "c": 2}'],
            ['{"b": 1, "a": "x"}'],
        ),
    ],
)  # fmt: skip
def test_names_by_patterns_and_impossible_values_keep_no_order(
    schema: dict[str, object], taken: list[str], refused: list[str]
) -> None:
    schema = {"type": "object", **schema}
    check = jsonschema.Draft202012Validator(schema)
    grammar = Grammar.from_json_schema(json.dumps(schema))
    assert grammar.warnings == ()
    for text in taken:
        assert check.is_valid(json.loads(text)), text
        assert accepts_text(grammar, text).accepted, text
    for text in refused:
        assert not check.is_valid(json.loads(text)) or text.count('"b"') == 2 or text.count('"x1"') == 2, text
        assert not accepts_text(grammar, text).accepted, text


def test_layout() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array"}}}
    grammar = Grammar.from_json_schema(json.dumps(schema))
    for text in ['{"a": [1, 2]}', '{"a":[1,2]}', '{\n  "a": [\n    1\n  ]\n}', '{\r\n\t"a" : []}']:
        assert accepts_text(grammar, text).accepted, text
    for text in [' {"a":[]}', '{"a":[]} ', '{  "a":[]}', '{\n\n"a":[]}']:
        assert not accepts_text(grammar, text).accepted, text
    compact = Grammar.from_json_schema(json.dumps({**schema, "x-guidance": {"whitespace_flexible": False}}))
    assert accepts_text(compact, '{"a":[1]}').accepted
    assert not accepts_text(compact, '{"a": [1]}').accepted


def judge(seed: int) -> tuple[int, int, list[str]]:
    """How many values of a random schema are valid, how many not, and which were judged wrongly; (0, 0) if refused."""
    rng = random.Random(seed)
    schema = json_judge.schema(rng)
    validator = jsonschema.Draft202012Validator(schema)
    counts, wrong = [0, 0], []
    values = [json_judge.fitting(rng, schema) if rng.random() < 0.7 else json_judge.value(rng) for _ in range(12)]
    try:
        grammar = Grammar.from_json_schema(json.dumps(schema))
    except GrammarError as error:
        if "no value satisfies" in str(error):
            wrong = [f"{json.dumps(schema)} takes {value}" for value in values if validator.is_valid(value)]
        return 0, 0, wrong
    for value in values:
        valid = validator.is_valid(value)
        counts[valid] += 1
        taken = any(accepts_text(grammar, text).accepted for text in json_judge.texts(value))
        if taken != valid and not (valid and json_judge.many_spellings(schema)):
            wrong.append(f"seed {seed}: {json.dumps(schema)}: {json.dumps(value)} is {'in' * (not valid)}valid")
    return counts[1], counts[0], wrong


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_random_schemas(start: int) -> None:
    judged = [judge(seed) for seed in range(start, start + 50)]
    assert [line for _, _, wrong in judged for line in wrong] == []
    assert sum(valid for valid, _, _ in judged) > 50
    assert sum(invalid for _, invalid, _ in judged) > 50
