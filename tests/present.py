"""What may be missing elsewhere, and is there in a test."""

from __future__ import annotations

from typing import TypeVar

Value = TypeVar("Value")


def present(value: Value | None) -> Value:
    assert value is not None
    return value
