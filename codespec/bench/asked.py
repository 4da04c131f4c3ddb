"""What the target alone says to the prompt of a completion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from codespec.completion.local import LocalEngine
from codespec.protocols import Chunk, Limits, Sampling

RAW_TOKENS = 32
"""How far the target is asked for something that is not blank."""


class Prompted:
    """An engine that remembers the prompt of the first generation since it was told to forget."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine = engine
        self.prompt: Sequence[int] | None = None

    def generate(self, prompt: Sequence[int], *arguments: Any, **more: Any) -> Iterator[Chunk]:
        """As the engine does."""
        if self.prompt is None:
            self.prompt = list(prompt)
        return self._engine.generate(prompt, *arguments, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


def says_anything(prompted: Prompted, lead: str) -> bool:
    """Whether the target alone goes on with anything that is not blank, behind ``lead`` where it writes that again."""
    text = ""
    assert prompted.prompt is not None
    for chunk in prompted.generate(prompted.prompt, None, Sampling(), Limits(RAW_TOKENS, None)):
        text += chunk.text
        if text.removeprefix(lead).strip() and not lead.startswith(text):
            return True
    return False
