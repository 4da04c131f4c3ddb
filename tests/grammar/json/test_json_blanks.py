"""Under a JSON Schema a text comes to its end within its tokens, though the model would rather write white space."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from codespec.grammar import Grammar, byte_tokenizer
from codespec.grammar.json.token_texts import members
from codespec.protocols import GrammarState

TOKENIZER = byte_tokenizer()
WORDS = (TOKENIZER.size + 31) // 32
TWO = {
    "type": "object",
    "properties": {"a": {"type": "string", "maxLength": 10}, "b": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
SPACED = {**TWO, "x-guidance": {"item_separator": ", ", "key_separator": ": ", "whitespace_flexible": False}}


def mask(state: GrammarState) -> list[int]:
    bits = np.zeros(WORDS, np.uint32)
    state.mask_into(bits)
    return members(bits)


def written(schema: object, most: int, rng: random.Random) -> bytes:
    """The text of a model that writes white space wherever it may."""
    state, text = Grammar.from_json_schema(json.dumps(schema)).state(TOKENIZER, most), bytearray()
    while len(text) < most and not state.finished:
        allowed = [token for token in mask(state) if token < 256]
        if not allowed:
            break
        blank = [token for token in allowed if token in b" \t\r\n"]
        token = rng.choice(blank or [each for each in allowed if each < 127])
        assert state.allows(token)
        assert state.accept([token]) == 1
        text.append(token)
    return bytes(text)


@pytest.mark.parametrize("schema", [TWO, SPACED, {"type": "array", "items": TWO, "minItems": 2, "maxItems": 2}])
def test_a_text_of_bounded_fields_ends(schema: object) -> None:
    for seed in range(10):
        text = written(schema, 160, random.Random(seed))
        json.loads(text)


def test_white_space_in_strings_and_before_the_half_stays() -> None:
    grammar = Grammar.from_json_schema(json.dumps(TWO))
    state, free = grammar.state(TOKENIZER, 40), grammar.state(TOKENIZER)
    for byte in b'{\n  "a": " \\" ",':
        assert mask(state) == mask(free)
        assert state.accept([byte]) == free.accept([byte]) == 1
    blanks = set(b" \t\r\n")
    for byte in b'"b":':
        state.accept([byte])
        free.accept([byte])
    assert set(mask(free)) - set(mask(state)) == blanks & set(mask(free)) != set()
    assert not state.allows(32)
    assert state.accept([32]) == 0
    other = state.copy()
    state.rollback(9)
    assert state.accept(list(b'",\n')) == 3
    assert other.accept(list(b"1}")) == 2
    assert other.can_end


def test_mask_and_accept_say_the_same() -> None:
    rng = random.Random(2)
    for _ in range(6):
        state = Grammar.from_json_schema(json.dumps(TWO)).state(TOKENIZER, 30)
        while not state.finished and (allowed := [token for token in mask(state) if token < 127]):
            for token in range(127):
                assert state.allows(token) == (token in allowed)
                assert state.copy().accept([token]) == (token in allowed)
            state.accept([rng.choice(allowed)])
