"""Texts follow the law of the masked target, whatever a draft proposes: with the real pseudo-random numbers."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from codespec.draft.draft_length import FixedLength
from codespec.draft.model import ModelDraft
from codespec.draft.vocabulary_mapping import TrimmedVocabularyTarget
from codespec.protocols import Sampling
from codespec.speculative.sampling import LogitSampler
from codespec.speculative.verify import verify_coupled
from tests.fakes import SetGrammar, Table, TableTarget
from tests.speculative.reference import Law, law_of_texts

END = frozenset({0})
DRAWS = 30_000


def limit_of_chi_square(degrees: int) -> float:
    """Exceeded once in 10,000 choices of seed (Wilson and Hilferty's approximation); the seeds here are fixed."""
    share = 2 / (9 * degrees)
    return degrees * (1 - share + 3.719 * math.sqrt(share)) ** 3


def chi_square(counts: Counter, law: Law) -> float:
    total = sum(counts.values())
    return sum((counts[outcome] - total * p) ** 2 / (total * p) for outcome, p in law.items())


# 0 ends; only 4 leads into a state that is complete, and 5 into a dead end.
GRAMMAR = SetGrammar([{1: 0, 2: 0, 3: 0, 4: 1, 5: 2}, {1: 0, 2: 1}, {}], frozenset({1}), END)
TABLE = Table(6, seed=2, scale=0.8)
NOISY = Table(6, seed=9, base=TABLE, noise=0.4)
TOKENS = 2


class Remembering(LogitSampler):
    """Does once what does not depend on chance: 30,000 texts go through few places."""

    def __init__(self, sampling: Sampling, prompt_length: int, memory: dict) -> None:
        super().__init__(sampling, prompt_length)
        self.memory = memory

    def _remembered(self, compute, scores, *place):
        key = (compute.__name__, scores.tobytes(), *(tuple(getattr(part, "history", part)) for part in place))
        if key not in self.memory:
            self.memory[key] = compute(scores, *place)
        return self.memory[key]

    def _checked(self, logits, tokens):
        return self._remembered(super()._checked, logits, tokens)

    def _survivors(self, scores, grammar):
        return self._remembered(super()._survivors, scores, grammar)


def draw_text(draft: ModelDraft, sampler: LogitSampler, grammar: SetGrammar, counts: Counter) -> None:
    """Two tokens behind the prompt, with a draft of two and, after a rejection, one of one; counts the text."""
    tokens, reason, start = [1, 2], None, len(grammar.history)
    while reason is None:
        room = 2 + TOKENS - len(tokens)
        before = len(grammar.history)
        proposal = draft.propose(tokens, grammar, sampler, FixedLength(room).more(room))
        grammar.rollback(len(grammar.history) - before)
        proposed = proposal.tokens
        rows = np.stack([TABLE.row([*tokens, *proposed[:i]]) for i in range(len(proposed) + 1)])
        verdict = verify_coupled(rows, proposal, tokens, grammar, sampler, END, room)
        reason = verdict.finish_reason
        counts["drafted"] += len(proposed)
        counts["accepted"] += verdict.accepted
    grammar.rollback(len(grammar.history) - start)
    counts[tuple(tokens[2:]), reason] += 1


@pytest.mark.slow
@pytest.mark.parametrize("trimmed", [False, True], ids=["whole", "trimmed"])
def test_texts_follow_the_law_of_the_target(trimmed: bool) -> None:
    sampling = Sampling(temperature=1.2, top_k=4, top_p=0.97, min_p=0.05, presence_penalty=0.3, seed=7)
    grammar = GRAMMAR.copy()
    law = law_of_texts(TABLE, [1, 2], sampling, TOKENS, grammar, END)
    counts: Counter = Counter()
    kept = np.array([0, 1, 2, 4])
    some = TrimmedVocabularyTarget(TableTarget(Table(5, seed=9)), kept.tolist(), 6, len(kept))
    model = some if trimmed else TableTarget(NOISY)
    draft, memory = ModelDraft(model, END, kept if trimmed else None), {}
    for sample in range(DRAWS):
        draw_text(draft, Remembering(replace(sampling, sample=sample), 2, memory), grammar, counts)
    accepted = counts.pop("accepted") / counts.pop("drafted")
    assert set(counts) == set(law)
    assert sum(counts.values()) == DRAWS
    assert {reason for _, reason in law} >= {"stop", "length"}
    assert len(law) > 10
    assert min(law.values()) * DRAWS > 5
    assert chi_square(counts, law) < limit_of_chi_square(len(law) - 1)
    assert 0.2 < accepted < 0.95
