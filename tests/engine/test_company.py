"""Texts that a real model writes side by side are those that it writes alone, but for near ties."""

import threading

import numpy as np
import pytest

from codespec.engine.company import FEW, SEATS, Company
from codespec.engine.local import LocalEngine
from codespec.grammar import Grammar
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import CodespecError, Limits, Sampling

NEAR = 0.1
"""Between the logits of two tokens that may change places: what is decoded together is rounded otherwise."""
NEVER = threading.Event()
NAMES = ["add", "Parser", "read_file", "size", "words", "merge", "Queue", "shortest_path", "is_prime", "main"]


@pytest.fixture(scope="module")
def engine():
    engine = LocalEngine(EMBEDDED_TARGET)
    yield engine
    engine.close()


@pytest.fixture
def company(engine):
    company = Company(engine)
    yield company
    company.close()


def prompt_of(engine, name, lines=6):
    return engine.vocabulary.tokenize(f"import {name}\n" * lines + f"\n\ndef {name}(")


def go_on(company, members, steps=1000):
    """The texts' tokens and the last reason of each, after so many steps at most."""
    texts, reasons, live = {id(each): [] for each in members}, {}, list(members)
    for _ in range(steps):
        if not live:
            break
        for member, chunk in company.step(live, NEVER):
            assert not isinstance(chunk, CodespecError), chunk
            texts[id(member)] += chunk.round.tokens
            if chunk.finish_reason is not None:
                reasons[id(member)] = chunk.finish_reason
                live.remove(member)
    return [texts[id(each)] for each in members], [reasons.get(id(each)) for each in members]


def alone(engine, prompt, limits, sampling=None, grammar=None):
    chunks = engine.generate(prompt, grammar, sampling or Sampling(), limits)
    return [token for chunk in chunks for token in chunk.round.tokens]


def same(engine, prompt, one, other):
    """Whether two texts are, up to a near tie."""
    place = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if place is None:
        return len(one) == len(other)
    logits = engine._generator.sequence.bring_to([*prompt, *one[:place]])[0][0]
    return abs(float(logits[one[place]] - logits[other[place]])) < NEAR


def test_each_text_is_the_one_it_is_alone(engine, company):
    limits = Limits(40)
    prompts = [prompt_of(engine, name) for name in NAMES]
    members = []
    for prompt in prompts:  # while the first ones write; the fifth makes more seats
        members.append(company.join(prompt, None, Sampling(), limits))
        first, _ = go_on(company, members[:1], 1)
        assert members[-1] is not None
        assert len(company._seats) == (SEATS if len(members) > FEW else FEW)
        members[0].before = [*getattr(members[0], "before", []), *first[0]]
    texts, reasons = go_on(company, members)
    texts[0] = members[0].before + texts[0]
    assert reasons == ["length"] * len(NAMES)
    for prompt, text in zip(prompts, texts, strict=True):
        assert same(engine, prompt, alone(engine, prompt, limits), text)


def test_grammars_and_chance_are_each_texts_own(engine, company):
    grammar = Grammar.load("json")
    samplings = [Sampling(temperature=0.8, seed=seed) for seed in range(3)]
    prompt, limits = engine.vocabulary.tokenize("# a package\n"), Limits(30)
    states = [engine.grammar_state(grammar, 30) for _ in samplings]
    members = [company.join(prompt, *pair, limits) for pair in zip(states, samplings, strict=True)]
    plain = company.join(prompt, None, Sampling(), limits)
    texts, _ = go_on(company, [*members, plain])
    for sampling, text in zip(samplings, texts, strict=False):
        state = engine.grammar_state(grammar, 30)
        assert state.accept(text) == len(text)
        assert same(engine, prompt, alone(engine, prompt, limits, sampling, engine.grammar_state(grammar, 30)), text)
    assert same(engine, prompt, alone(engine, prompt, limits), texts[3])


def test_what_was_read_is_not_read_again(engine, company):
    limits, prompts = Limits(2), [prompt_of(engine, name, 20) for name in NAMES[:FEW]]
    for times in range(2):
        members = [company.join(prompt, None, Sampling(), limits) for prompt in prompts]
        go_on(company, members)
        read = [each.statistics.prefill_tokens for each in members]
        assert all(read) if not times else not any(read)
    longer = [*prompts[1], *engine.vocabulary.tokenize("self, other):\n    return")]
    member = company.join(longer, None, Sampling(), limits)
    go_on(company, [member])
    assert member.statistics.prefill_tokens < len(longer) - len(prompts[1]) + 2
    assert member.statistics.reused_tokens + member.statistics.prefill_tokens == len(longer) - 1


