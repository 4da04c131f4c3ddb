"""Texts that a real model writes side by side are those that it writes alone, but for near ties."""

import threading

import numpy as np
import pytest

from codespec.engine.local import LocalEngine
from codespec.engine.slots import FEW, SLOTS, Slots
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
def slots(engine):
    slots = Slots(engine)
    yield slots
    slots.close()


def prompt_of(engine, name, lines=6):
    return engine.vocabulary.tokenize(f"import {name}\n" * lines + f"\n\ndef {name}(")


def go_on(slots, texts, steps=1000):
    """The texts' tokens and the last reason of each, after so many steps at most."""
    tokens, reasons, live = {id(each): [] for each in texts}, {}, list(texts)
    for _ in range(steps):
        if not live:
            break
        for text, chunk in slots.step(live, NEVER):
            assert not isinstance(chunk, CodespecError), chunk
            tokens[id(text)] += chunk.round.tokens
            if chunk.finish_reason is not None:
                reasons[id(text)] = chunk.finish_reason
                live.remove(text)
    return [tokens[id(each)] for each in texts], [reasons.get(id(each)) for each in texts]


def alone(engine, prompt, limits, sampling=None, grammar=None):
    chunks = engine.generate(prompt, grammar, sampling or Sampling(), limits)
    return [token for chunk in chunks for token in chunk.round.tokens]


def same(engine, prompt, one, other):
    """Whether two written are, up to a near tie."""
    place = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if place is None:
        return len(one) == len(other)
    logits = engine._generator.sequence.bring_to([*prompt, *one[:place]])[0][0]
    return abs(float(logits[one[place]] - logits[other[place]])) < NEAR


def test_each_text_is_the_one_it_is_alone(engine, slots):
    limits = Limits(40)
    prompts = [prompt_of(engine, name) for name in NAMES]
    texts = []
    for prompt in prompts:  # while the first ones write; the fifth makes more slots
        texts.append(slots.begin(prompt, None, Sampling(), limits))
        first, _ = go_on(slots, texts[:1], 1)
        assert texts[-1] is not None
        assert len(slots._slots) == (SLOTS if len(texts) > FEW else FEW)
        texts[0].before = [*getattr(texts[0], "before", []), *first[0]]
    written, reasons = go_on(slots, texts)
    written[0] = texts[0].before + written[0]
    assert reasons == ["length"] * len(NAMES)
    for prompt, own in zip(prompts, written, strict=True):
        assert same(engine, prompt, alone(engine, prompt, limits), own)


def test_grammars_and_chance_are_each_texts_own(engine, slots):
    grammar = Grammar.load("json")
    samplings = [Sampling(temperature=0.8, seed=seed) for seed in range(3)]
    prompt, limits = engine.vocabulary.tokenize("# a package\n"), Limits(30)
    states = [engine.grammar_state(grammar, 30) for _ in samplings]
    texts = [slots.begin(prompt, *pair, limits) for pair in zip(states, samplings, strict=True)]
    plain = slots.begin(prompt, None, Sampling(), limits)
    written, _ = go_on(slots, [*texts, plain])
    for sampling, own in zip(samplings, written, strict=False):
        state = engine.grammar_state(grammar, 30)
        assert state.accept(own) == len(own)
        assert same(engine, prompt, alone(engine, prompt, limits, sampling, engine.grammar_state(grammar, 30)), own)
    assert same(engine, prompt, alone(engine, prompt, limits), written[3])


def test_what_was_read_is_not_read_again(engine, slots):
    limits, prompts = Limits(2), [prompt_of(engine, name, 20) for name in NAMES[:FEW]]
    for times in range(2):
        texts = [slots.begin(prompt, None, Sampling(), limits) for prompt in prompts]
        go_on(slots, texts)
        read = [each.statistics.prefill_tokens for each in texts]
        assert all(read) if not times else not any(read)
    longer = [*prompts[1], *engine.vocabulary.tokenize("self, other):\n    return")]
    text = slots.begin(longer, None, Sampling(), limits)
    go_on(slots, [text])
    assert text.statistics.prefill_tokens < len(longer) - len(prompts[1]) + 2
    assert text.statistics.reused_tokens + text.statistics.prefill_tokens == len(longer) - 1


def test_what_the_target_has_read_is_not_read_again_and_what_lost_its_slot_is_kept(engine, slots):
    prompt = prompt_of(engine, "known", 30)
    engine.prefill(prompt)
    text = slots.begin([*prompt, 5], None, Sampling(), Limits(2))
    assert text.statistics.reused_tokens == len(prompt)
    go_on(slots, [text])
    for name in NAMES:  # takes all slots
        texts = [slots.begin(prompt_of(engine, f"{name}{n}", 30), None, Sampling(), Limits(1)) for n in range(FEW)]
        go_on(slots, texts)
    text = slots.begin([*prompt, 5], None, Sampling(), Limits(1))
    assert text.statistics.reused_tokens >= len(prompt)
    slots.release(text)


def test_a_text_that_goes_on_elsewhere_is_not_read_again(engine, slots):
    prompt = prompt_of(engine, "elsewhere", 30)
    text = slots.begin(prompt, None, Sampling(), Limits(20))
    (own,), _ = go_on(slots, [text], 8)
    slots.release(text, goes_on=True)
    rest = alone(engine, [*prompt, *own], Limits(20 - len(own)))
    assert engine.statistics.reused_tokens >= len(prompt) + len(own) - 2
    assert same(engine, prompt, alone(engine, prompt, Limits(20)), own + rest)


def test_there_are_so_many_slots_and_no_more(engine, slots):
    texts = [slots.begin(prompt_of(engine, "f"), None, Sampling(), Limits(4)) for _ in range(SLOTS)]
    assert None not in texts
    assert slots.begin(prompt_of(engine, "f"), None, Sampling(), Limits(4)) is None
    slots.release(texts[3])
    slots.release(texts[3])
    assert slots.begin(prompt_of(engine, "g"), None, Sampling(), Limits(4)) is not None


def test_a_text_that_is_too_long_for_a_slot_does_not_fit(engine, slots, monkeypatch):
    monkeypatch.setattr("codespec.engine.slots.MEMORY", FEW * 512 * engine.model.kv_bytes_per_token)
    prompt = prompt_of(engine, "long", 200)
    assert len(prompt) > 512
    assert not slots.fits(prompt, Limits(1))
    assert slots.begin(prompt, None, Sampling(), Limits(1)) is None
    short = prompt_of(engine, "short")
    assert slots.fits(short, Limits(10_000))
    text = slots.begin(short, None, Sampling(), Limits(10_000))
    written, reasons = go_on(slots, [text])
    assert text.cut
    assert reasons == ["length"]
    assert len(short) + len(written[0]) == 512 + 1


def test_a_stop_leaves_every_text_where_it_was(engine, slots):
    prompts, limits = [prompt_of(engine, name) for name in NAMES[:3]], Limits(30)
    texts = [slots.begin(prompt, None, Sampling(), limits) for prompt in prompts]
    before, _ = go_on(slots, texts, 12)
    stopped = threading.Event()
    stopped.set()
    assert slots.step(texts, stopped) == []
    after, _ = go_on(slots, texts)
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


def test_without_memory_there_are_no_slots(engine, slots, monkeypatch):
    def refuse(*arguments, **named):
        raise CodespecError("no memory")

    monkeypatch.setattr(type(engine.context), "alike", refuse)
    assert slots.begin([1, 2], None, Sampling(), Limits(4)) is None
    assert not slots.possible
    assert not slots.fits([1, 2], Limits(4))
