"""Texts in one pass are those that each is alone, whatever happens to the pass or to one of them."""

import numpy as np
import pytest

from codespec.draft.sequence import HeldSequence
from codespec.protocols import Aborted, CodespecError, ContextFull, Limits, Round, Sampling
from codespec.speculative.generate import Generator
from codespec.speculative.side_by_side import Text, next_rounds
from tests.fakes import Table, TableTarget, random_grammar

VOCABULARY = 40
END = frozenset({0})
PROMPTS = [[1, 2, 3], [4, 5], [6, 7, 8, 9], [10]]
LIMITS = Limits(20)


def texts_of(target, prompts, samplings, grammars):
    made = []
    for prompt, sampling, grammar in zip(prompts, samplings, grammars, strict=True):
        held = HeldSequence(target.fork())
        generator = Generator(held, None, END)
        run = generator.begin(prompt, sampling, LIMITS, grammar)
        if prompt[:-2]:  # the first pass begins with two tokens
            held.extend(prompt[:-2], 0)
        made.append(Text(generator, run))
    return made


def write(texts):
    """The tokens of all texts."""
    live, written = dict(enumerate(texts)), [[] for _ in texts]
    while live:
        found = next_rounds(list(live.values()))
        for (index, _), step in zip(list(live.items()), found, strict=True):
            assert isinstance(step, Round), step
            written[index] += step.tokens
            if step.finish_reason is not None:
                del live[index]
    return written


def alone(table, prompt, sampling, grammar):
    steps = Generator(TableTarget(table), None, END).generate(prompt, sampling, LIMITS, grammar)
    return [token for step in steps for token in step.tokens]


@pytest.mark.parametrize("seed", range(12))
def test_each_text_is_the_one_it_is_alone(seed):
    rng = np.random.default_rng(seed)
    table = Table(VOCABULARY, seed)
    samplings = [Sampling(temperature=seed % 2, seed=index) for index in range(4)]
    grammars = [random_grammar(rng, VOCABULARY, END) if index % 2 else None for index in range(4)]
    expected = [
        alone(table, *each)
        for each in zip(PROMPTS, samplings, [each and each.copy() for each in grammars], strict=True)
    ]
    assert write(texts_of(TableTarget(table), PROMPTS, samplings, grammars)) == expected


def failing(target, error, times):
    """Let the next passes over several sequences fail."""
    decode, left = target.decode_each, [times]

    def decode_each(forks, tokens):
        if left[0]:
            left[0] -= 1
            raise error
        return decode(forks, tokens)

    target.decode_each = decode_each


@pytest.mark.parametrize(
    "error", [Aborted(), CodespecError("it failed"), ContextFull("full")], ids=["stopped", "failed", "full"]
)
def test_after_a_pass_that_came_to_nothing_all_go_on(error):
    rng = np.random.default_rng(5)
    table = Table(VOCABULARY, 5)
    grammars = [random_grammar(rng, VOCABULARY, END) for _ in range(4)]
    expected = [alone(table, prompt, Sampling(), each.copy()) for prompt, each in zip(PROMPTS, grammars, strict=True)]
    texts = texts_of(TableTarget(table), PROMPTS, [Sampling()] * 4, grammars)
    failing(texts[0].generator.sequence.target, error, 1)
    with pytest.raises(type(error)):
        next_rounds(texts)
    assert write(texts) == expected


class Broken:
    """A grammar that gives up after some tokens."""

    def __init__(self, after):
        self._left = after

    def copy(self):
        return Broken(self._left)

    def allows(self, token):
        return True

    def accept(self, tokens):
        self._left -= len(tokens)
        if self._left < 0:
            raise CodespecError("read in too many ways")
        return len(tokens)

    def mask_into(self, bits):
        bits.fill(0xFFFFFFFF)

    def rollback(self, n):
        self._left += n

    def forced(self):
        return b""

    can_end = finished = False


def test_a_text_that_fails_does_not_end_the_others():
    table = Table(VOCABULARY, 8)
    grammars = [None, Broken(3), None, None]
    texts = texts_of(TableTarget(table), PROMPTS, [Sampling()] * 4, grammars)
    live, written, failed = dict(enumerate(texts)), [[] for _ in texts], {}
    while live:
        for (index, _), step in zip(list(live.items()), next_rounds(list(live.values())), strict=True):
            if isinstance(step, CodespecError):
                failed[index] = str(step)
                del live[index]
                continue
            written[index] += step.tokens
            if step.finish_reason is not None:
                del live[index]
    assert failed == {1: "read in too many ways"}
    assert [written[index] for index in (0, 2, 3)] == [
        alone(table, PROMPTS[index], Sampling(), None) for index in (0, 2, 3)
    ]
