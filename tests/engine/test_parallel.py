"""Texts that are decoded side by side are those that the target alone gives one after the other."""

from typing import Any

import numpy as np
import pytest

from codespec.engine.parallel import TOGETHER, ParallelSequences
from codespec.llama.context import Context
from codespec.llama.model import Model
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import Aborted, CodespecError, ContextFull, Limits, Sampling
from codespec.speculative.generate import Generator
from tests.fakes import SetGrammar, Table, TableTarget, random_grammar

VOCABULARY = 40
END = frozenset({0})


def samplings(count, temperature=1.0):
    return [Sampling(temperature=temperature, sample=index, seed=3) for index in range(count)]


def collect(steps, count):
    texts, reasons = [[] for _ in range(count)], [None] * count
    for index, step in steps:
        texts[index] += step.tokens
        assert reasons[index] is None
        reasons[index] = step.finish_reason
    return texts, reasons


def alone(table, prompt, sampling, limits, grammar=None):
    texts, _ = collect(
        ((0, step) for step in Generator(TableTarget(table), None, END).generate(prompt, sampling, limits, grammar)), 1
    )
    return texts[0]


@pytest.mark.parametrize("seed", range(5))
def test_each_text_is_the_one_it_would_be_alone(seed):
    rng = np.random.default_rng(seed)
    table, prompt = Table(VOCABULARY, seed), [1, 2, 3]
    grammar = random_grammar(rng, VOCABULARY, END)
    target = TableTarget(table)
    steps = Generator(target, None, END).together(
        prompt, samplings(4), Limits(20), [grammar.copy() for _ in range(4)], set()
    )
    texts, reasons = collect(steps, 4)
    assert texts == [alone(table, prompt, each, Limits(20), grammar.copy()) for each in samplings(4)]
    assert None not in reasons
    assert len({tuple(text) for text in texts}) > 1
    assert target.tokens == prompt
    assert all(fork.closed for fork in target.forks)


def test_the_prompt_is_read_once_and_the_next_one_finds_it():
    target = TableTarget(Table(VOCABULARY, 1))
    generator = Generator(target, None, END)
    collect(generator.together([1, 2, 3], samplings(3), Limits(5), [None] * 3, set()), 3)
    assert target.decodes == [[1, 2, 3]]
    assert generator.statistics.prefill_tokens == 3
    list(generator.generate([1, 2, 3, 4], Sampling(), Limits(1)))
    assert generator.statistics.reused_tokens == 3


def test_a_text_that_is_no_longer_wanted_takes_no_part():
    target = TableTarget(Table(VOCABULARY, 2))
    stopped = set()
    lengths = [0, 0]
    steps = Generator(target, None, frozenset()).together([1], samplings(2), Limits(10), [None] * 2, stopped)
    for index, step in steps:
        lengths[index] += len(step.tokens)
        if lengths[0] == 3:
            stopped.add(0)
    assert lengths == [3, 10]
    assert target.forks[0].closed


def test_closing_in_the_middle_gives_the_forks_back():
    target = TableTarget(Table(VOCABULARY, 2))
    steps: Any = Generator(target, None, frozenset()).together([1], samplings(3), Limits(10), [None] * 3, set())
    for _ in range(7):
        next(steps)
    steps.close()
    assert len(target.forks) == 3
    assert all(fork.closed for fork in target.forks)


def test_an_abort_ends_all_texts():
    target = TableTarget(Table(VOCABULARY, 2))
    steps = Generator(target, None, frozenset()).together([1], samplings(2), Limits(10), [None] * 2, set())
    for _ in range(4):
        next(steps)
    for fork in target.forks:
        fork.abort_at = {1}
    assert [(index, step.finish_reason) for index, step in steps] == [(0, "cancelled"), (1, "cancelled")]


