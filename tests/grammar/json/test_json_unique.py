"""Items that must differ: whatever is decoded under such a schema, no item comes twice, and nothing else is refused."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

from codespec.grammar import Grammar, byte_tokenizer
from codespec.grammar.check import accepts_text
from codespec.grammar.json.unique import comparable
from codespec.llama.llguidance_tokenizer import tokenizer_from_vocab
from codespec.llama.model import Model
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import GrammarState

jsonschema = pytest.importorskip("jsonschema", reason="pip install jsonschema")

UNIQUE = {"type": "array", "uniqueItems": True}
ENUM = ["a", "ab", "b", 1, 2.5, None, True]
SCHEMAS: list[dict[str, Any]] = [
    UNIQUE,
    {**UNIQUE, "items": {"type": "string"}},
    {**UNIQUE, "items": {"type": "number"}, "minItems": 2},
    {**UNIQUE, "items": {"enum": ENUM}},
    {**UNIQUE, "items": {"enum": ENUM}, "minItems": 2, "maxItems": 3},
    {**UNIQUE, "items": {"type": ["boolean", "null"]}},
    {**UNIQUE, "items": {"type": "object", "properties": {"a": {"type": "integer"}, "b": UNIQUE}}},
    {"type": "object", "properties": {"x": UNIQUE, "y": {"type": "array"}}, "additionalProperties": {"enum": [True]}},
    {"anyOf": [UNIQUE, {"type": "object", "additionalProperties": UNIQUE}]},
    {"type": "array", "prefixItems": [True, UNIQUE], "items": {"type": "array"}},
    {"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"k": {**UNIQUE, "items": {"$ref": "#/$defs/n"}}}}}},
    {"allOf": [{"type": "array", "items": {"type": ["string", "integer"]}}, {"uniqueItems": True}]},
    {"patternProperties": {"^l": UNIQUE}, "type": "object"},
]  # fmt: skip
CLOSED = {"type": "object", "additionalProperties": False}
MANY: dict[str, Any] = {
    **CLOSED,
    "properties": {f"n{number}": {"type": "boolean"} for number in range(66)},
    "required": ["n65", "n1"],
}
NARROW: list[dict[str, Any]] = [
    MANY,
    {"type": "array", "items": MANY},
    {**UNIQUE, "items": {"type": "integer", "minimum": 0, "maximum": 20}, "minItems": 4, "maxItems": 6},
    {**UNIQUE, "items": {"type": "integer"}, "minItems": 12},
    {**UNIQUE, "items": {"type": "string", "maxLength": 1}, "minItems": 5, "maxItems": 9},
    {**CLOSED, "properties": {"a": {"enum": [1]}, "b": {"enum": [2]}}},
    {**CLOSED, "properties": {"a": {"enum": [1]}, "b": {"enum": [2]}}, "required": ["b"]},
    {**CLOSED, "properties": {"a": {"enum": [1]}}, "patternProperties": {"^x": {"enum": [True]}}},
]
SAME = [
    ("1", "1.0"), ("100", "1e2"), ('"a"', '"\\u0061"'), ('{"a":1,"b":[2]}', '{"b": [2.0], "a": 1}'), ("[]", "[ ]"),
    ("-0", "0"), ("1e400", "2e400"),
]  # fmt: skip
DIFFERENT = [
    ("1", '"1"'),
    ("1", "true"),
    ("0", "false"),
    ("null", "false"),
    ("[1]", "[[1]]"),
    ("{}", "[]"),
    ("[1,2]", "[2,1]"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_equal_values(first: str, second: str) -> None:
    assert comparable(first.encode()) == comparable(second.encode())


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_other_values(first: str, second: str) -> None:
    assert comparable(first.encode()) != comparable(second.encode())
    assert accepts_text(Grammar.from_json_schema(json.dumps(UNIQUE)), f"[{first}, {second}]").accepted


def value(chooser: random.Random, depth: int = 3) -> Any:
    """Small values, so that many are equal."""
    kind = chooser.randrange(8 if depth else 5)
    if kind < 5:
        return chooser.choice([None, True, False, 0, 1, 2.5, -1, "a", "ab", "", 'q"', "b\\", *ENUM])
    if kind < 7:
        return [value(chooser, depth - 1) for _ in range(chooser.randrange(4))]
    return {chooser.choice(["a", "b", "x", "k", "l1"]): value(chooser, depth - 1) for _ in range(chooser.randrange(4))}


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:60])
def test_what_is_taken_is_what_the_judge_takes(schema: dict[str, Any]) -> None:
    grammar, check, chooser = (
        Grammar.from_json_schema(json.dumps(schema)),
        jsonschema.Draft202012Validator(schema),
        random.Random(5),
    )
    assert not grammar.warnings
    seen = {True: 0, False: 0}
    for _ in range(1_500):
        made = value(chooser)
        if chooser.random() < 0.5:
            made = chooser.choice(
                [{"x": made}, {"k": made}, {"l1": made}, [made, made], [1, made], {"x": made, "y": made}]
            )
        text = json.dumps(made, separators=chooser.choice([(",", ":"), (", ", ": ")]))
        valid = check.is_valid(made)
        assert accepts_text(grammar, text).accepted == valid, text
        seen[valid] += 1
    assert min(seen.values()) > 10


def allowed(state: GrammarState, size: int) -> list[int]:
    bits = np.zeros((size + 31) // 32, np.uint32)
    state.mask_into(bits)
    found: list[int] = np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little")[:size]).tolist()
    return found


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:60])
def test_mask_and_accept_say_the_same_of_every_token(schema: dict[str, Any]) -> None:
    """Along texts with items twice, in a real vocabulary; and copies and steps back change nothing."""
    check, chooser = jsonschema.Draft202012Validator(schema), random.Random(7)
    with Model(EMBEDDED_TARGET, vocabulary_only=True) as model:
        tokenizer = tokenizer_from_vocab(model.vocabulary)
        grammar, steps, ended = Grammar.from_json_schema(json.dumps(schema)), 0, 0
        while steps < 120:
            state, taken = grammar.state(tokenizer), []
            for _ in range(40):
                tokens = allowed(state, tokenizer.size)
                if not tokens:
                    break
                for token in chooser.sample(range(tokenizer.size), 200) + chooser.sample(tokens, min(40, len(tokens))):
                    copied = state.copy()
                    assert state.allows(token) == (token in tokens) == (copied.accept([token]) == 1)
                short = [each for each in tokens if len(tokenizer.raw.decode_bytes([each])) < 3]
                token = chooser.choice(short or tokens)
                assert state.accept([token]) == 1
                taken.append(token)
                steps += 1
                if token in tokenizer.end_tokens:
                    ended += 1
                    text = tokenizer.raw.decode_bytes(taken[:-1]).decode("utf-8", "surrogatepass")
                    assert check.is_valid(json.loads(text)), text
                    break
                back = chooser.randrange(len(taken) + 1)
                state.rollback(back)
                assert state.accept(taken[len(taken) - back :]) == back


@pytest.mark.parametrize("schema", [*SCHEMAS, *NARROW], ids=lambda schema: json.dumps(schema)[:60])
def test_no_text_comes_to_a_dead_end(schema: dict[str, Any]) -> None:
    """Whatever is chosen of a mask, byte by byte, can be gone on with or is complete."""
    grammar, chooser, complete = Grammar.from_json_schema(json.dumps(schema)), random.Random(9), 0
    for _ in range(30):
        state, text = grammar.state(byte_tokenizer()), b""
        for _ in range(150):
            bytes_ = allowed(state, 257)
            assert bytes_, text
            closing = [each for each in bytes_ if bytes([each % 256]) in b'"]},:0123456789' and each < 256]
            byte = chooser.choice(closing if closing and chooser.random() < 0.7 else bytes_)
            if byte == 256:
                complete += 1
                break
            assert state.accept([byte]) == 1
            text += bytes([byte])
    assert complete


def test_what_is_few_otherwise_than_by_a_list_may_come_to_a_dead_end() -> None:
    grammar = Grammar.from_json_schema(json.dumps({**UNIQUE, "items": {"type": "string", "pattern": "^ab$"}}))
    state = grammar.state(byte_tokenizer())
    assert state.accept(b'["ab", "a') == 9
    assert state.forced() == b""
    assert allowed(state, 257) == []
    assert state.accept(b"b") == 0
    state.rollback(4)
    assert state.accept(b"]") == 1
    assert state.can_end


def test_names_of_large_objects_come_once() -> None:
    properties = {f"n{number}": {"type": "integer"} for number in range(100)}
    schema = {"type": "object", "properties": properties, "required": ["n70", "n3"]}
    grammar = Grammar.from_json_schema(json.dumps(schema))
    assert not grammar.warnings
    for text in ('{"n99": 1, "n70": 2, "n5": 3, "n3": 4, "other": "x"}', '{"n3":1,"n70":1}'):
        assert accepts_text(grammar, text).accepted
    for text in (
        '{"n99": 1, "n70": 2}',
        '{"n3":1,"n70":1,"n99":2,"n99":3}',
        '{"n3":1,"n70":1,"n3":1}',
        '{"n3":1,"n70":"x"}',
    ):
        assert not accepts_text(grammar, text).accepted


def test_names_of_large_closed_objects_come_in_any_order_and_once() -> None:
    grammar, names = Grammar.from_json_schema(json.dumps(MANY)), list(MANY["properties"])
    assert not grammar.warnings
    random.Random(4).shuffle(names)
    text = json.dumps(dict.fromkeys(names, True))
    assert accepts_text(grammar, text).accepted
    assert not accepts_text(grammar, text[:-1] + ', "n1": true}').accepted
    state = grammar.state(byte_tokenizer())
    state.accept(text[:-1].encode())
    assert allowed(state, 257) == sorted(b"\n\r }"), "no comma behind the last name"
    assert state.copy().accept(b', "n') == 0
    state = grammar.state(byte_tokenizer())
    assert state.accept(b'{"n1": true, "n1') == 16
    assert ord('"') not in allowed(state, 257), "n1 is there"
    assert not accepts_text(grammar, '{"n65": true}').accepted
    assert not accepts_text(grammar, '{"n65": true, "n1": true, "other": true}').accepted


def test_a_large_closed_object_beside_an_open_one() -> None:
    schema = {"anyOf": [MANY, {"type": "object", "required": ["id"]}, {"type": "string"}]}
    grammar, check = Grammar.from_json_schema(json.dumps(schema)), jsonschema.Draft202012Validator(schema)
    for text in ('{"id": 1, "n1": 2}', '{"n65": true, "n1": false}', '{"n1": true}', '""', '{"x": 1, "id": 2}'):
        assert accepts_text(grammar, text).accepted == check.is_valid(json.loads(text)), text


def test_schemas_without_such_items_have_no_second_reader() -> None:
    grammar = Grammar.from_json_schema('{"type": "array", "items": {"type": "object", "properties": {"a": true}}}')
    assert type(grammar.state(byte_tokenizer())).__name__ == "LlguidanceState"
    values = Grammar.from_json_schema(json.dumps({**UNIQUE, "items": {"enum": ENUM}}))
    assert type(values.state(byte_tokenizer())).__name__ == "LlguidanceState", "a few values are held apart by rules"
