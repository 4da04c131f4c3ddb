"""A model's own heads draft for it: what they read, and that they change no text."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from codespec.engine.prompt_cache import PromptCacheSettings
from codespec.languages import by_id
from codespec.llama.agreement import rows_agree
from codespec.llama.context import Context
from codespec.llama.heads import HeadsSequence, HiddenStates, has_heads, heads_work
from codespec.llama.model import Model
from codespec.protocols import CodespecError, Limits, Sampling
from tests.drafting import drafting_engine
from tests.hybrid_models import write

CODE = "def area(width, height):\n    return width * height\n\n\ndef main():\n    print(area(2, 3))\n"


@pytest.fixture(scope="module", autouse=True)
def _states():
    # Not while tests are collected: who imports the binding after llama.cpp was loaded takes its log away.
    if not heads_work():
        pytest.skip("this llama.cpp gives no hidden states")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("heads")


@pytest.fixture(scope="module")
def clear(folder):
    return write(folder / "clear.gguf", "qwen35", heads="clear")


@pytest.fixture
def pair(clear):
    """A sequence of a model, and one of its head, whose logits are those of the state that it reads."""
    with contextlib.ExitStack() as stack:
        model = stack.enter_context(Model(clear, heads=True, plain_buffers=True))
        context = stack.enter_context(Context(model, context_length=512))
        own = stack.enter_context(context.alike(512, heads=True))
        sequence = context.sequence()
        heads = HeadsSequence(own, HiddenStates(sequence))
        yield sequence, heads
        heads.close()


def tokens_of(sequence, count):
    return [int(each) for each in np.random.default_rng(0).integers(0, sequence.context.model.vocabulary.size, count)]


def same(one, other):
    return np.abs(one - other).max() < 0.02  # states are kept in 16 bits


def test_a_token_is_read_beside_the_state_before_it(pair):
    sequence, heads = pair
    tokens = tokens_of(sequence, 300)
    logits = np.concatenate([sequence.decode(tokens[:200]).copy(), sequence.decode(tokens[200:]).copy()])
    for count in (2, 3, 150, 201, 300):
        found = heads.decode(tokens[heads.n_past : count], 1)[0]
        assert same(found, logits[count - 2])
        assert not same(found, logits[count - 3])
    heads.rollback(100)
    assert same(heads.decode(tokens[100:120], 1)[0], logits[118])


def test_behind_a_proposed_token_its_own_state_serves_until_the_targets_is_there(pair):
    sequence, heads = pair
    tokens = tokens_of(sequence, 60)
    before = sequence.decode(tokens[:40]).copy()
    first = heads.decode(tokens[:41], 1)[0].copy()
    assert same(first, before[39])
    assert same(heads.decode([tokens[41]], 1)[0], first)  # as its own state is the one that it read
    after = sequence.decode(tokens[40:50]).copy()
    assert same(heads.decode(tokens[42:51], 1)[0], after[9])
    assert heads.n_past == 51


def test_without_states_it_says_so_and_goes_on_when_there_are_some(pair):
    sequence, heads = pair
    tokens = tokens_of(sequence, 60)
    sequence.decode(tokens[:40])
    saved = sequence.save()
    sequence.restore(saved, 40)
    with pytest.raises(CodespecError, match="no state"):
        heads.decode(tokens[:41], 1)
    logits = sequence.decode(tokens[40:50]).copy()
    assert same(heads.decode(tokens[:51], 1)[0], logits[9])


def written(engine, prompt, sampling, speculate):
    return "".join(chunk.text for chunk in engine.generate(prompt, None, sampling, Limits(24), speculate=speculate))


@pytest.mark.parametrize("kind", ["random", "clear"])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_texts_are_the_same(folder, kind, temperature):
    path = write(folder / f"{kind}.gguf", "qwen35", heads=kind)
    with Model(path) as model:
        if not rows_agree(model):
            pytest.skip("tokens alone and among others are computed otherwise on this machine")
    about = PromptCacheSettings(memory=1 << 26)
    drafted = 0
    with drafting_engine(path, prompt_cache=about, context_length=512) as engine:
        engine.drafts.choose(engine.drafts.find("auto", by_id("python")))
        assert engine.drafts.chosen == path
        for number in range(8):
            other = CODE.replace("area", "volume") if number % 3 else CODE  # caches are put aside, and come back
            prompt = engine.vocabulary.tokenize(other * 2 + CODE[: 20 + 6 * number])
            sampling = Sampling(temperature=temperature, seed=number)
            plain = written(engine, prompt, sampling, False)
            for draft in (engine.drafts.model, True):
                assert written(engine, prompt, sampling, draft) == plain
                drafted += engine.statistics.drafted
    assert drafted > 100


def test_heads_that_do_not_work_are_left_alone(folder):
    assert has_heads(write(folder / "good.gguf", "qwen35", heads="random"))
    path = write(folder / "bad.gguf", "qwen35", heads="broken")
    assert not has_heads(path)
    with drafting_engine(path, exact=False, context_length=512) as engine:
        assert engine.model.heads == 0
        assert written(engine, engine.vocabulary.tokenize(CODE), Sampling(), True)


def test_only_where_there_are_heads_and_a_draft_is_wanted(folder, clear):
    with drafting_engine(clear, exact=False, context_length=512) as engine:
        assert engine.model.heads == 1
        assert engine.drafts.find("none", by_id("python")) is None
        engine.drafts.choose(None)
        assert engine.drafts.model is None
    with drafting_engine(write(folder / "none.gguf", "qwen35"), exact=False, context_length=512) as engine:
        assert engine.model.heads == 0
        assert engine.drafts.find("auto", by_id("python")) != engine.model.path
