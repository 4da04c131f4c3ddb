"""Parsers of option values. Each returns the value, or raises ``argparse.ArgumentTypeError`` with what is wrong."""

from __future__ import annotations

import argparse

LONGEST_PROPOSAL = 32
"""The longest proposal that may be asked for, in tokens."""


def whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None


def positive(text: str) -> int:
    """A whole number from 1 on."""
    value = whole(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def count(text: str) -> int:
    """A whole number from 0 on."""
    value = whole(text)
    if value < 0:
        raise argparse.ArgumentTypeError("must be 0 or more")
    return value


def not_negative(text: str) -> float:
    """A number from 0 on."""
    value = number(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError("must be 0 or more")
    return value


def share(text: str) -> float:
    """A number from 0 to 1."""
    value = number(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError("must be between 0 and 1")
    return value
