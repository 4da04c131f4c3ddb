"""The time of one piece of work, and what asks for it."""

import math
import threading

import numpy as np
import pytest

from codespec.errors import Aborted
from codespec.grammar import Grammar
from codespec.grammar.tokenizer import byte_tokenizer
from codespec.patience import OutOfTime, aside, check, give_up, left, over, within


def test_there_is_time_where_nothing_was_said():
    assert left() == math.inf
    assert not over()
    check()


def test_work_ends_when_its_time_is_over():
    with within(0.0):
        assert over()
        assert left() <= 0
        with pytest.raises(OutOfTime):
            check()
    check()


def test_within_is_never_longer_than_around_it():
    with within(5.0), within(50.0):
        assert 0 < left() <= 5.0
    with within(50.0):
        with within(5.0):
            assert left() <= 5.0
        assert left() > 40.0


def test_what_nobody_wants_ends_in_blocks_within_others_too():
    with within(60.0, stopped=lambda: True), within(5.0):
        assert over()
    with within(60.0), within(5.0, stopped=lambda: True):
        assert over()


def test_what_nobody_wants_ends_and_is_not_out_of_time():
    with within(60.0, stopped=lambda: True), pytest.raises(Aborted) as ended:
        check()
    assert not isinstance(ended.value, OutOfTime)


def test_loading_costs_no_time(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("codespec.patience.perf_counter", lambda: now[0])
    with within(60.0):
        with aside():
            now[0] += 100.0
        assert left() == 60.0
        with within(50.0), aside():
            now[0] += 100.0
        assert left() == 60.0


def test_who_gives_up_goes_on_with_nothing():
    with within(60.0):
        with pytest.raises(OutOfTime), within(math.inf):
            give_up()
        assert left() == -math.inf
        with aside():
            pass
        with pytest.raises(OutOfTime):
            check()
    check()


def test_every_thread_has_its_own():
    seen = []
    with within(0.0):
        other = threading.Thread(target=lambda: seen.append(left()))
        other.start()
        other.join()
    assert seen == [math.inf]


def test_a_state_takes_all_tokens_or_none_where_time_is_over():
    state, text = Grammar.load("json").state(byte_tokenizer()), list(b"[" + b"1," * 40)
    asked = []
    with within(60.0, stopped=lambda: asked.append(1) or len(asked) > 3), pytest.raises(Aborted):
        state.accept(text)
    assert state.accept(text) == len(text)
    assert state.accept(b"]") == 0
    assert state.accept(b"1]") == 2
    assert state.can_end


def test_no_mask_is_begun_that_would_take_too_long():
    """After 300 awaits a token takes a millisecond, and a mask as long as a thousand tokens."""
    state, bits = Grammar.load("typescript").state(byte_tokenizer()), np.zeros(9, np.uint32)
    state.accept(list(b"async function f() { x = "))
    with within(0.3):
        state.mask_into(bits)
    state.accept(list(b"await " * 300))
    with within(0.3), pytest.raises(OutOfTime):
        state.mask_into(bits)
    state.mask_into(bits)
    assert bits.any()
