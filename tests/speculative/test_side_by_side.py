"""Texts in one pass are those that each is alone, whatever is proposed, and whatever happens to the pass or to one."""

import numpy as np
import pytest

from codespec.draft.sequence import HeldSequence
from codespec.protocols import Aborted, CodespecError, ContextFull, Limits, Proposal, Round, Sampling
from codespec.speculative.generate import Generator
from codespec.speculative.side_by_side import Text, next_rounds
from tests.fakes import Table, TableTarget, random_grammar

VOCABULARY = 40
END = frozenset({0})
PROMPTS = [[1, 2, 3], [4, 5], [6, 7, 8, 9], [10]]
LIMITS = Limits(20)


class Guesses:
    """A draft that is right for some tokens and then wrong, as far as the grammar lets it."""

    def __init__(self, table, seed):
        self._table, self._random = table, np.random.default_rng(seed)

    def propose(self, tokens, grammar, sampler, more):
        found = []
        for _ in range(int(self._random.integers(0, 4))):
            if not more(1.0):
                break
            pick = sampler.pick(self._table.row([*tokens, *found]), [*tokens, *found], grammar)
            token = (
                pick.token if pick is not None and self._random.random() < 0.7 else int(self._random.integers(1, 40))
            )
            if grammar is not None and not grammar.accept([token]):
                break
            found.append(token)
        return Proposal(tuple(found))


def texts_of(target, prompts, samplings, grammars, drafts):
    made = []
    for prompt, sampling, grammar, draft in zip(prompts, samplings, grammars, drafts, strict=True):
        held = HeldSequence(target.fork())
        generator = Generator(held, draft, END, 8)
        run = generator.begin(prompt, sampling, LIMITS, grammar)
        if prompt[:-1]:
            held.extend(prompt[:-1], 0)
        made.append(Text(generator, run))
    return made


def write(texts, most_rows=64):
    """The tokens of all texts, and the rows of each pass."""
    live, written, rows = dict(enumerate(texts)), [[] for _ in texts], []
    while live:
        found = next_rounds(list(live.values()), most_rows, lambda count, held, ms: rows.append(count))
        for (index, _), step in zip(list(live.items()), found, strict=True):
            assert isinstance(step, Round), step
            written[index] += step.tokens
            if step.finish_reason is not None:
                del live[index]
    return written, rows


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
    drafts = [Guesses(table, index) if index else None for index in range(4)]
    written, _ = write(texts_of(TableTarget(table), PROMPTS, samplings, grammars, drafts))
    assert written == expected


def test_a_pass_has_no_more_rows_than_it_may():
    table = Table(VOCABULARY, 3)
    drafts = [Guesses(table, index) for index in range(4)]
    texts = texts_of(TableTarget(table), PROMPTS, [Sampling()] * 4, [None] * 4, drafts)
    written, rows = write(texts, 5)
    assert max(rows) == 5
    assert written == [alone(table, prompt, Sampling(), None) for prompt in PROMPTS]


def failing(target, error, times):
    """Let the next passes over several sequences fail."""
    decode, left = target.decode_each, [times]

    def decode_each(forks, tokens):
        if left[0]:
            left[0] -= 1
            raise error
        return decode(forks, tokens)

    target.decode_each = decode_each


@pytest.mark.parametrize("error", [Aborted(), CodespecError("it failed")], ids=["stopped", "failed"])
def test_after_a_pass_that_came_to_nothing_all_go_on(error):
    rng = np.random.default_rng(5)
    table = Table(VOCABULARY, 5)
    grammars = [random_grammar(rng, VOCABULARY, END) for _ in range(4)]
    expected = [alone(table, prompt, Sampling(), each.copy()) for prompt, each in zip(PROMPTS, grammars, strict=True)]
    drafts = [Guesses(table, index) for index in range(4)]
    texts = texts_of(TableTarget(table), PROMPTS, [Sampling()] * 4, grammars, drafts)
    failing(texts[0].generator.sequence.target, error, 1)
    with pytest.raises(type(error)):
        next_rounds(texts, 64)
    assert write(texts)[0] == expected


def test_where_proposals_have_no_room_the_pass_does_without():
    table = Table(VOCABULARY, 6)
    drafts = [Guesses(table, index) for index in range(4)]
    texts = texts_of(TableTarget(table), PROMPTS, [Sampling()] * 4, [None] * 4, drafts)
    failing(texts[0].generator.sequence.target, ContextFull("full"), 1)
    assert write(texts)[0] == [alone(table, prompt, Sampling(), None) for prompt in PROMPTS]


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
    texts = texts_of(TableTarget(table), PROMPTS, [Sampling()] * 4, grammars, [None] * 4)
    live, written, failed = dict(enumerate(texts)), [[] for _ in texts], {}
    while live:
        for (index, _), step in zip(list(live.items()), next_rounds(list(live.values()), 64), strict=True):
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
