"""How a text came about, token by token: small enough to be sent along with it and shown."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codespec.protocols import Round, Vocabulary

TARGET = "target"


@dataclass(frozen=True)
class Pass:
    """One pass of the target.

    Attributes:
        ms: since the pass before, or since the request; what drafts took is part of it.
        tokens: texts that the completion grew by. A character that is cut into several stands with the last.
        sources: where each of them came from: ``target``, or the draft that proposed it (``model``, ``ngram``,
            ``forced``).
        rejected: texts of those proposed tokens that the target refused.
    """

    ms: float
    tokens: tuple[str, ...]
    sources: tuple[str, ...]
    rejected: tuple[str, ...]


def passes(rounds: Sequence[Round], times_ms: Sequence[float], vocabulary: Vocabulary) -> tuple[Pass, ...]:
    """The passes behind a text."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    found = []
    for step, ms in zip(rounds, times_ms, strict=True):
        count = len(step.tokens)
        sources = [*step.sources[: step.accepted], *[TARGET] * count][:count]
        tokens = [decoder.decode(vocabulary.token_bytes(token)) for token in step.tokens]
        rejected = [
            vocabulary.token_bytes(token).decode("utf-8", "replace") for token in step.proposed[step.accepted :]
        ]
        found.append(Pass(round(ms, 3), tuple(tokens), tuple(sources), tuple(rejected)))
    return tuple(found)
