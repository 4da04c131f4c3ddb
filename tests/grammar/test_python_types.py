"""Grammars of Python types: what pydantic reads back is what the grammar takes."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import json
import random
import sys
import uuid
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, Optional, Union

import numpy as np
import pytest

from codespec.errors import CodespecError
from codespec.grammar import Grammar, GrammarError, byte_tokenizer
from codespec.grammar.check import accepts_text

pytest.importorskip("pydantic", reason="pip install pydantic")

import pydantic


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass
class Node:
    value: int
    label: Optional[str] = None  # noqa: UP045
    children: list[Node] = dataclasses.field(default_factory=list)


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int = pydantic.Field(ge=0, le=9)


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    name: str = pydantic.Field(pattern="^[A-Z]")


class Owner(pydantic.BaseModel):
    pet: Annotated[Union[Cat, Dog], pydantic.Field(discriminator="kind")]  # noqa: UP007
    born: datetime.date
    colour: Colour = Colour.RED


class Open(pydantic.BaseModel, extra="allow"):  # type: ignore[call-arg]  # its types are not looked at
    a: int


# (type, texts it is read from, texts it is not); with all that is valid in the grammar's spelling.
TYPES: list[tuple[Any, list[str], list[str]]] = [
    (int, ["1", "-5"], ["1.5", '"a"', "true"]),
    (float, ["1.5", "1e5"], ['"a"']),
    (str, ['"a"'], ["null"]),
    (bool, ["true"], ["null"]),
    (type(None), ["null"], ["0"]),
    (Literal["a", 1, None], ['"a"', "1", "null"], ['"b"', "2"]),
    (Colour, ['"red"'], ['"green"']),
    (list[int], ["[]", "[1, 2]"], ['["a"]', "{}"]),
    (dict[str, bool], ["{}", '{"a": true}'], ['{"a": 2}', "[]"]),
    (tuple[int, str], ['[1, "a"]'], ["[1]", '[1, "a", 2]']),
    (tuple[int, ...], ["[]", "[1, 2, 3]"], ["[null]"]),
    (Optional[int], ["1", "null"], ['"a"']),  # noqa: UP045
    (Union[int, list[str]], ["1", '["a"]'], ['"a"', "[1]"]),  # noqa: UP007
    (datetime.datetime, ['"2024-02-29T12:00:00Z"'], ['"2023-02-29T12:00:00Z"', '"now"']),
    (datetime.timedelta, ['"P1DT2H"'], ['"soon"']),
    (Point, ["[1, 2]"], ["[1]", '["a", 2]']),
    (Node, ['{"value": 1}', '{"value": 1, "label": null, "children": [{"value": 2}]}'], ["{}", '{"value": "a"}']),
    (Cat, ['{"kind": "cat", "lives": 9}'], ['{"kind": "cat", "lives": 10}', '{"kind": "dog", "lives": 9}']),
    (
        Owner,
        [
            '{"pet": {"kind": "dog", "name": "Rex"}, "born": "2024-02-29"}',
            '{"pet": {"kind": "cat", "lives": 1}, "born": "2020-01-01", "colour": "blue"}',
        ],
        [
            '{"pet": {"kind": "dog", "name": "rex"}, "born": "2024-02-29"}',
            '{"pet": {"kind": "cat", "name": "Rex"}, "born": "2024-02-29"}',
            '{"pet": {"kind": "cat", "lives": 1}, "born": "2023-02-29"}',
        ],
    ),
    (list[Owner], ["[]"], ["[{}]"]),
    (Open, ['{"a": 1, "b": 2}'], ['{"b": 2}']),
]


@pytest.mark.parametrize(("kind", "valid", "invalid"), TYPES, ids=lambda value: str(value)[:40])
def test_types(kind: Any, valid: list[str], invalid: list[str]) -> None:
    grammar, reader = Grammar.from_type(kind), pydantic.TypeAdapter(kind)
    for text in valid:
        reader.validate_json(text)
        assert accepts_text(grammar, text).accepted, text
    for text in invalid:
        with pytest.raises(pydantic.ValidationError):
            reader.validate_json(text, strict=True)
        assert not accepts_text(grammar, text).accepted, text


class Size(enum.IntEnum):
    SMALL = 1


class Checked(pydantic.BaseModel):
    names: dict[int, str]

    @pydantic.field_validator("names")
    @classmethod
    def not_empty(cls, names: dict[int, str]) -> dict[int, str]:
        return names


def limited(kind: Any, **limits: Any) -> Any:
    return Annotated[kind, pydantic.Field(**limits)]


# What pydantic's own schemas are too wide for: (type, a text it is read from, texts it is not).
NARROWED: list[tuple[Any, str, list[str]]] = [
    (dict[int, str], '{"-1": ""}', ['{"x": ""}', '{"": ""}', '{"1.5": ""}']),
    (Mapping[int, str], '{"12": ""}', ['{"x": ""}']),
    (collections.OrderedDict[int, str], '{"12": ""}', ['{"x": ""}']),
    (dict[float, int], '{"1.5": 1}', ['{"x": 1}']),
    (dict[decimal.Decimal, int], '{"1.5": 1}', ['{"x": 1}']),
    (dict[bool, int], '{"true": 1}', ['{"x": 1}']),
    (dict[datetime.date, int], '{"2024-02-29": 1}', ['{"2023-02-29": 1}', '{"0000-01-01": 1}']),
    (dict[uuid.UUID, int], '{"12345678-1234-4234-8234-123456789abc": 1}', ['{"x": 1}']),
    (dict[Colour, int], '{"red": 1}', ['{"green": 1}']),
    (
        dict[limited(str, pattern="^a", max_length=2), int],  # type: ignore[misc]
        '{"ab": 1}',
        ['{"b": 1}', '{"abc": 1}'],
    ),
    (dict[Union[int, str], int], '{"x": 1}', ['{"x": ""}']),  # noqa: UP007
    (decimal.Decimal, "1.5", ['"abc"', "true"]),
    (limited(decimal.Decimal, max_digits=4, decimal_places=2, gt=0), "12.34", ["123.4", "1.234", "-1", '"abc"']),
    (datetime.timedelta, '"P1DT2H"', ['"P999999999999D"', '"P"', '"PT"']),
    (datetime.date, '"2024-02-29"', ['"0000-01-01"']),
    (datetime.datetime, '"2024-02-29T12:00:00Z"', ['"0000-01-01T00:00:00Z"', '"2016-12-31T23:59:60Z"']),
    (datetime.time, '"12:00:00Z"', ['"23:59:60Z"']),
    (pydantic.NaiveDatetime, '"2024-02-28T12:00:00"', ['"2024-02-28T12:00:00Z"']),
    (pydantic.UUID4, '"12345678-1234-4234-8234-123456789abc"', ['"12345678-1234-1234-8234-123456789abc"', '"x"']),
    (pydantic.HttpUrl, '"https://a.bc/d?e=f"', ['"a:b"', '"ftp://a.bc"']),
    (pydantic.Base64Bytes, '"YQ=="', ['"a"']),
    (limited(float, allow_inf_nan=False), "1.5", ["1e999"]),
    (limited(str, pattern=r"^\W$"), '"-"', ['"é"']),
    (pydantic.ByteSize, '"1.5KiB"', ['"1 x"', '"a"']),
]


@pytest.mark.parametrize(("kind", "valid", "invalid"), NARROWED, ids=lambda value: str(value)[:40])
def test_types_with_too_wide_schemas(kind: Any, valid: str, invalid: list[str]) -> None:
    grammar, reader = Grammar.from_type(kind), pydantic.TypeAdapter(kind)
    reader.validate_json(valid)
    assert accepts_text(grammar, valid).accepted
    for text in invalid:
        with pytest.raises(pydantic.ValidationError):
            reader.validate_json(text)
        assert not accepts_text(grammar, text).accepted, text


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        (pydantic.Json[int], "JSON inside of a text"),
        (dict[Size, int], "names of type enum"),
        (dict[Literal[1, 2], int], "names of type literal"),
        (dict[tuple[int, int], int], "names of type tuple"),
        (dict[limited(int, gt=3), int], "int with gt"),  # type: ignore[misc]
        (pydantic.FutureDate, "date with now_op"),
        (limited(datetime.date, gt=datetime.date(2020, 1, 1)), "date with gt"),
        (limited(str, pattern="^[a&&b]$"), "Rust reads in its own way"),
        (Annotated[str, pydantic.StringConstraints(to_lower=True, pattern="A")], "to_lower"),
    ],
)
def test_what_pydantic_reads_less_of_is_named(kind: Any, cause: str) -> None:
    with pytest.raises(GrammarError) as caught:
        Grammar.from_type(kind)
    assert cause in caught.value.cause
    assert cause in Grammar.from_type(kind, lenient=True).warnings[0]


def test_validators_in_python_are_named() -> None:
    assert "Checked.not_empty checks values besides the grammar" in Grammar.from_type(Checked).warnings[0]
    assert Grammar.from_type(collections.defaultdict[int, str]).warnings == ()


@pytest.mark.parametrize("kind", [kind for kind, _, _ in NARROWED], ids=str)
def test_what_a_grammar_writes_pydantic_reads(kind: Any) -> None:
    grammar, reader, rng = Grammar.from_type(kind), pydantic.TypeAdapter(kind), random.Random(4)
    tokenizer = byte_tokenizer()
    bits = np.zeros((tokenizer.size + 31) // 32, np.uint32)
    for _ in range(20):
        state, text = grammar.state(tokenizer), bytearray()
        while len(text) < 200:
            state.mask_into(bits)
            allowed = [token for token in range(32, 127) if bits[token >> 5] >> np.uint32(token & 31) & 1]
            if state.can_end and (not allowed or rng.random() < 0.3):
                reader.validate_json(bytes(text))
                break
            ends = [token for token in allowed if chr(token) in '"]},:0123456789.-TZPS']
            text.append(rng.choice(ends if ends and rng.random() < 0.7 else allowed))
            state.accept([text[-1]])


def test_objects_have_no_other_fields() -> None:
    assert not accepts_text(Grammar.from_type(Node), '{"value": 1, "other": 2}').accepted


def test_what_has_no_grammar() -> None:
    with pytest.raises(GrammarError, match="no schema for this type"):
        Grammar.from_type(object.__init__)


def test_items_of_a_set_differ() -> None:
    grammar = Grammar.from_type(set[int])
    assert accepts_text(grammar, "[1, 2, 12]").accepted
    assert not accepts_text(grammar, "[1, 2, 1]").accepted


def test_without_pydantic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)
    with pytest.raises(CodespecError, match=r"pip install pydantic"):
        Grammar.from_type(int)


def test_the_example(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import runpy
    from pathlib import Path

    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "typed.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line.split(" ", 1)[1]) is not None for line in lines] == [True] * len(lines)
    assert {line.split()[0] for line in lines} == {"accepted", "rejected"}
