"""The sampler that sees the best logits alone: what it decides is what all logits would have decided."""

from __future__ import annotations

import math

import numpy as np
import pytest

from codespec.protocols import CodespecError, Limits, Sampling
from codespec.speculative.generate import Generator
from codespec.speculative.sampling import LogitSampler
from codespec.speculative.sparse import SparseSampler, Undecided
from tests.fakes import SetGrammar, Table, TableTarget, oracle_draft, random_draft, random_grammar
from tests.speculative.test_sampling import one_state


def named(logits: np.ndarray, count: int) -> np.ndarray:
    """The best ``count`` alone."""
    best = np.argsort(-logits, kind="stable")[:count]
    sparse = np.full_like(logits, -math.inf)
    sparse[best] = logits[best]
    return sparse


def case(seed: int) -> tuple[np.ndarray, int, list[int], Sampling, SetGrammar | None]:
    rng = np.random.default_rng(seed)
    size = int(rng.choice([33, 400]))
    logits = (rng.normal(0, float(rng.choice([1, 3])), size)).astype(np.float32)
    if seed % 4 == 0:
        logits = np.round(logits)  # ties
    if seed % 3 == 0:
        logits[rng.integers(size)] += 9.0
    biases: list[float] = [[], [], [-np.inf], [-np.inf, 3.0], [-2.0, 1.0]][rng.integers(5)]
    best = np.argsort(-logits)[:6]
    bias = {int(rng.choice(best) if rng.random() < 0.5 else rng.integers(size)): value for value in biases}
    sampling = Sampling(
        temperature=float(rng.choice([0, 0, 0.5, 1, 2])),
        top_k=int(rng.choice([0, 1, 5, 40, 40])),
        top_p=float(rng.choice([1.0, 0.0, rng.random(), 0.95])),
        min_p=float(rng.choice([0.0, 1.0, 0.05, rng.random() * 0.2])),
        seed=seed,
        presence_penalty=float(rng.choice([0.0, 0.0, 0.5, -0.5])),
        frequency_penalty=float(rng.choice([0.0, 0.0, 1.0])),
        logit_bias=bias,
    )
    share = float(rng.choice([0.004, 0.05, 0.5, 0.97]))
    grammar = one_state(np.flatnonzero(rng.random(size) < share)) if rng.random() < 0.7 else None
    return logits, int(rng.choice([2, 5, 20])), rng.integers(0, size, 10).tolist(), sampling, grammar


def fillings(logits: np.ndarray, sparse: np.ndarray, seed: int) -> list[np.ndarray]:
    """Rows that name the same best tokens: as it is, all others as good as may be, as bad, and anything between."""
    rng = np.random.default_rng(seed)
    hidden = np.isneginf(sparse)
    lowest = float(sparse[~hidden].min())
    found = [logits]
    for others in (np.full(len(logits), lowest), np.full(len(logits), -50.0), lowest - 3 * rng.random(len(logits))):
        found.append(np.where(hidden, others, sparse).astype(np.float32))
    return found


@pytest.mark.parametrize("seed", range(0, 2_000, 200))
def test_a_decision_is_that_of_every_row_with_these_best(seed: int) -> None:
    decided = 0
    for each in range(seed, seed + 200):
        logits, count, tokens, sampling, grammar = case(each)
        sparse = named(logits, count)
        try:
            found = SparseSampler(sampling, 4).choose(sparse, tokens, grammar)
        except Undecided:
            continue
        decided += 1
        for filled in fillings(logits, sparse, each):
            # Of two that are as good the one with the lower number wins, which a row need not name.
            assert LogitSampler(sampling, 4).choose(filled, tokens, grammar) == found, (each, sampling)
    assert decided > 60


@pytest.mark.parametrize("seed", range(0, 600, 200))
def test_a_whole_row_is_always_decided(seed: int) -> None:
    for each in range(seed, seed + 200):
        logits, _, tokens, sampling, grammar = case(each)
        expected = LogitSampler(sampling, 4).choose(logits, tokens, grammar)
        assert SparseSampler(sampling, 4).choose(logits, tokens, grammar) == expected, (each, sampling)


