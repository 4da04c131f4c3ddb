"""Requests for rows and how the answers are read, against stand-ins with a model's own logits."""

from contextlib import suppress

import numpy as np
import pytest

pytest.importorskip("httpx")

from codespec.llama.model import Model
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import ContextFull, Sampling
from codespec.remote.address import Address
from codespec.remote.connection import Connection
from codespec.remote.errors import Away, Refused
from codespec.remote.scoring.rows import UNKNOWN, best_of, dense
from codespec.remote.scoring.scorers import SglangScorer
from codespec.remote.scoring.scoring_target import ScoringTarget
from codespec.remote.scoring.vllm_scorer import VllmScorer
from codespec.speculative.sparse import SparseSampler, Undecided
from tests.fakes import SetGrammar
from tests.remote.scoring_stand_ins import StandIn

SCORERS = {"vllm": VllmScorer, "sglang": SglangScorer}
GENERATE = "/inference/v1/generate"
TEXT = "def main(argv):\n    for each in argv:\n        print(each)\n"


@pytest.fixture(scope="module", params=SCORERS)
def stand_in(request):
    server = StandIn(request.param, EMBEDDED_TARGET, length=256)
    yield server
    server.close()


@pytest.fixture(scope="module")
def model():
    with Model(EMBEDDED_TARGET, vocabulary_only=True) as model:
        yield model


@pytest.fixture
def scorer(stand_in, model):
    stand_in.asked.clear()
    connection = Connection(Address(stand_in.url))
    yield SCORERS[stand_in.kind](connection, "", model.vocabulary)
    connection.close()


@pytest.mark.parametrize("last", [1, 2, 7])
def test_rows_are_the_best_after_each_of_the_last_tokens(scorer, stand_in, model, last):
    tokens = model.vocabulary.tokenize(TEXT)
    rows = scorer.score(tokens, last, 5)
    expected = stand_in.logprobs(tokens, last)
    assert len(rows) == last
    for row, logprobs in zip(rows, expected, strict=True):
        assert row.ids.tolist() == np.argsort(-logprobs, kind="stable")[:5].tolist()
        assert np.array_equal(row.logprobs, logprobs[row.ids])


def test_one_row_leaves_the_prefix_cache_in_use(scorer, stand_in, model):
    tokens = model.vocabulary.tokenize(TEXT)
    scorer.score(tokens, 1, 5)
    scorer.score(tokens, 3, 5)
    one, three = (body for path, body in stand_in.asked if path != GENERATE)
    if stand_in.kind == "vllm":
        assert "prompt_logprobs" not in one
        assert three["prompt_logprobs"] == 5
        longer = (tokens * 20)[:100]
        rows = scorer.score(longer, 3, 5)
        assert "prompt_logprobs" not in stand_in.asked[-1][1]
        assert stand_in.asked[-1][1]["prompt"] == [longer[:-2], longer[:-1], longer]
        expected = stand_in.logprobs(longer, 3)
        assert [row.ids.tolist() for row in rows] == [np.argsort(-row, kind="stable")[:5].tolist() for row in expected]
    else:
        assert (one["logprob_start_len"], three["logprob_start_len"]) == (-1, len(tokens) - 3)


@pytest.fixture
def caching(model):
    """A vLLM that tells how much of a prompt was cached."""
    server = StandIn("vllm", EMBEDDED_TARGET, length=256, scale_out=True)
    connection = Connection(Address(server.url))
    yield server, VllmScorer(connection, "", model.vocabulary)
    connection.close()
    server.close()


def rows_are_right(server, scorer, tokens, last):
    rows = scorer.score(tokens, last, 5)
    expected = server.logprobs(tokens, last)
    assert [row.ids.tolist() for row in rows] == [np.argsort(-row, kind="stable")[:5].tolist() for row in expected]
    assert all(np.array_equal(row.logprobs, given[row.ids]) for row, given in zip(rows, expected, strict=True))


@pytest.mark.parametrize("length", range(90, 107))
def test_vllm_reads_what_is_not_cached_alone(caching, model, length):
    server, scorer = caching
    tokens = (model.vocabulary.tokenize(TEXT) * 20)[:length]
    scorer.warm(tokens[:-7])
    rows_are_right(server, scorer, tokens, 8)  # the row after the last token that was warmed, too
    assert [path for path, _ in server.asked] == ["/v1/completions", GENERATE]
    assert server.read[-1] < 8 + 16


def test_rows_of_the_cached_part_are_not_taken(caching, model):
    server, scorer = caching
    tokens = (model.vocabulary.tokenize(TEXT) * 20)[:100]
    rows_are_right(server, scorer, tokens, 16)
    rows_are_right(server, scorer, tokens, 16)
    assert [path for path, _ in server.asked] == [GENERATE, GENERATE, "/v1/completions"]
    assert server.asked[-1][1]["prompt"] == tokens[:96]  # the rest came with the pass over what was not
    rows_are_right(server, scorer, [*tokens[:90], *tokens[:6]], 7)
    assert server.asked[-1][0] == GENERATE


def test_a_vllm_that_tells_no_cached_tokens_is_not_asked_so_again(caching, model):
    server, scorer = caching
    server.tells_cached = False
    tokens = (model.vocabulary.tokenize(TEXT) * 20)[:100]
    rows_are_right(server, scorer, tokens, 3)
    rows_are_right(server, scorer, tokens, 4)
    assert [path for path, _ in server.asked] == [GENERATE, "/v1/completions", "/v1/completions"]


