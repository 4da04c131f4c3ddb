"""The trace of a text, token by token: small enough to be sent along with it and shown."""

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
    """One round: a proposal and the target call that verified it.

    Attributes:
        ms: since the previous round, or since the request; includes the draft's time.
        tokens: texts of the tokens that the round added. A character of several tokens stands with the last.
        sources: of each token: ``target``, or the draft that proposed it (``model``, ``ngram``, ``forced``).
        rejected: texts of the proposed tokens that the target rejected.
    """

    ms: float
    tokens: tuple[str, ...]
    sources: tuple[str, ...]
    rejected: tuple[str, ...]


def passes(rounds: Sequence[Round], times_ms: Sequence[float], vocabulary: Vocabulary) -> tuple[Pass, ...]:
    """The rounds of a text, as texts."""
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
