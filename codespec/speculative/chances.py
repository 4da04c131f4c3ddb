"""What the target thought of the tokens that were chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codespec.protocols import Logits, TokenChance
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
        scores = row.astype(np.float64)
        scores -= scores.max()
        scores -= np.log(np.exp(scores).sum())
        ids = best_ids(row, best).tolist() if best else []
        found.append(TokenChance(token, float(scores[token]), tuple((each, float(scores[each])) for each in ids)))
    return tuple(found)
