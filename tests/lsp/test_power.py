"""On a battery nothing is worked on that nobody asked for yet."""

from types import SimpleNamespace

import psutil
import pytest

from codespec.lsp.power import Power


@pytest.mark.parametrize(
    ("plugged", "expected"), [(False, True), (True, False), (None, False)], ids=["battery", "mains", "unknown"]
)
def test_what_the_battery_says(plugged, expected):
    assert Power(lambda: SimpleNamespace(power_plugged=plugged)).is_on_battery() == expected


def test_no_battery_and_one_that_cannot_be_read():
    assert not Power(lambda: None).is_on_battery()

    def broken():
        raise psutil.Error

    assert not Power(broken).is_on_battery()
    assert Power().is_on_battery() in (True, False), "this machine"


def test_it_is_not_asked_at_every_key():
    asked = []
    power = Power(lambda: asked.append(1))
    assert [power.is_on_battery() for _ in range(5)] == [False] * 5
    assert len(asked) == 1
