"""Rejection sampling with the real pseudo-random numbers: its law, the same text again, and everything in step."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from codespec.draft.draft_length import FixedLength
from codespec.draft.model import ModelDraft
from codespec.draft.vocabulary_mapping import TrimmedVocabularyTarget
from codespec.protocols import Limits, Proposal, Sampling
from codespec.speculative.generate import Generator
from codespec.speculative.noise import Purpose, uniform
from codespec.speculative.sampling import LogitSampler
from codespec.speculative.verify import verification, verify_rejection
from tests.fakes import SetGrammar, Table, TableTarget, oracle_draft
from tests.present import present
from tests.speculative.loops import joined, model_draft
from tests.speculative.reference import Law, adjust, law_of_texts, next_law, survivors
from tests.speculative.test_generate import check_counts, random_case, random_speculator, run
from tests.speculative.test_sampling import random_case as random_logits

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

    def _law(self, logits, tokens, grammar):
        return self._remembered(super()._law, logits, tokens, grammar)

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
        verdict = verification(sampler)(rows, proposal, tokens, grammar, sampler, END, room)
        reason = verdict.finish_reason
        counts["drafted"] += len(proposed)
        counts["accepted"] += verdict.accepted
    grammar.rollback(len(grammar.history) - start)
    counts[tuple(tokens[2:]), reason] += 1


@pytest.mark.slow
@pytest.mark.parametrize("trimmed", [False, True], ids=["whole", "trimmed"])
@pytest.mark.parametrize("verify", ["gumbel", "rejection"])
def test_texts_follow_the_law_of_the_target(verify: Literal["gumbel", "rejection"], trimmed: bool) -> None:
    sampling = Sampling(temperature=1.2, top_k=4, top_p=0.97, min_p=0.05, presence_penalty=0.3, verify=verify, seed=7)
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


def test_the_three_streams_are_independent() -> None:
    """Pairs of numbers at one index, and at neighbouring ones, fill the square evenly."""
    numbers = np.array([[uniform(3, 1, index, purpose) for purpose in Purpose] for index in range(8_000)])
    assert ((numbers > 0) & (numbers < 1)).all()
    columns = [*numbers.T[:, :-1], *numbers.T[:, 1:]]
    for a, b in itertools.combinations(range(len(columns)), 2):
        cells = np.histogram2d(columns[a], columns[b], bins=8, range=((0, 1), (0, 1)))[0]
        expected = len(columns[a]) / 64
        assert ((cells - expected) ** 2 / expected).sum() < limit_of_chi_square(63), (a, b)


@pytest.mark.parametrize("chunk", range(5))
def test_the_distribution_is_what_grammar_and_filters_leave(chunk: int) -> None:
    for seed in range(chunk, 300, 5):
        logits, tokens, sampling, grammar = random_logits(seed)
        expected = next_law(logits, tokens, sampling, grammar)
        sampling = replace(sampling, verify="rejection")
        distribution = LogitSampler(sampling, 4).distribution(logits, tokens, grammar)
        pick = LogitSampler(sampling, 4).pick(logits, tokens, grammar)
        if distribution is None:
            assert expected == {}
            assert pick is None
            continue
        ids, probs = distribution
        assert (ids.dtype, probs.dtype) == (np.dtype(np.int64), np.dtype(np.float64))
        assert probs.sum() == pytest.approx(1, abs=1e-12)
        assert dict(zip(ids.tolist(), probs.tolist(), strict=True)) == pytest.approx(expected, abs=1e-12)
        pick = present(pick)
        assert expected[pick.token] > 0
        assert 0 < pick.confidence <= 1 + 1e-6
        if sampling.temperature:
            assert [x.tolist() for x in present(pick.distribution)] == [ids.tolist(), probs.tolist()]
            assert LogitSampler(sampling, 4).choose(logits, tokens, grammar) in expected


def rejection_case(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    case.sampling = replace(case.sampling, verify="rejection")
    greedy, _ = case.expected()
    seeds = int(rng.integers(1 << 30))
    generator, target, rounds, grammar = run(case, random_speculator(np.random.default_rng(seeds), case, greedy))
    text, reason = joined(rounds)
    check_counts(generator, target, rounds, case)
    again = run(case, random_speculator(np.random.default_rng(seeds), case, greedy))
    assert [(r.tokens, r.proposed, r.accepted, r.finish_reason) for r in again[2]] == [
        (r.tokens, r.proposed, r.accepted, r.finish_reason) for r in rounds
    ]
    # Every token is one that the target could choose where it stands.
    state = None if case.grammar is None else case.grammar.copy()
    tokens = list(case.prompt)
    for token in text:
        assert token in survivors(adjust(case.table.row(tokens), tokens, case.sampling), case.sampling, state)
        assert state is None or state.accept([token]) == 1
        tokens.append(token)
    if grammar is not None:
        assert grammar.history == present(state).history
    if not case.sampling.temperature:
        assert (text, reason) == case.expected()


@pytest.mark.parametrize("chunk", range(4))
def test_the_same_text_again_and_everything_in_step(chunk: int) -> None:
    for seed in range(chunk, 800, 4):
        rejection_case(seed)


DRAWN = Sampling(temperature=0.9, seed=11, top_k=20, logit_bias={0: -np.inf}, verify="rejection")


def test_every_sample_index_and_seed_gives_another_text() -> None:
    table = Table(30, seed=3)
    generator = Generator(TableTarget(table), model_draft(table), END)
    settings = [replace(DRAWN, sample=i) for i in range(10)] + [replace(DRAWN, seed=i) for i in range(10)]
    texts = {tuple(joined(generator.generate([1], sampling, Limits(20)))[0]) for sampling in settings}
    assert len(texts) == 20


def test_a_perfect_model_is_always_accepted() -> None:
    table = Table(30, seed=3)
    generator = Generator(TableTarget(table), model_draft(table, noise=0), END, draft_length=4)
    list(generator.generate([1, 2], DRAWN, Limits(41)))
    assert generator.statistics.target_calls == 1 + 8
    assert generator.statistics.accepted == generator.statistics.drafted == 32


def test_a_draft_that_is_certain_is_accepted_with_the_targets_probability() -> None:
    """An oracle of the most probable text: as often as the target would have drawn it, within four standard errors."""
    table, prompt = Table(12, seed=3), [1, 2]
    best = int(table.row(prompt)[1:].argmax()) + 1
    sampling = replace(DRAWN, top_k=0, top_p=1, min_p=0)
    wanted = next_law(table.row(prompt), prompt, sampling, None)[best]
    proposal = oracle_draft([*prompt, best]).propose(prompt, None, LogitSampler(sampling, 2), lambda _: True)
    rows = np.stack([table.row(prompt), table.row([*prompt, best])])
    accepted = 0
    for sample in range(2_000):
        sampler = LogitSampler(replace(sampling, sample=sample), 2)
        accepted += verify_rejection(rows, Proposal(proposal.tokens), list(prompt), None, sampler, END, 9).accepted
    assert abs(accepted / 2_000 - wanted) < 4 * math.sqrt(wanted * (1 - wanted) / 2_000)