def test_a_full_context_ends_all_texts():
    target = TableTarget(Table(VOCABULARY, 2), n_ctx=12)
    steps = Generator(target, None, frozenset()).together([1, 2], samplings(2), Limits(100), [None] * 2, set())
    texts, reasons = collect(steps, 2)
    assert reasons == ["length", "length"]
    assert all(len(text) == 5 for text in texts)


def test_a_cancelled_generation_says_so_for_each_text():
    class Set:
        def is_set(self):
            return True

    steps = Generator(TableTarget(Table(VOCABULARY, 2)), None, END).together(
        [1], samplings(2), Limits(5), [None] * 2, set(), Set()
    )
    assert collect(steps, 2)[1] == ["cancelled", "cancelled"]


def test_a_finished_grammar_ends_its_own_text_only():
    finished = SetGrammar([{5: 1}, {}], frozenset({1}), frozenset())
    assert finished.accept([5]) == 1
    assert finished.finished
    steps = Generator(TableTarget(Table(VOCABULARY, 2)), None, frozenset()).together(
        [1], samplings(2), Limits(4), [finished, None], set()
    )
    texts, reasons = collect(steps, 2)
    assert texts[0] == []
    assert len(texts[1]) == 4
    assert reasons == ["stop", "length"]


def test_a_generation_that_begins_ends_this_one():
    generator = Generator(TableTarget(Table(VOCABULARY, 2)), None, frozenset())
    steps = generator.together([1], samplings(2), Limits(9), [None] * 2, set())
    for _ in range(2):
        next(steps)
    list(generator.generate([1, 2], Sampling(), Limits(1)))
    with pytest.raises(CodespecError, match="another generation"):
        list(steps)


@pytest.fixture(scope="module")
def model():
    made = Model(EMBEDDED_TARGET)
    yield made
    made.close()


def test_the_forks_of_a_real_model_have_the_logits_of_its_sequence(model):
    with Context(model, context_length=256, sequences=4, spare=256) as context:
        assert context.length == 256
        base = context.sequence()
        base.decode(list(range(100, 350)), 0)
        forks = [base.fork() for _ in range(3)]
        for step in range(5):
            each = base.decode_each(forks, [[400 + step], [500 + step], [600 + step]])
        own = base.decode([600, 601, 602, 603, 604], 1)
        assert np.abs(own[0] - each[2]).max() < 0.05
        assert np.abs(own[0] - each[1]).max() > 0.5
        base.decode_each(forks, [[1], [2], [3]])
        with pytest.raises(ContextFull):
            base.decode_each(forks, [[1], [2], [3]])
        for fork in forks:
            fork.close()
        base.rollback(250)
        assert np.abs(base.decode([600, 601, 602, 603, 604], 1) - own).max() < 0.05


def test_a_fork_that_cannot_be_filled_is_given_back(model):
    with Context(model, context_length=256, sequences=1) as context:
        parallel = ParallelSequences(context)
        base = context.sequence()
        base.decode([100, 101], 0)
        torn = type("Torn", (), {"save": lambda self: base.save()[:10], "n_past": 2})()
        for _ in range(2 * TOGETHER):
            with pytest.raises(CodespecError, match="could not be restored"):
                parallel.of(torn)()
        fork = parallel.of(base)()
        assert fork.n_past == 2
        parallel.close()


def test_an_aborted_pass_leaves_the_forks_as_they_were(model):
    from codespec.llama.runtime import Cancellation

    with Context(model, context_length=256, sequences=3, spare=64) as context:
        base = context.sequence()
        base.decode([100, 101], 0)
        forks = [base.fork(), base.fork()]
        before = base.decode_each(forks, [[5], [6]]).copy()
        for fork in forks:
            fork.rollback(2)
        cancellation = Cancellation()
        cancellation.set()
        with context.cancellable(cancellation), pytest.raises(Aborted):
            base.decode_each(forks, [[5], [6]])
        assert [fork.n_past for fork in forks] == [2, 2]
        assert np.array_equal(base.decode_each(forks, [[5], [6]]), before)