def test_nothing_is_read_that_is_no_answer(scorer, stand_in, model):
    tokens = model.vocabulary.tokenize(TEXT)
    complete = stand_in.answer
    for spoil in (lambda found: {}, lambda found: [], lambda found: {"choices": [{}], "meta_info": {}}):
        stand_in.answer = lambda path, body, spoil=spoil: (200, spoil(complete(path, body)[1]))
        with pytest.raises(Away, match=r"remote\.kind"):
            scorer.score(tokens, 3, 5)
    del stand_in.answer


def test_a_place_too_few_is_no_answer(scorer, stand_in, model):
    tokens = model.vocabulary.tokenize(TEXT)

    def shortened(path, body):
        status, found = StandIn.answer(stand_in, path, body)
        for place in (*found.get("choices", ()), found.get("meta_info", {})):
            for key in ("prompt_logprobs", "input_top_logprobs"):
                if place.get(key):
                    place[key] = place[key][:-1]
        return status, found

    stand_in.answer = shortened
    try:
        with pytest.raises(Away, match="3 places"):
            scorer.score(tokens, 3, 5)
    finally:
        del stand_in.answer


def test_a_row_holds_no_more_than_was_asked_for():
    row = best_of([(7, -5.0), (1, -0.5), (2, -1.0), (3, -9999.0)], 2, 10)
    assert row.ids.tolist() == [1, 2]
    assert best_of([(1, -0.5), (99, -0.6)], 2, 10).ids.tolist() == [1]
    for wrong in (3.0, float("nan")):
        assert best_of([(1, wrong), (2, -1.0)], 2, 10) is UNKNOWN


def test_a_target_keeps_its_tokens(scorer, stand_in, model):
    tokens = model.vocabulary.tokenize(TEXT)
    target = ScoringTarget(scorer, model.vocabulary.size, 64)
    target.decode(tokens[:-2], 0)
    assert stand_in.asked == []
    logits = target.decode(tokens[-2:])
    assert logits.shape == (2, model.vocabulary.size)
    assert logits.dtype == np.float32
    assert np.array_equal(logits, dense(scorer.score(tokens, 2, scorer.best), model.vocabulary.size))
    target.rollback(3)
    assert target.n_past == 3
    with pytest.raises(ContextFull):
        target.decode([1] * 61)
    assert target.n_past == 3


def only(allowed):
    return SetGrammar([dict.fromkeys(allowed, 0)], frozenset(), frozenset())


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=1.0, seed=3)])
def test_more_is_found_out_about_what_a_grammar_allows(scorer, stand_in, model, sampling):
    tokens = model.vocabulary.tokenize(TEXT)
    target = ScoringTarget(scorer, model.vocabulary.size, 256)
    logprobs = stand_in.logprobs(tokens, 1)[0]
    worst = [int(token) for token in np.argsort(logprobs)[:40]]
    grammar, sampler = only(worst), SparseSampler(sampling, 0)
    found = []
    for rows in target.closer(tokens, grammar, sampler):
        with suppress(Undecided):
            found.append(sampler.choose_closely(rows[0], tokens, grammar))
    whole = SparseSampler(sampling, 0).choose_closely(logprobs, tokens, grammar)
    # vLLM tells which token is the best of some, and not how likely they are.
    assert found == ([] if stand_in.kind == "vllm" and sampling.temperature else [whole])


def test_an_engine_is_not_asked_again_for_more_than_it_names(scorer, stand_in, model):
    tokens = model.vocabulary.tokenize(TEXT)
    target = ScoringTarget(scorer, model.vocabulary.size, 256)
    sampler = SparseSampler(Sampling(temperature=1.0), 0)
    for _ in range(2):
        list(target.closer(tokens, None, sampler))
    if stand_in.kind == "vllm":
        assert [body["logprobs"] for _, body in stand_in.asked] == [200]
    else:
        assert [body["top_logprobs_num"] for _, body in stand_in.asked] == [1024, 1024]


def test_a_banned_token_is_not_asked_for(scorer, stand_in, model):
    if stand_in.kind != "vllm":
        pytest.skip("SGLang tells how likely each one is")
    tokens = model.vocabulary.tokenize(TEXT)
    logprobs = stand_in.logprobs(tokens, 1)[0]
    worst = [int(token) for token in np.argsort(logprobs)[:9]]
    target = ScoringTarget(scorer, model.vocabulary.size, 256)
    best = max(worst, key=lambda token: logprobs[token])
    sampler = SparseSampler(Sampling(logit_bias={best: float("-inf")}), 0)
    [row] = target.closer(tokens, only(worst), sampler)
    second = max(set(worst) - {best}, key=lambda token: logprobs[token])
    assert sampler.choose_closely(row[0], tokens, only(worst)) == second
    # A bias that is no ban would have to be weighed against what is not known.
    biased = SparseSampler(Sampling(logit_bias={worst[0]: 2.0}), 0)
    assert list(target.closer(tokens, only(worst), biased)) == []


def test_a_model_that_is_not_there(stand_in, model):
    connection = Connection(Address(stand_in.url))
    with pytest.raises(Refused, match="stand-in"):
        SCORERS[stand_in.kind](connection, "other", model.vocabulary)
    connection.close()
