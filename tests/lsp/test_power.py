"""Where power is scarce nothing is worked on that nobody asked for yet."""

from types import SimpleNamespace

import psutil
import pytest

from codespec.lsp.power import OVERLOADED, Power

IDLE, BUSY = 0.0, OVERLOADED * (psutil.cpu_count() or 1) + 0.1


def power(plugged=True, load=IDLE):
    return Power(lambda: SimpleNamespace(power_plugged=plugged), lambda: load)


@pytest.mark.parametrize(("plugged", "expected"), [(False, True), (True, False), (None, False)])
def test_what_the_battery_says(plugged, expected):
    assert power(plugged).is_quiet("auto") == expected


@pytest.mark.parametrize(("quiet", "expected"), [("always", True), ("never", False)])
def test_the_user_has_the_last_word(quiet, expected):
    assert {power(plugged, load).is_quiet(quiet) for plugged in (True, False) for load in (IDLE, BUSY)} == {expected}


def test_an_overloaded_machine():
    assert power(load=BUSY).is_quiet("auto")
    assert not power(load=BUSY / 2).is_quiet("auto")


def test_no_battery_and_what_cannot_be_read():
    assert not Power(lambda: None, lambda: IDLE).is_quiet("auto")

    def broken():
        raise psutil.Error

    assert not Power(broken).is_quiet("auto")
    assert not Power(lambda: None, broken).is_quiet("auto")
    assert Power().is_quiet("auto") in (True, False), "this machine"


def test_it_is_not_asked_at_every_key():
    asked = []
    power = Power(lambda: asked.append(1), lambda: IDLE)
    assert [power.is_quiet("auto") for _ in range(5)] == [False] * 5
    assert len(asked) == 1
