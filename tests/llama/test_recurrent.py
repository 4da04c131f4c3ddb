"""Models with recurrent layers go back exactly. ``python -m tests.llama.random_walk`` tries more."""

from __future__ import annotations

import contextlib
from random import Random
from statistics import mean

import numpy as np
import pytest

from codespec.engine.local import LocalEngine
from codespec.engine.prompt_cache import PromptCacheSettings
from codespec.grammar.grammar import Grammar
from codespec.llama.agreement import rows_agree
from codespec.llama.context import Context
from codespec.llama.model import Model
from codespec.llama.recurrent import AGAIN, CHECKPOINTS, TAIL, RecurrentSequence
from codespec.models.info import inspect
from codespec.protocols import CodespecError, Limits, Sampling
from tests.drafting import drafting_engine
from tests.fakes import FakeDraft
from tests.hybrid_models import ARCHITECTURES, HEAD, KV_HEADS, LAYERS, write
from tests.llama.keys import rows_of, session
from tests.llama.random_walk import ALONE, Walk

WRONG = 1.0
"""A difference that no order of sums explains: wrong states give 5 and more."""
RECURRENT = [name for name in ARCHITECTURES if name != "llama"]
STRINGS = Grammar.from_json_schema('{"type": "array", "items": {"type": "string"}, "minItems": 4}')
CODE = "def area(width, height):\n    return width * height\n\n\ndef main():\n    print(area(2, 3))\n"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {name: write(folder / f"{name}.gguf", name) for name in ARCHITECTURES}


@pytest.fixture(params=RECURRENT)
def path(request, models):
    return models[request.param]


@pytest.mark.parametrize("seed", [1, 2])
def test_whatever_is_done_the_logits_are_those_of_a_fresh_context(path, seed):
    with Model(path) as model:
        walk = Walk(model, Random(seed), ALONE)
        walk.run(100)
        assert walk.worst == 0 or not rows_agree(model)
        assert walk.worst < WRONG


def test_beside_other_sequences(path):
    with Model(path) as model:
        walk = Walk(model, Random(3))
        walk.run(120)
        assert walk.worst < WRONG
        assert len(walk.counts) == 9


def written(engine, prompt, draft, grammar, sampling):
    """Text, and its tokens."""
    state = engine.grammar_state(STRINGS) if grammar else None
    chunks = list(engine.generate(prompt, state, sampling, Limits(32), speculate=draft))
    return "".join(chunk.text for chunk in chunks), [token for chunk in chunks for token in chunk.round.tokens]


@pytest.mark.parametrize("grammar", [False, True])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_drafts_do_not_change_the_text(path, temperature, grammar):
    with Model(path) as model:
        if not rows_agree(model):
            pytest.skip("tokens alone and among others are computed otherwise on this machine")
    random = Random(5)
    with drafting_engine(path, context_length=1024) as engine:
        size = engine.vocabulary.size
        drafted = accepted = 0
        for number in range(10):
            prompt = engine.vocabulary.tokenize(CODE[: 20 + 6 * number])
            sampling = Sampling(temperature=temperature, seed=number)
            plain, tokens = written(engine, prompt, False, grammar, sampling)
            right = [*prompt, *tokens]

            def guess(held, right=right):
                rest = right[len(held) : len(held) + random.randrange(1, 14)]
                return [token if random.random() < 0.85 else random.randrange(size) for token in rest]

            assert written(engine, prompt, FakeDraft(guess), grammar, sampling)[0] == plain
            drafted += engine.statistics.drafted
            accepted += engine.statistics.accepted
        assert 0 < accepted < drafted


def test_a_key_takes_little_more_than_on_a_model_of_attention(path, models):
    with drafting_engine(models["llama"], exact=False, context_length=1024) as engine:
        usual = mean(session(engine, 80, 6, speculate=False)[0])
    with drafting_engine(path, exact=False, context_length=1024) as engine:
        assert mean(session(engine, 80, 6, speculate=False)[0]) <= 1.5 * usual


def test_checkpoints_are_few_and_closer_towards_the_end(path):
    with Model(path) as model, Context(model, context_length=2048, batch=64) as context:
        sequence = context.sequence()
        assert isinstance(sequence, RecurrentSequence)
        for token in range(1500):
            sequence.decode([token])
        places = [each.n_past for each in sequence._checkpoints]
        assert len(places) <= CHECKPOINTS
        assert 1500 - places[-1] <= AGAIN
        assert places[0] < 750
        sequence.rollback(0)
        sequence.decode(list(range(900)), 1)
        assert sequence._checkpoints[-1].n_past == 900 - TAIL


def test_a_prompt_that_was_put_aside_comes_back_with_its_checkpoints(path, tmp_path):
    about = PromptCacheSettings(saved=1 << 26, folder=tmp_path)
    text, other = CODE * 4, "import os\n" * 40
    with drafting_engine(path, prompt_cache=about, exact=False, context_length=1024) as engine:
        engine.prompt_cache.enter("here")
        prompts = [engine.vocabulary.tokenize(each) for each in (text, other, text[:-2])]
        whole = [written(engine, prompt, False, False, Sampling())[0] for prompt in prompts]
        rows = rows_of(engine)
        for prompt, expected in zip(prompts, whole, strict=True):
            assert written(engine, prompt, False, False, Sampling())[0] == expected
        assert sum(rows) < 3 * 32 + 4 * TAIL
        engine.drafts.save()
    with drafting_engine(path, prompt_cache=about, exact=False, context_length=1024) as engine:
        engine.prompt_cache.enter("here")
        rows = rows_of(engine)
        assert written(engine, prompts[0], False, False, Sampling())[0] == whole[0]
        assert sum(rows) < 32 + 2 * TAIL


def test_exact_or_said_why_not(path):
    with Model(path) as model:
        agree = rows_agree(model)
    if not agree:
        with pytest.raises(CodespecError, match="recurrent layers"):
            LocalEngine(path, context_length=512, exact=True)
        return
    with contextlib.closing(LocalEngine(path, context_length=512, exact=True)) as engine:
        tokens = engine.vocabulary.tokenize(CODE)
        together = np.array(engine._sequence.decode(tokens))
        engine._sequence.rollback(4)
        alone = [np.array(engine._sequence.decode([token])) for token in tokens[4:]]
        assert np.array_equal(np.concatenate(alone), together[4:])


def test_memory_is_that_of_the_layers_with_attention(models):
    bytes_of = {}
    for name, path in models.items():
        with Model(path) as model:
            bytes_of[name] = model.kv_bytes_per_token
        assert inspect(path).kv_bytes == bytes_of[name]
    assert bytes_of["llama"] == 4 * LAYERS * KV_HEADS * HEAD
    assert bytes_of["lfm2"] == bytes_of["granitehybrid"] == bytes_of["llama"] // 2
    assert bytes_of["qwen35"] == bytes_of["nemotron_h"] == bytes_of["llama"] // 4
