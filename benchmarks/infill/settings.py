"""The settings of a run: a new user's, with what is given in their place."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from codespec.config import Config
from codespec.protocols import CodespecError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def settings(target: str, budget_ms: int | None, changes: Sequence[str]) -> Config:
    """The defaults with the file of a target, a time budget, and ``KEY=VALUE`` as ``codespec.toml`` has them.

    Raises:
        CodespecError: there is no such key or value.
    """
    config = Config()
    for options in tables(target, budget_ms, changes):
        config, messages = config.apply(options, "--settings")
        if messages:
            raise CodespecError("; ".join(messages))
    return config


def tables(target: str, budget_ms: int | None, changes: Sequence[str]) -> list[dict[str, Any]]:
    """What is not a default, as in ``codespec.toml``, one table for each change.

    Raises:
        CodespecError: a change is no TOML.
    """
    given: dict[str, Any] = {}
    if target:
        given["target"] = {"path": target}
    if budget_ms is not None:
        given["time_budget_ms"] = budget_ms
    return [given, *map(_table, changes)]


def _table(change: str) -> dict[str, Any]:
    key, equals, value = (part.strip() for part in change.partition("="))
    if not equals:
        raise CodespecError(f"--settings {change!r}: give KEY=VALUE, such as max_tokens=64 or context.tokens=0")
    for text in (value, f'"{value}"'):  # a name needs no quotes here
        try:
            return tomllib.loads(f"{key} = {text}")
        except tomllib.TOMLDecodeError:
            continue
    raise CodespecError(f"--settings {change!r} is no setting: give KEY=VALUE as in codespec.toml")
