"""A window makes a text faster, never another one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from codespec import LocalEngine
from codespec.grammar import Grammar
from codespec.protocols import Limits, Sampling, Statistics
from tests.drafting import drafting_engine

CODE = '''\
def area(width, height):
    """Return the area of a rectangle."""
    return width * height


def perimeter(width, height):
    return 2 * (width + height)


'''
TOKENS = 48


@pytest.fixture(scope="module")
def engine():
    with drafting_engine() as engine:
        yield engine


def generated(
    engine: LocalEngine, sampling: Sampling, grammar: str | None = None, **options: object
) -> tuple[list[int], Statistics]:
    state = engine.grammar_state(Grammar.load(grammar)) if grammar else None
    prompt = engine.vocabulary.tokenize("[1, 2]\n" if grammar else CODE)
    engine.drafts.forget_generated()
    chunks = list(engine.generate(prompt, state, sampling, Limits(TOKENS), **options))  # type: ignore[arg-type]
    return [token for chunk in chunks if chunk.round for token in chunk.round.tokens], engine.statistics


def windows(engine: LocalEngine, text: Sequence[int]) -> list[list[int]]:
    """What a text might repeat: itself, itself with differences, another one, and rubbish."""
    rng = np.random.default_rng(1)
    cut = [token for index, token in enumerate(text) if index % 11]
    longer = [token for one, other in pairwise(text) for token in ((one, other) if one % 7 == 0 else (one,))]
    rubbish = [rng.integers(0, engine.vocabulary.size, count).tolist() for count in (1, 40, 400)]
    control = [*sorted(engine.vocabulary.end_tokens), *list(text)[:9]]
    return [list(text), cut, longer, list(text)[::-1], engine.vocabulary.tokenize(CODE), control, *rubbish]


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("grammar", [None, "json"])
def test_the_text_is_the_same_with_any_window(engine: LocalEngine, temperature: float, grammar: str | None) -> None:
    sampling = Sampling(temperature=temperature, seed=5)
    alone, _ = generated(engine, sampling, grammar, speculate=False)
    assert alone
    for window in windows(engine, alone):
        changes = [(window[:3], window[2:7]), (window[4:9], [])]
        assert generated(engine, sampling, grammar, window=window)[0] == alone
        assert generated(engine, sampling, grammar, window=window, changes=changes, document=window)[0] == alone


def test_a_window_that_comes_true_saves_passes(engine: LocalEngine) -> None:
    sampling = Sampling(temperature=0.0)
    text, without = generated(engine, sampling)
    again, statistics = generated(engine, sampling, window=text)
    assert again == text
    found = statistics.by_source["window"]
    assert found.accepted >= TOKENS - 2 * statistics.target_calls
    assert found.drafted >= found.accepted
    assert statistics.target_calls < without.target_calls
    assert statistics.target_calls <= 4


def test_the_next_generation_has_no_window(engine: LocalEngine) -> None:
    sampling = Sampling(temperature=0.0)
    text, _ = generated(engine, sampling)
    generated(engine, sampling, window=text)
    assert generated(engine, sampling)[1].by_source["window"].drafted == 0
