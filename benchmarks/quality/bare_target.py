"""What the target alone says to the prompt of a completion."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from codespec.completion.ending.fitted_state import FittedState, FreeState
from codespec.engine.local import LocalEngine
from codespec.protocols import Chunk, Limits, Sampling

RAW_TOKENS = 32
"""How far the target is asked for something that is not blank."""
NO_CHARACTER = "\ufffd"
"""What bytes are shown as that are no character, which a target may write of an alphabet that it hardly knows."""


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


def said(prompted: Prompted, lead: str) -> str:
    """The first line, blank ones aside, that the target alone goes on with behind ``lead``, which the prompt leaves out
    and the document has; empty where it says nothing, or bytes that are no characters."""
    text = ""
    assert prompted.prompt is not None
    vocabulary = prompted.vocabulary
    state = FittedState(FreeState(), None, vocabulary, lead)
    limits = Limits(RAW_TOKENS + len(vocabulary.tokenize(lead)), None)
    for chunk in prompted.generate(prompted.prompt, state, Sampling(), limits):
        text += chunk.text
        if "\n" in text.removeprefix(lead).lstrip():
            break
    return text[len(lead) :].strip().partition("\n")[0].partition(NO_CHARACTER)[0].rstrip()


def is_there(line: str, suffix: str, prefix: str = "") -> bool:
    """Whether what follows the cursor begins with ``line``, or ``line`` with the rest of the word that the cursor is
    within: there is nothing to put in at the cursor."""
    rest, _, following = suffix.partition("\n")
    candidates = (rest.strip(), following.lstrip().partition("\n")[0].rstrip())
    word = _word(suffix) if re.search(r"\w\Z", prefix) else ""
    repeated = any(each and (each.startswith(line) or line.startswith(each)) for each in candidates)
    return repeated or (word != "" and _word(line) == word)


def _word(text: str) -> str:
    """The word that ``text`` begins with; empty where it begins with none."""
    return re.split(r"\W", text, maxsplit=1)[0]
