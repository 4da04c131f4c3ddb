"""Grammars of Python types: what pydantic reads back is what the grammar takes."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import sys
from typing import Annotated, Any, Literal, NamedTuple, Optional, Union

import pytest

from codespec.errors import CodespecError
from codespec.grammar import Grammar, GrammarError
from codespec.grammar.check import accepts_text

pydantic = pytest.importorskip("pydantic", reason="pip install pydantic")


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


class Open(pydantic.BaseModel, extra="allow"):
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
