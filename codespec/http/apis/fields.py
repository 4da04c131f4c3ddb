"""The fields of a request: a value of the wrong kind or out of range is refused with the name of its field."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from codespec.http.errors import HttpError

_DEEPEST = 200
"""Levels of a body: schemas of 100 levels fit."""
_LONGEST_NAME = 4096


class Fields:
    """One object of a request. An absent field and ``null`` are the same, as in OpenAI's API.

    Args:
        status: what a bad field is refused with.
        at: where the object stands, for messages.
    """

    def __init__(self, values: Mapping[str, Any], status: int = 400, at: str = "") -> None:
        self._values, self.status, self._at = values, status, at

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def all(self) -> Mapping[str, Any]:
        """Names and values, as they are."""
        return self._values

    def path(self, name: str) -> str:
        """The name of a field, with those of the objects that it stands in."""
        return f"{self._at}{name}"

    def bad(self, name: str, rule: str) -> HttpError:
        """The refusal of a field, which must be as ``rule`` says."""
        path = self.path(name)
        return HttpError(self.status, f"{path} must be {rule}", path, "invalid_value")

    def any(self, name: str) -> Any:
        """The value as it is; None without one."""
        return self._values.get(name)

    def number(self, name: str, default: float, low: float = -math.inf, high: float = math.inf) -> float:
        """A finite number in a range."""
        value = self._values.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise self.bad(name, f"a number{_range(low, high)}")
        try:
            return float(value)
        except OverflowError:  # hundreds of digits
            raise self.bad(name, "a smaller number") from None

    def integer(self, name: str, default: int, low: int, high: int = 2**31 - 1) -> int:
        """A whole number in a range; ``1.0`` is one."""
        value = self._values.get(name)
        if value is None:
            return default
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, bool) or not whole or not low <= value <= high:
            raise self.bad(name, f"a whole number{_range(low, high)}")
        return int(value)

    def flag(self, name: str, default: bool = False) -> bool:
        """A field that holds true or false; ``default`` where it is absent."""
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.bad(name, "true or false")
        return value

    def text(self, name: str, default: str = "") -> str:
        """A field that holds text; ``default`` where it is absent.

        Raises:
            HttpError: 400, it is of another type.
        """
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.bad(name, "a text")
        return value

    def short(self, name: str, default: str = "") -> str:
        """A text of at most 4,096 characters, as names of files and the like are."""
        value = self.text(name, default)
        if len(value) > _LONGEST_NAME:
            raise self.bad(name, f"a text of at most {_LONGEST_NAME:,} characters")
        return value

    def choice(self, name: str, default: str, *known: str) -> str:
        """A field that holds one of the ``known`` texts; ``default`` where it is absent."""
        value = self.text(name, default)
        if value not in known:
            raise self.bad(name, "one of " + ", ".join(known))
        return value

    def texts(self, name: str, most: int, longest: int) -> tuple[str, ...]:
        """A text or a list of at most ``most`` of them, none empty, of at most ``longest`` characters each."""
        value = self._values.get(name)
        found = [value] if isinstance(value, str) else [] if value is None else value
        fine = isinstance(found, list) and len(found) <= most
        if not fine or not all(isinstance(each, str) and each for each in found):
            raise self.bad(name, f"a text or a list of at most {most} texts, none of them empty")
        if any(len(each) > longest for each in found):
            raise self.bad(name, f"texts of at most {longest:,} characters")
        return tuple(found)

    def entries(self, name: str, most: int) -> list[Any]:
        """A list; empty without one."""
        value = self._values.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > most:
            raise self.bad(name, f"a list of at most {most} entries")
        return value

    def object(self, name: str) -> Fields | None:
        """An object within; None without one."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.bad(name, "an object")
        return Fields(value, self.status, f"{self.path(name)}.")

    def objects(self, name: str, most: int) -> list[Fields]:
        """A field that holds at most ``most`` objects, each with its own fields."""
        found = self.entries(name, most)
        if not all(isinstance(each, dict) for each in found):
            raise self.bad(name, "a list of objects")
        return [Fields(each, self.status, f"{self.path(name)}.{index}.") for index, each in enumerate(found)]


def _range(low: float, high: float) -> str:
    if low == -math.inf:
        return "" if high == math.inf else f" of at most {high:g}"
    return f" of {low:g} or more" if high == math.inf else f" from {low:g} to {high:.10g}"


def read_fields(body: bytes | bytearray, depth: int, status: int = 400) -> Fields:
    """The fields of a body.

    Args:
        depth: levels of lists and objects that it has.

    Raises:
        HttpError: it is no JSON object, or none that can be handled: nested too deeply, or with half a surrogate pair.
    """
    if depth > _DEEPEST:
        raise HttpError(status, f"the body is nested more than {_DEEPEST} levels deep", code="invalid_json")
    try:
        values = json.loads(body.decode("utf-8-sig"), parse_constant=_no_constant)
        if b"\\ud" in body or b"\\uD" in body:
            json.dumps(values, ensure_ascii=False).encode()
    except ValueError as error:  # of UTF-8, of JSON, of numbers of thousands of digits
        where = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise HttpError(status, f"the body is no JSON object in UTF-8{where}", code="invalid_json") from None
    if not isinstance(values, dict):
        raise HttpError(status, "the body must be a JSON object", code="invalid_json")
    return Fields(values, status)


def _no_constant(name: str) -> None:
    raise ValueError(name)
