"""llama.cpp's own cases of its JSON Schema converter, all but what JSON Schema's specification contradicts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codespec.grammar import Grammar
from codespec.grammar.check import accepts_text

_FILE = Path(__file__).parents[2] / "data" / "gbnf_upstream.json"
CASES = [case for case in json.loads(_FILE.read_text()) if case["kind"] == "schema"]
IDS = [f"{index}-{case['name']}".replace(" ", "_") for index, case in enumerate(CASES)]

# (name of the case, text that upstream refuses and that the schema allows): the clause of draft 2020-12 that says so.
EXCEPTIONS = {
    ("min 0", "100000000000000000000000000000000"): "Validation 6.2.4 minimum: only a lower bound; "
    "upstream cuts integers at 16 digits",
    ("min 2", "12345678900000000"): "Validation 6.2.4 minimum: only a lower bound; upstream cuts integers at 16 digits",
    ("min+max items", "1"): "Core 7.6.1: items, minItems and maxItems say nothing about a value that is no array, "
    "and the schema has no type",
    (
        "object properties",
        '{ "number": 1600, "street_name": "Pennsylvania", "street_type":"Avenue", "direction":"NW"}',
    ): "Core 10.3.2.3 additionalProperties: omitting it behaves as an empty schema, which takes any value",
}
# Upstream keeps the schema's order.
_ORIGINAL = "required + optional props each in original order"
EXCEPTIONS |= dict.fromkeys(
    [
        ("object properties", '{ "street_name": "Pennsylvania", "number": 1600 }'),
        (
            "object properties, additionalProperties: true",
            '{ "street_name": "Pennsylvania", "number": 1600, "street_type":"Avenue"}',
        ),
        (_ORIGINAL, '{ "street_type": "Avenue", "number": 1600 }'),
        (_ORIGINAL, '{"a": "foo", "b": "bar"}'),
        (_ORIGINAL, '{"a":"foo", "b":"bar", "c":"baz", "d":"qux"}'),
        ("required props", '{"productName": "A green door", "price": 12.50, "productId": 1}'),
        (
            "required props",
            '{"productId": 1, "productName": "A green door", "price": 12.50, '
            '"dimensions": {"length": 785, "width": 250.5, "height": -0.359}, "tags": ["home", "green"]}',
        ),
    ],
    "RFC 8259 section 4: an object is an unordered collection",
)


def grammar_of(case: dict[str, Any]) -> Grammar:
    return Grammar.from_json_schema(case["source"], case["name"])


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_upstream(case: dict[str, Any]) -> None:
    grammar = grammar_of(case)
    for text in case["accept"]:
        assert accepts_text(grammar, text).accepted, text
    for text in case["reject"]:
        assert accepts_text(grammar, text).accepted == ((case["name"], text) in EXCEPTIONS), text


def test_the_exceptions_are_cases() -> None:
    known = {(case["name"], text) for case in CASES for text in case["reject"]}
    assert set(EXCEPTIONS) <= known
    assert len(CASES) == 33
    for case in CASES:
        ignored = [warning for warning in grammar_of(case).warnings if "ignored" in warning]
        assert not ignored


@pytest.mark.parametrize("index", [0, 7, 27, 29, 32])
def test_on_the_command_line(index: int, tmp_path: Path) -> None:
    case = CASES[index]
    schema = tmp_path / "schema.json"
    schema.write_text(case["source"])
    texts = [*case["accept"], *case["reject"]]
    files = [tmp_path / f"{number}.json" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, newline="")
    command = [sys.executable, "-m", "codespec", "grammar", "accepts", str(schema), *map(str, files), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    answers = [answer["accepted"] for answer in json.loads(done.stdout)]
    wanted = [text in case["accept"] or (case["name"], text) in EXCEPTIONS for text in texts]
    assert answers == wanted
    assert done.returncode == (0 if all(wanted) else 1)
