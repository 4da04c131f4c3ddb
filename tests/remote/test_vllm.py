"""A real vLLM on the CPU with the embedded target: ``make test-vllm`` installs it and runs these."""

import itertools
import os
import urllib.request
from collections import Counter

import pytest

pytest.importorskip("httpx")

from codespec import Grammar, LocalEngine
from codespec.languages import by_id
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import Limits, Sampling
from tests.remote.real_servers import VLLM, vllm_server
from tests.remote.same_text import compare, connected, places
from tests.remote.samples import SAMPLES
from tests.remote.scoring import CODE, text_of, tokens_of

pytestmark = pytest.mark.skipif(VLLM not in os.environ, reason=f"{VLLM} names no vLLM; `make test-vllm` installs one")

PLACES = int(os.environ.get("CODESPEC_PLACES", "4"))
"""Cursors in each language's sample, each without a grammar and with one."""


@pytest.fixture(scope="module")
def url():
    with vllm_server() as url:
        yield url


@pytest.fixture(scope="module")
def of_two_workers():
    with vllm_server(workers=2) as url, connected("vllm", url) as engine:
        yield engine


@pytest.fixture(scope="module")
def local():
    engine = LocalEngine(EMBEDDED_TARGET, exact=True)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def engine(url):
    with connected("vllm", url) as engine:
        assert engine.measure(lambda: True)
        yield engine


def own_text(engine, prompt):
    """The tokens that vLLM generates itself, without markers as ``SpeculativeEngine`` does."""
    ends = engine.vocabulary.end_tokens
    body = {"model": engine.name, "prompt": tokens_of(engine, prompt), "max_tokens": 32, "temperature": 0}
    body |= {"logit_bias": {str(token): -100 for token in engine.vocabulary.control_tokens - ends}}
    answer = engine._connection.ask("/v1/completions", body | {"return_token_ids": True})
    return list(itertools.takewhile(lambda token: token not in ends, answer["choices"][0]["token_ids"]))


def check(local, engine, language, constrained):
    """Texts of both are equal, or differ first at a near tie; how many are vLLM's own text."""
    engine.drafts.choose(engine.drafts.find("auto", by_id(language)))
    grammar, outcomes, own, calls, tokens = Grammar.load(language) if constrained else None, Counter(), 0, 0, 0
    for prompt in places(SAMPLES[language], PLACES):
        outcome, expected, found, apart = compare(local, engine, prompt, grammar)
        assert outcome in ("equal", "near"), (prompt[-40:], expected, found, apart)
        outcomes[outcome] += 1
        calls, tokens = calls + engine.statistics.target_calls, tokens + len(found)
        own += not constrained and found == own_text(engine, prompt)
    print(f"\n{language} {'grammar' if constrained else 'free'}: {dict(outcomes)}, {tokens} tokens ", end="")
    print(f"in {calls} requests{'' if constrained else f', {own} as its own greedy text'}")
    return own


@pytest.mark.parametrize("language", SAMPLES)
@pytest.mark.parametrize("constrained", [False, True], ids=["free", "grammar"])
def test_greedy_texts_are_the_local_targets(local, engine, language, constrained):
    own = check(local, engine, language, constrained)
    assert constrained or own == PLACES


@pytest.mark.parametrize("language", SAMPLES)
@pytest.mark.parametrize("constrained", [False, True], ids=["free", "grammar"])
def test_greedy_texts_of_two_workers_are_the_local_targets(local, of_two_workers, language, constrained):
    """Pipeline parallel: five heads do not divide among two."""
    check(local, of_two_workers, language, constrained)


def test_a_prefill_is_found_in_the_prefix_cache(engine, url):
    prompt = tokens_of(engine, SAMPLES["rust"])
    engine.prefill(prompt)
    before = cache_hits(url)
    list(engine.generate(prompt, limits=Limits(max_tokens=1), speculate=False))
    hits = cache_hits(url) - before
    print(f"\n{hits:.0f} of {len(prompt)} tokens from the prefix cache")
    assert hits > len(prompt) // 2


def test_sampled_text_is_the_local_targets_as_far_as_it_is_decided(local, engine):
    for seed in range(4):
        sampling = Sampling(temperature=0.7, seed=seed)
        expected, _ = text_of(local, CODE, sampling=sampling, count=16)
        found, _ = text_of(engine, CODE, sampling=sampling, count=16)
        assert found == expected[: len(found)]


def cache_hits(url):
    """Tokens that the prefix cache has served."""
    lines = urllib.request.urlopen(url + "/metrics", timeout=5).read().decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("vllm:prefix_cache_hits_total"))
