"""The sampler: its law, its order of filters, and that asking the grammar lazily changes nothing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from codespec.protocols import CodespecError, Sampling
from codespec.speculative import sampling as sampling_module
from codespec.speculative.noise import gumbel
from codespec.speculative.ranking import best_ids
from codespec.speculative.sampling import LogitSampler
from tests.fakes import SetGrammar
from tests.present import present
from tests.speculative import reference


def one_state(allowed: np.ndarray | Sequence[int]) -> SetGrammar:
    """Allows the same tokens for ever."""
    return SetGrammar([dict.fromkeys(np.asarray(allowed).tolist(), 0)], frozenset(), frozenset())


def row(seed: int, size: int, step: float = 0.0) -> np.ndarray:
    logits = np.random.default_rng(seed).normal(0, 3, size)
    return (np.round(logits / step) * step if step else logits).astype(np.float32)


def random_case(seed: int) -> tuple[np.ndarray, list[int], Sampling, SetGrammar | None]:
    rng = np.random.default_rng(seed)
    size = int(rng.choice([33, 400, 5_000], p=[0.5, 0.3, 0.2]))
    logits = row(seed, size, step=float(rng.choice([0, 0, 1.0])))
    logits[rng.random(size) < 0.05] = -np.inf
    if seed % 3 == 0:
        logits[rng.integers(size)] += 9.0  # a sure choice
    penalised = rng.random() < 0.4
    biases = [[], [], [-np.inf], [-np.inf, 3.0]][rng.integers(4)]
    sampling = Sampling(
        temperature=float(rng.choice([0, 0.5, 1, 2])),
        top_k=int(rng.choice([0, 1, 5, 40, 300])),
        top_p=float(rng.choice([1.0, 0.0, rng.random(), 0.95])),
        min_p=float(rng.choice([0.0, 1.0, rng.random() * 0.2])),
        seed=seed,
        repeat_penalty=1.5 if penalised else 1.0,
        presence_penalty=0.5 if penalised else 0.0,
        logit_bias={int(rng.integers(size)): bias for bias in biases},
    )
    share = float(rng.choice([0.0, 0.01, 0.5, 0.97]))
    grammar = one_state(np.flatnonzero(rng.random(size) < share)) if rng.random() < 0.8 else None
    return logits, rng.integers(0, size, 10).tolist(), sampling, grammar


REFUSALS = {"as shipped": sampling_module.REFUSALS, "mask at once": 0, "never mask": 10**6}


@pytest.mark.parametrize("seed", range(0, 1_000, 100))
def test_equal_to_masking_everything_first(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sure = 0
    for case in range(seed, seed + 100):
        logits, tokens, sampling, grammar = random_case(case)
        expected = reference.choose(logits, tokens, 4, sampling, grammar)
        confidences = set()
        for refusals in REFUSALS.values():
            monkeypatch.setattr(sampling_module, "REFUSALS", refusals)
            pick = LogitSampler(sampling, prompt_length=4).pick(logits, tokens, grammar)
            assert (pick and pick.token) == expected, case
            sampler = LogitSampler(sampling, prompt_length=4)
            assert sampler.choose(logits, tokens, grammar) == expected
            known = sampler.only_choice(logits)
            if known is not None and (grammar is None or grammar.allows(known)):
                assert known == expected
                sure += 1
            confidences.add(pick.confidence if pick else None)
        [confidence] = confidences
        assert confidence is None or 0 < confidence <= 1 + 1e-6
    assert sure > 20


@pytest.mark.parametrize("seed", [1_000, 1_200])
def test_knowing_which_tokens_there_are_changes_nothing(seed: int) -> None:
    quick = 0
    for case in range(seed, seed + 200):
        logits, tokens, sampling, grammar = random_case(case)
        rng = np.random.default_rng(case)
        among = np.sort(rng.choice(len(logits), int(rng.integers(1, len(logits) + 1)), replace=False))
        some = np.full_like(logits, -np.inf)
        some[among] = logits[among]
        for settings in (sampling, replace(sampling, temperature=0)):
            sampler = LogitSampler(settings, prompt_length=4)
            plain, pick = (sampler.pick(some, tokens, grammar, known) for known in (None, among))
            assert (pick and pick.token) == (plain and plain.token), case
            if pick is not None and plain is not None:
                # Banned tokens are counted in where there was no closer look.
                assert 0 < pick.confidence <= plain.confidence * (1 + 1e-5)
            quick += sampler._best_among(some, among, grammar) is not None
    assert quick > 30


def test_the_mask_is_computed_only_after_refusals() -> None:
    logits = np.arange(100, 0, -1).astype(np.float32)  # token 0 is the best
    for sampling in (Sampling(), Sampling(temperature=1), Sampling(temperature=1, top_k=0, top_p=1, min_p=0.05)):
        near = one_state(range(3, 100))
        pick = LogitSampler(sampling, 0).pick(logits, [], near)
        assert pick is not None
        assert pick.token >= 3
        assert near.calls["mask_into"] == 0
        far = one_state(range(80, 100))
        LogitSampler(sampling, 0).pick(logits, [], far)
        assert far.calls["mask_into"] >= 1
    best = one_state([0])
    LogitSampler(Sampling(), 0).pick(logits, [], best)
    assert best.calls == {"allows": 1, "mask_into": 0, "copy": 0}


def test_a_draft_asks_the_grammar_about_few_tokens_and_the_target_about_all_of_top_k() -> None:
    # A target's grammar remembers the ends that it was asked for: what the text is depends on that.
    logits = np.arange(100, 0, -1).astype(np.float32)
    sampler, draft, target = LogitSampler(Sampling(temperature=1), 0), one_state(range(100)), one_state(range(100))
    pick = sampler.pick(logits, [], draft)
    assert pick is not None
    assert pick.token == sampler.choose(logits, [], target)
    assert draft.calls["allows"] <= 4
    logits[1] = logits[0]  # else the best is the only one near enough
    for state in (draft, target):
        state.calls["allows"] = 0
    pick = sampler.pick(logits, [], draft)
    assert pick is not None
    assert pick.token == sampler.choose(logits, [], target)
    assert draft.calls["allows"] <= 4
    assert target.calls["allows"] >= 40


def test_top_p_alone_needs_the_mask() -> None:
    grammar = one_state(range(1, 90))
    LogitSampler(Sampling(temperature=1, top_k=0), 0).pick(row(1, 100), [], grammar)
    assert grammar.calls["mask_into"] == 1


@pytest.mark.parametrize("seed", range(200))
def test_best_ids_are_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = row(seed, int(rng.choice([10, 1_000, 8_192, 70_001])), step=float(rng.choice([0, 0.5])))
    scores[rng.random(len(scores)) < rng.choice([0.0, 0.999])] = -np.inf
    count = int(rng.choice([1, 9, 48]))
    expected = np.argsort(-scores, kind="stable")[:count]
    assert best_ids(scores, count).tolist() == [t for t in expected.tolist() if scores[t] > -np.inf]


# The law


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    expected = probabilities * counts.sum()
    return float(((counts - expected) ** 2 / expected).sum())


LOGITS = np.array([1.0, 0.3, -0.5, 2.0, 0.0, -1.0, 1.7, 0.8], np.float32)
CHI_SQUARE_7 = 29.9  # 7 degrees of freedom: exceeded once in 10,000 choices of seed; the seeds here are fixed


@pytest.mark.parametrize("over", ["index", "seed", "sample"])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.8])
def test_tokens_follow_the_softmax(over: str, temperature: float) -> None:
    sampling = Sampling(temperature=temperature, top_k=0, top_p=1, min_p=0, seed=1)
    counts = np.zeros(8)
    tokens: list[int] = []
    for i in range(4_000):
        if over == "index":
            tokens.append(1)
        else:
            sampling = replace(sampling, seed=i) if over == "seed" else replace(sampling, sample=i)
        counts[present(LogitSampler(sampling, 0).pick(LOGITS, tokens, None)).token] += 1
    weights = np.exp(LOGITS.astype(np.float64) / temperature)
    assert chi_square(counts, weights / weights.sum()) < CHI_SQUARE_7


def test_tokens_follow_the_softmax_of_what_grammar_and_filters_leave() -> None:
    sampling = Sampling(temperature=1.3, top_k=4, top_p=0.95, min_p=0.1, seed=2)
    grammar = one_state([0, 1, 2, 5, 6, 7])
    left = reference.survivors(LOGITS.tolist(), sampling, grammar)
    assert left == [6, 0, 7, 1][: len(left)]
    assert len(left) == 4
    counts = np.zeros(8)
    sampler = LogitSampler(sampling, 0)
    for i in range(4_000):
        counts[present(sampler.pick(LOGITS, [1] * i, grammar)).token] += 1
    weights = np.exp(LOGITS[left].astype(np.float64) / 1.3)
    assert counts.sum() == counts[left].sum()
    assert chi_square(counts[left], weights / weights.sum()) < 21.1  # 3 degrees of freedom, once in 10,000


def test_neighbouring_positions_are_independent() -> None:
    sampler = LogitSampler(Sampling(temperature=1, top_k=0, top_p=1, min_p=0, seed=3), 0)
    flat = np.zeros(4, np.float32)
    picks = [present(sampler.pick(flat, [0] * i, None)).token for i in range(8_001)]
    pairs = np.zeros(16)
    for a, b in itertools.pairwise(picks):
        pairs[4 * a + b] += 1
    assert chi_square(pairs, np.full(16, 1 / 16)) < 44.3  # 15 degrees of freedom, once in 10,000


def test_a_coupled_draft_agrees_more_often_than_chance() -> None:
    """Acceptance by shared noise lies near the overlap of the two laws, far above independent draws."""
    rng = np.random.default_rng(0)
    sampler = LogitSampler(Sampling(temperature=1, top_k=0, top_p=1, min_p=0), 0)
    agreed = overlap = independent = 0.0
    for i in range(1_500):
        target, draft = (x.astype(np.float32) for x in np.cumsum(rng.normal(0, (2, 0.7), (50, 2)).T, axis=0))
        tokens = [0] * i
        first, second = (present(sampler.pick(logits, tokens, None)).token for logits in (target, draft))
        agreed += first == second
        target_probs, draft_probs = (np.exp(x) / np.exp(x).sum() for x in (target, draft))
        overlap += np.minimum(target_probs, draft_probs).sum()
        independent += (target_probs * draft_probs).sum()
    assert 0.85 * overlap < agreed <= overlap + 60
    assert agreed > 2 * independent


# The noise


def uniforms(noise: np.ndarray) -> np.ndarray:
    return np.exp(-np.exp(-noise))


@pytest.mark.parametrize("case", ["ids", "index", "seed", "sample"])
def test_noise_is_uniform_underneath(case: str) -> None:
    ids = np.arange(20_000)
    if case == "ids":
        values = gumbel(1, 2, 3, ids)
    else:
        arguments = {"seed": 5, "sample": 0, "index": 0}
        values = np.concatenate([gumbel(**{**arguments, case: i}, ids=np.array([7])) for i in range(8_000)])
    u = uniforms(values)
    counts = np.histogram(u, bins=100, range=(0, 1))[0]
    assert chi_square(counts, np.full(100, 0.01)) < 161.4  # 99 degrees of freedom, once in 10,000
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 4 / len(u) ** 0.5  # four standard errors


def test_noise_equals_the_plain_formula() -> None:
    for seed, sample, index in [(0, 0, 0), (-1, 5, 9), (1 << 70, 1, 100_000)]:
        ids = np.array([0, 1, 8_191, 151_935])
        expected = [reference.noise(Sampling(seed=seed, sample=sample), index, t) for t in ids.tolist()]
        assert gumbel(seed, sample, index, ids) == pytest.approx(expected, rel=1e-12)


def test_noise_of_a_token_is_the_same_among_few_and_many() -> None:
    ids = np.arange(0, 4_000, 7)
    few = np.concatenate([gumbel(-3, 1, 9, ids[start : start + 5]) for start in range(0, len(ids), 5)])
    assert (few == gumbel(-3, 1, 9, ids)).all()


def test_noise_is_finite_at_the_ends_of_the_hash() -> None:
    for bits in (0, (1 << 52) - 1):
        assert math.isfinite(-math.log(-math.log((bits + 0.5) * 2.0**-52)))


# Single cases


def test_greedy_takes_the_lowest_id_among_equals() -> None:
    logits = np.zeros(5_000, np.float32)
    for grammar, lowest in ((None, 0), (one_state([3, 4]), 3), (one_state([4_000, 4_500]), 4_000)):
        assert present(LogitSampler(Sampling(), 0).pick(logits, [], grammar)).token == lowest


def test_top_k_of_one_is_greedy() -> None:
    for seed in range(50):
        logits = row(seed, 300, step=1.0)
        greedy = present(LogitSampler(Sampling(), 0).pick(logits, [], None))
        sampled = present(LogitSampler(Sampling(temperature=2, top_k=1, seed=seed), 0).pick(logits, [], None))
        assert greedy.token == sampled.token


def test_confidence_of_a_greedy_choice() -> None:
    logits = np.array([5, 4, 3, -20], np.float32)
    exact = np.exp(5.0) / np.exp([5.0, 4.0, 3.0]).sum()
    assert present(LogitSampler(Sampling(), 0).pick(logits, [], None)).confidence == pytest.approx(exact, rel=1e-5)
    # What the grammar refused above the choice does not count.
    exact = np.exp(4.0) / np.exp([4.0, 3.0]).sum()
    pick = present(LogitSampler(Sampling(), 0).pick(logits, [], one_state([1, 2, 3])))
    assert pick.confidence == pytest.approx(exact, rel=1e-5)


def test_confidence_of_a_sampled_choice_is_its_probability_among_the_survivors() -> None:
    sampler = LogitSampler(Sampling(temperature=0.5, top_k=3, top_p=1, min_p=0), 0)
    pick = present(sampler.pick(LOGITS, [], one_state([0, 1, 2, 5])))
    weights = np.exp(LOGITS[[0, 1, 2]])
    assert pick.confidence == pytest.approx(np.exp(LOGITS[pick.token]) / weights.sum(), rel=1e-5)


@pytest.mark.parametrize("temperature", [0, 1])
def test_no_token_is_left(temperature: float) -> None:
    cases: list[dict[str, Any]] = [{}, {"top_k": 0}, {"top_k": 0, "top_p": 1}, {"top_k": 0, "top_p": 1, "min_p": 0}]
    for options in cases:
        sampler = LogitSampler(Sampling(temperature=temperature, **options), 0)
        assert sampler.pick(row(1, 100), [], one_state([])) is None
        assert sampler.pick(np.full(100, -np.inf, np.float32), [], None) is None
    banned = Sampling(temperature=temperature, logit_bias={1: -math.inf})
    assert LogitSampler(banned, 0).pick(row(1, 100), [], one_state([1])) is None


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("temperature", [0, 1])
def test_logits_that_are_not_numbers(value: float, temperature: float) -> None:
    logits = row(1, 100)
    logits[40] = value
    with pytest.raises(CodespecError, match="not numbers"):
        LogitSampler(Sampling(temperature=temperature), 0).pick(logits, [], None)


def test_the_logits_are_left_as_they_are() -> None:
    logits = row(1, 100)
    before = logits.copy()
    sampling = Sampling(temperature=1, repeat_penalty=2, logit_bias={3: 1.0})
    LogitSampler(sampling, 0).pick(logits, [1, 2, 3], one_state(range(0, 100, 7)))
    assert (logits == before).all()


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": -1},
        {"temperature": math.nan},
        {"top_k": -1},
        {"top_p": 1.5},
        {"min_p": -0.1},
        {"repeat_penalty": 0},
        {"frequency_penalty": math.inf},
        {"presence_penalty": math.nan},
        {"penalty_window": -1},
        {"logit_bias": {-1: 1.0}},
        {"logit_bias": {1: math.nan}},
        {"logit_bias": {1: math.inf}},
    ],
    ids=str,
)
def test_settings_out_of_range(settings: dict) -> None:
    with pytest.raises(CodespecError, match=next(iter(settings))):
        LogitSampler(Sampling(**settings), 0)


def test_a_bias_on_a_token_that_does_not_exist() -> None:
    with pytest.raises(CodespecError, match="token 100, the vocabulary has 100"):
        LogitSampler(Sampling(logit_bias={100: 1.0}), 0).pick(row(1, 100), [], None)
