"""Several texts in one pass: the target reads its weights once for all, and each text gets its next token.

Nothing is drafted. Each row of a pass already serves a text, and llama.cpp decodes sequences of unequal rows one after
the other, so a proposal costs as much as a pass of its own (docs/benchmarks.md, "HTTP").
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import NamedTuple, TypeAlias

from codespec.protocols import CodespecError, Round
from codespec.speculative.generate import Generator
from codespec.speculative.run import NOTHING, Run, since

Outcome: TypeAlias = "Round | CodespecError"


class Text(NamedTuple):
    """One of them: a generator without a draft, with a sequence of its own, all of one context, and a run that it has
    begun."""

    generator: Generator
    run: Run

    @property
    def lacking(self) -> list[int]:
        """The text's tokens that the sequence does not hold yet: the last one, at least."""
        return self.run.tokens[len(self.generator.sequence.tokens) :]


def next_rounds(texts: Sequence[Text]) -> list[Outcome]:
    """The next token of every text, from one pass of the target, or why that text cannot go on.

    Raises:
        Aborted: another thread asked to stop; every text is as before the call.
        ContextFull: no room for one more token of each; every text is as before the call.
        CodespecError: decoding failed; every text is as before the call.
    """
    outcomes: dict[int, Outcome] = {}
    live = []
    for place, text in enumerate(texts):
        step = text.generator.propose(text.run)
        if isinstance(step, Round):
            outcomes[place] = step
        else:
            live.append((place, text))
    if live:
        outcomes |= zip([place for place, _ in live], _pass([text for _, text in live]), strict=True)
    return [outcomes[place] for place in range(len(texts))]


def _pass(texts: Sequence[Text]) -> list[Outcome]:
    began = perf_counter()
    tokens = [text.lacking for text in texts]
    sequences = [text.generator.sequence for text in texts]
    logits = sequences[0].extend_each(sequences, tokens)
    share, last = since(began) / len(texts), 0
    found: list[Outcome] = []
    for text, own in zip(texts, tokens, strict=True):
        last += len(own)
        statistics, read = text.run.statistics, len(own) - 1
        statistics.target_calls += 1
        statistics.prefill_tokens += read
        statistics.prefill_ms += share * read / len(own)
        statistics.target_ms += share / len(own)
        statistics.verify_ms += share / len(own)
        try:
            found.append(text.generator.settle(text.run, NOTHING, logits[last - 1 : last]))
        except CodespecError as error:
            found.append(error)
    return found
