"""The server of llama-cpp-python, started here: it takes texts, and names tokens by their texts."""

import threading

import numpy as np
import pytest

pytest.importorskip("httpx")

from codespec import Grammar, LocalEngine, Sampling
from codespec.draft.sequence import HeldSequence
from codespec.languages import by_id
from codespec.llama.context import Context
from codespec.llama.model import Model
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import CodespecError, Limits
from codespec.remote.address import Address
from codespec.remote.connection import Connection
from codespec.remote.load import connect
from codespec.remote.scoring.scoring_engine import ScoringEngine
from codespec.remote.scoring.text_scorer import LlamaCppScorer
from tests.remote.real_servers import MISSING, llama_cpp_server
from tests.remote.scoring import PROMPTS, state_of, text_of

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"llama-cpp-python's server wants {', '.join(MISSING)}")

TEXT = "def main(argv):\n    for each in argv:\n        print(each)\n"


@pytest.fixture(scope="module")
def url():
    with llama_cpp_server() as url:
        yield url


@pytest.fixture(scope="module")
def local():
    engine = LocalEngine(EMBEDDED_TARGET)
    yield engine
    engine.close()


@pytest.fixture
def engine(url):
    engine = ScoringEngine(Connection(Address(url)), "llama-cpp-python", EMBEDDED_TARGET, context_length=512)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def model():
    with Model(EMBEDDED_TARGET) as model:
        yield model


@pytest.fixture
def scorer(url, model):
    connection = Connection(Address(url))
    yield LlamaCppScorer(connection, "", model.vocabulary)
    connection.close()


def logprobs(model, tokens):
    """float64 [tokens, V]."""
    context = Context(model, context_length=256)
    logits = HeldSequence(context.sequence()).extend(tokens).astype(np.float64)
    context.close()
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


@pytest.mark.parametrize("last", [1, 2, 5])
def test_rows_are_the_best_after_each_of_the_last_tokens(scorer, model, last):
    tokens = model.vocabulary.tokenize(TEXT)
    rows = scorer.score(tokens, last, 8)
    expected = logprobs(model, tokens)[-last:]
    assert len(rows) == last
    assert sum(len(row.ids) for row in rows) >= 2 * last
    for row, whole in zip(rows, expected, strict=True):
        assert row.ids.tolist() == np.argsort(-whole)[: len(row.ids)].tolist()
        assert np.allclose(row.logprobs, whole[row.ids], atol=2e-3)


def test_nothing_is_known_behind_what_it_would_cut_otherwise(scorer, model):
    tokens = model.vocabulary.tokenize(TEXT)
    letters = [model.vocabulary.tokenize(letter)[0] for letter in "retur"]
    rows = scorer.score([*tokens, *letters], 1 + len(letters), 8)
    assert len(rows[0].ids) > 0
    assert len(rows[-1].ids) == 0


@pytest.mark.parametrize("language", PROMPTS)
def test_greedy_text_is_the_local_targets(local, engine, language):
    engine.drafts.choose(engine.drafts.find("auto", by_id(language)))
    prompt, grammar = PROMPTS[language], Grammar.load(language)
    for state in (lambda engine: None, lambda engine: state_of(engine, grammar, prompt)):
        expected = text_of(local, prompt, state(local), count=16)
        found, reason = text_of(engine, prompt, state(engine), count=16)
        # It ends where tokens that share a text are among the best, and not before.
        assert found == expected[0][: len(found)]
        assert len(found) == len(expected[0]) or (reason == "grammar" and len(found) > 2)


def test_an_end_is_told_though_end_tokens_have_no_text(local, engine):
    prompt = [*engine.vocabulary.tokenize("x = 1\n"), *engine.vocabulary.end_tokens]
    for text in (PROMPTS["python"], prompt):
        expected = text_of(local, text, count=40)
        found = text_of(engine, text, count=40)
        if expected[1] == "stop":
            assert found == expected


def test_a_full_context_ends_the_text(url):
    engine = ScoringEngine(Connection(Address(url)), "llama-cpp-python", EMBEDDED_TARGET, context_length=4096)
    tokens = engine.vocabulary.tokenize("total = count + 1\n" * 200)
    with pytest.raises(CodespecError, match=r"remote\.context"):
        list(engine.generate(tokens, limits=Limits(max_tokens=2)))
    engine.close()


def test_a_trial_that_cannot_be_made_decides_nothing(url):
    before = threading.active_count()
    engine = connect("llama-cpp-python", url, vocabulary=EMBEDDED_TARGET, context_length=16)
    assert engine.about["remote"]["mode"] == "score"
    engine.close()
    assert threading.active_count() == before


def test_sampled_text_is_never_another_one(local, engine):
    for seed in range(3):
        sampling = Sampling(temperature=0.8, seed=seed)
        expected, _ = text_of(local, PROMPTS["python"], sampling=sampling, count=12)
        found, _ = text_of(engine, PROMPTS["python"], sampling=sampling, count=12)
        assert found == expected[: len(found)]
