"""Sequences of a real model: decode, roll back, fork, abort, overflow, close."""

import gc
import threading
import time

import numpy as np
import pytest

from codespec.errors import Aborted, CodespecError, ContextFull
from codespec.llama.context import Context
from codespec.llama.model import Model
from codespec.llama.runtime import Cancellation
from codespec.models.registry import EMBEDDED_TARGET

TEXT = (
    '''
def fibonacci(n: int) -> int:
    """The n-th Fibonacci number."""
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a
'''
    * 4
)


@pytest.fixture(scope="module")
def model():
    with Model(EMBEDDED_TARGET, plain_buffers=True) as loaded:
        yield loaded


@pytest.fixture(scope="module")
def tokens(model):
    return model.vocabulary.tokenize(TEXT)[:200]


@pytest.fixture
def context(model):
    with Context(model, context_length=512, sequences=3) as made:
        yield made


@pytest.fixture
def exact(model):
    with Context(model, sequences=2, exact=True, padded=True) as made:
        yield made


def test_logits_have_a_row_for_each_token_wanted(context, tokens):
    sequence = context.sequence()
    assert sequence.decode(tokens[:10]).shape == (10, 8192)
    assert sequence.decode(tokens[10:20], last=1).shape == (1, 8192)
    assert sequence.decode(tokens[20:25], last=0).shape == (0, 8192)
    assert sequence.n_past == 25


def test_rows_are_in_order(exact, tokens):
    sequence = exact.sequence()
    rows = sequence.decode(tokens[:8]).copy()
    for index in range(8):
        sequence.rollback(index)
        assert np.array_equal(sequence.decode(tokens[index : index + 1])[0], rows[index])


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32])
def test_exact_logits_do_not_depend_on_the_batches(exact, tokens, size):
    sequence = exact.sequence()
    sequence.decode(tokens, last=0)
    sequence.rollback(len(tokens) - 1)
    reference = sequence.decode(tokens[-1:])[0].copy()
    sequence.rollback(0)
    for start in range(0, len(tokens) - 1, size):
        sequence.decode(tokens[start : min(start + size, len(tokens) - 1)])
    assert np.array_equal(sequence.decode(tokens[-1:])[0], reference)


def test_exact_logits_do_not_depend_on_what_was_rolled_back(exact, tokens):
    sequence = exact.sequence()
    reference = sequence.decode(tokens[:60], last=1)[0].copy()
    for length in (3, 17, 40):
        sequence.rollback(length)
        sequence.decode(tokens[100:130], last=0)
        sequence.rollback(length)
        assert np.array_equal(sequence.decode(tokens[length:60], last=1)[0], reference)


def test_rollback_beyond_what_is_held(context, tokens):
    sequence = context.sequence()
    sequence.decode(tokens[:5], last=0)
    with pytest.raises(ValueError, match="cannot roll back to 6: 5"):
        sequence.rollback(6)
    with pytest.raises(ValueError, match="-1"):
        sequence.rollback(-1)


def test_fork_goes_its_own_way(exact, tokens):
    first = exact.sequence()
    first.decode(tokens[:50], last=0)
    second = first.fork()
    expected = first.decode(tokens[50:60], last=1)[0].copy()
    second.decode(tokens[100:110], last=0)
    second.rollback(50)
    assert np.array_equal(second.decode(tokens[50:60], last=1)[0], expected)
    assert (first.n_past, second.n_past) == (60, 60)


def test_sequences_run_out_and_come_back(context):
    taken = [context.sequence() for _ in range(3)]
    with pytest.raises(CodespecError, match="every sequence"):
        context.sequence()
    taken[1].close()
    taken[1].close()
    assert context.sequence().n_past == 0


def test_overflow_leaves_the_sequence_as_it_was(context, tokens):
    sequence = context.sequence()
    sequence.decode(tokens, last=0)
    with pytest.raises(ContextFull, match=r"600 tokens do not fit into a context of 512; set a larger `context`"):
        sequence.decode(tokens * 2)
    assert sequence.n_past == 200
    assert sequence.decode(tokens[:5]).shape == (5, 8192)


def test_sequences_share_the_context(context, tokens):
    first, second = context.sequence(), context.sequence()
    first.decode(tokens * 2, last=0)
    with pytest.raises(ContextFull):
        second.decode(tokens, last=0)
    assert second.n_past == 0
    first.rollback(100)
    second.decode(tokens, last=0)


def test_nothing_to_decode(context):
    with pytest.raises(ValueError, match="0 tokens to decode"):
        context.sequence().decode([])


def test_abort_from_another_thread(context, tokens):
    sequence = context.sequence()
    sequence.decode(tokens[:7], last=0)
    cancellation = Cancellation()
    threading.Timer(0.05, cancellation.set).start()
    deadline = time.monotonic() + 20

    def decode_for_ever():
        while time.monotonic() < deadline:
            sequence.decode(tokens * 2, last=1)
            sequence.rollback(7)

    with context.cancellable(cancellation), pytest.raises(Aborted):
        decode_for_ever()
    assert cancellation.is_set()
    assert sequence.n_past == 7
    # The flag is that one generation's: the next decode runs.
    assert sequence.decode(tokens[7:9]).shape == (2, 8192)


def test_a_set_flag_stops_the_first_decode(context, tokens):
    cancellation = Cancellation()
    cancellation.set()
    with context.cancellable(cancellation), pytest.raises(Aborted):
        context.sequence().decode(tokens)


def test_too_large_a_context(model):
    with pytest.raises(
        CodespecError, match=r"GiB are needed for a context of 1,000,000,000 tokens .* smaller `context`"
    ):
        Context(model, context_length=10**9)


@pytest.mark.parametrize("exact", [False, True])
def test_a_context_of_few_tokens_holds_a_proposal(model, tokens, exact):
    with Context(model, context_length=3, exact=exact) as context:
        assert context.sequence().decode(tokens[:32]).shape == (32, 8192)


def test_opening_and_closing_does_not_leak():
    resource = pytest.importorskip("resource", reason="no resource module on this system")

    def use():
        with Model(EMBEDDED_TARGET) as model, Context(model) as context:
            context.sequence().decode([1, 2, 3])

    for _ in range(3):
        use()
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(15):
        use()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 60_000, f"{grown:,} KiB"  # one model and context alone are about 30 MB


def test_quantized_cache(model, tokens):
    with Context(model, kv_type="q8_0", flash_attention="on") as small, Context(model) as full:
        a = small.sequence().decode(tokens, last=1)[0].copy()
        b = full.sequence().decode(tokens, last=1)[0]
        assert 0 < np.abs(a - b).max() < 1
    with pytest.raises(
        CodespecError, match=r"requires flash_attn .*smaller `context`, or `flash_attention` of \"auto\""
    ):
        Context(model, kv_type="q8_0", flash_attention="off")


@pytest.mark.parametrize(
    ("length", "more", "expected"),
    [
        (512, {}, "off"),
        (20_000, {}, "llama"),
        (512, {"exact": True}, "on"),
        (512, {"flash_attention": "on"}, "on"),
        (512, {"kv_type": "q8_0", "flash_attention": "on"}, "on"),
    ],
)
def test_a_context_to_measure_in_has_the_attention_of_the_one_it_stands_for(length, more, expected):
    with Model(EMBEDDED_TARGET) as model, Context(model, context_length=length, **more) as context:
        assert context.flash_attention == expected
        with context.alike(256) as other:
            assert other.flash_attention == expected
