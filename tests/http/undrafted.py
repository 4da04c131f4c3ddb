"""A server whose engine never drafts: the target alone, one token at a time, says what the texts are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codespec.completion.load import load_engine
from codespec.config import Config


class Undrafted:
    """An engine without its drafts, n-grams and forced texts."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def generate(self, *arguments: Any, **named: Any) -> Iterator[Any]:
        return self._engine.generate(*arguments, **named, speculate=False)


def undrafted(config: Config, progress: object, exact: bool) -> Any:
    """Such an engine."""
    return Undrafted(load_engine(config, exact=exact))