def test_the_usual_settings_are_decided_by_twenty() -> None:
    undecided = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        logits = np.sort(rng.normal(0, 1, 8_000)).astype(np.float32)
        logits[:30] = 14 - np.arange(30) * 0.7  # as steep as a model's
        sampler = SparseSampler(Sampling(temperature=1.0, seed=seed), 0)
        try:
            sampler.choose(named(logits, 20), [], None)
        except Undecided:
            undecided += 1
    assert undecided < 5


def test_only_choice_is_left_open_where_others_may_be_as_good() -> None:
    row = np.array([0, 5, 5, 1], np.float32)
    sampler = SparseSampler(Sampling(), 0)
    assert sampler.only_choice(named(row, 3)) == 1
    assert sampler.only_choice(named(row, 2)) is None
    with pytest.raises(Undecided):
        sampler.choose(named(row, 2), [], None)


def test_one_token_that_the_grammar_allows_needs_no_logits() -> None:
    sampler = SparseSampler(Sampling(), 0)
    nothing = np.full(8, -math.inf, np.float32)
    assert sampler.choose_closely(nothing, [], one_state(np.array([3]))) == 3
    with pytest.raises(Undecided):
        sampler.choose_closely(nothing, [], one_state(np.array([3, 4])))
    assert sampler.choose_closely(nothing, [], one_state(np.array([], np.int64))) is None


def test_repeat_penalties_are_refused() -> None:
    with pytest.raises(CodespecError, match="repeat_penalty"):
        SparseSampler(Sampling(repeat_penalty=1.1), 0)


class Sparse(TableTarget):
    """Names the best few."""

    count = 3

    def decode(self, tokens, last=None):
        rows = super().decode(tokens, last)
        return np.array([named(row, self.count) for row in rows], np.float32).reshape(rows.shape)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_texts_are_those_of_a_target_that_tells_everything(seed: int, temperature: float) -> None:
    table = Table(30, seed=seed)
    ends = frozenset({29})
    sampling = Sampling(temperature=temperature, seed=seed)
    grammar = random_grammar(np.random.default_rng(seed), 30, ends) if seed % 2 else None
    prompt, limits = [1, 2, 3], Limits(max_tokens=24)

    def copy():
        return grammar.copy() if grammar is not None else None

    expected = list(Generator(TableTarget(table), None, ends).generate(prompt, sampling, limits, copy()))
    text = [token for step in expected for token in step.tokens]
    asked = []

    def closer(tokens, state, sampler):
        asked.append(list(tokens))
        yield named(table.row(tokens), 4)[None]
        yield table.row(tokens)[None]

    for draft in (None, oracle_draft([*prompt, *text]), random_draft(30, seed)):
        target = Sparse(table)
        generator = Generator(target, draft, ends, 6, sampler=SparseSampler, closer=closer)
        steps = list(generator.generate(prompt, sampling, limits, copy()))
        assert [token for step in steps for token in step.tokens] == text
        assert steps[-1].finish_reason == expected[-1].finish_reason
    assert asked or temperature == 0 or len(text) < 8


def test_a_text_ends_where_nothing_more_can_be_found_out() -> None:
    table = Table(30, seed=1)
    prompt, limits = [1, 2, 3], Limits(max_tokens=24)
    whole = [
        step.tokens[0] for step in Generator(TableTarget(table), None, frozenset()).generate(prompt, Sampling(), limits)
    ]
    reached = []

    def closer(tokens, state, sampler):
        reached.append(len(tokens))
        yield from ()

    class Ending(Sparse):
        """Tells nothing of the sixth token."""

        def decode(self, tokens, last=None):
            before = self.n_past
            rows = super().decode(tokens, last)
            for row in range(len(rows)):
                if before + len(tokens) - len(rows) + row + 1 == 8:
                    rows[row] = -math.inf
            return rows

    draft = oracle_draft([*prompt, *whole])
    steps = list(
        Generator(Ending(table), draft, frozenset(), 8, sampler=SparseSampler, closer=closer).generate(
            prompt, Sampling(), limits
        )
    )
    assert [token for step in steps for token in step.tokens] == whole[:5]
    assert steps[-1].finish_reason == "grammar"
    assert reached == [8]
