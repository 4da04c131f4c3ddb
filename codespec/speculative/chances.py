"""How likely the target holds tokens: those that were chosen, and those of given texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from codespec.draft.sequence import HeldSequence
from codespec.protocols import Aborted, Logits, TokenChance
from codespec.speculative.ranking import best_ids
from codespec.speculative.sampling import LogitSampler


def chances_of(logits: Logits, tokens: Sequence[int], sampler: LogitSampler) -> tuple[TokenChance, ...]:
    """The logarithms of the probabilities of ``tokens``, each chosen from its row of ``logits`` [rows, V].

    Empty where nobody asked, or where the rows lack most tokens.
    """
    best = sampler.sampling.logprobs
    if best is None or not sampler.complete:
        return ()
    found = []
    for row, token in zip(logits, tokens, strict=False):  # the row after the last token is not needed
        scores = _logarithms(row)
        ids = best_ids(row, best).tolist() if best else []
        found.append(TokenChance(token, float(scores[token]), tuple((each, float(scores[each])) for each in ids)))
    return tuple(found)


def text_chances(
    sequence: HeldSequence, prompt: Sequence[int], texts: Sequence[Sequence[int]], rows: int, stop: Callable[[], bool]
) -> list[float]:
    """The logarithm of the probability of each of ``texts`` after ``prompt``, all of them of at least one token.

    Args:
        rows: tokens that are decoded at a time at most.
        stop: asked before every pass.

    Raises:
        Aborted: ``stop`` said True, or the pass was aborted; the sequence holds a beginning of the prompt and a text.
        CodespecError: as ``Target.decode``.
    """
    found = []
    for text in texts:
        kept = sequence.kept(prompt)
        sequence.rollback(kept)
        decoded, chance = (*prompt[kept:], *text[:-1]), 0.0
        before = len(decoded) - len(text)  # rows that tell nothing of the text
        for start in range(0, len(decoded), rows):
            if stop():
                raise Aborted
            part = decoded[start : start + rows]
            told = text[max(0, start - before) : max(0, start - before + len(part))]
            logits = sequence.extend(part, len(told))
            chance += sum(float(_logarithms(row)[token]) for row, token in zip(logits, told, strict=True))
        found.append(chance)
    return found


def _logarithms(row: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """The logarithms of the probabilities that logits [V] stand for."""
    scores = row.astype(np.float64)
    scores -= scores.max()
    scores -= np.log(np.exp(scores).sum())
    return scores