def test_what_the_target_has_read_is_not_read_again_and_what_lost_its_seat_is_kept(engine, company):
    prompt = prompt_of(engine, "known", 30)
    engine.prefill(prompt)
    member = company.join([*prompt, 5], None, Sampling(), Limits(2))
    assert member.statistics.reused_tokens == len(prompt)
    go_on(company, [member])
    for name in NAMES:  # takes all seats
        members = [company.join(prompt_of(engine, f"{name}{n}", 30), None, Sampling(), Limits(1)) for n in range(FEW)]
        go_on(company, members)
    member = company.join([*prompt, 5], None, Sampling(), Limits(1))
    assert member.statistics.reused_tokens >= len(prompt)
    company.leave(member)


def test_a_text_that_goes_on_elsewhere_is_not_read_again(engine, company):
    prompt = prompt_of(engine, "elsewhere", 30)
    member = company.join(prompt, None, Sampling(), Limits(20))
    (text,), _ = go_on(company, [member], 8)
    company.leave(member, goes_on=True)
    rest = alone(engine, [*prompt, *text], Limits(20 - len(text)))
    assert engine.statistics.reused_tokens >= len(prompt) + len(text) - 2
    assert same(engine, prompt, alone(engine, prompt, Limits(20)), text + rest)


def test_there_are_so_many_seats_and_no_more(engine, company):
    members = [company.join(prompt_of(engine, "f"), None, Sampling(), Limits(4)) for _ in range(SEATS)]
    assert None not in members
    assert company.join(prompt_of(engine, "f"), None, Sampling(), Limits(4)) is None
    company.leave(members[3])
    company.leave(members[3])
    assert company.join(prompt_of(engine, "g"), None, Sampling(), Limits(4)) is not None


def test_a_text_that_is_too_long_for_a_seat_does_not_fit(engine, company, monkeypatch):
    monkeypatch.setattr("codespec.engine.company.MEMORY", FEW * 512 * engine.model.kv_bytes_per_token)
    prompt = prompt_of(engine, "long", 200)
    assert len(prompt) > 512
    assert not company.fits(prompt, Limits(1))
    assert company.join(prompt, None, Sampling(), Limits(1)) is None
    short = prompt_of(engine, "short")
    assert company.fits(short, Limits(10_000))
    member = company.join(short, None, Sampling(), Limits(10_000))
    texts, reasons = go_on(company, [member])
    assert member.cut
    assert reasons == ["length"]
    assert len(short) + len(texts[0]) == 512 + 1


def test_a_stop_leaves_every_text_where_it_was(engine, company):
    prompts, limits = [prompt_of(engine, name) for name in NAMES[:3]], Limits(30)
    members = [company.join(prompt, None, Sampling(), limits) for prompt in prompts]
    before, _ = go_on(company, members, 12)
    stopped = threading.Event()
    stopped.set()
    assert company.step(members, stopped) == []
    after, _ = go_on(company, members)
    for prompt, one, other in zip(prompts, before, after, strict=True):
        assert same(engine, prompt, alone(engine, prompt, limits), one + other)


def test_cells_travel_between_contexts_of_one_stream_and_of_several(engine):
    tokens = prompt_of(engine, "cells", 20)
    with engine.context.alike(512, 3, batch=64, apart=True) as several, engine.context.alike(512) as one:
        sequences = [*(several.sequence() for _ in range(3)), one.sequence()]
        for giver in sequences:
            giver.rollback(0)
            giver.decode(tokens, 0)
            data = giver.save()
            expected = giver.decode([7]).copy()
            for taker in sequences:
                taker.restore(data, len(tokens))
                assert np.allclose(taker.decode([7]), expected, atol=1e-4)


def test_without_memory_there_is_no_company(engine, company, monkeypatch):
    def refuse(*arguments, **named):
        raise CodespecError("no memory")

    monkeypatch.setattr(type(engine.context), "alike", refuse)
    assert company.join([1, 2], None, Sampling(), Limits(4)) is None
    assert not company.possible
    assert not company.fits([1, 2], Limits(4))
