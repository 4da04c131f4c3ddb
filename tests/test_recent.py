"""A mapping that keeps only what was used lately."""

from __future__ import annotations

import random

import pytest

from codespec.recent import Recent


def test_the_least_recently_used_entry_is_dropped():
    held = Recent(2)
    held["a"], held["b"] = 1, 2
    held["c"] = 3
    assert dict(held) == {"b": 2, "c": 3}


def test_use_makes_an_entry_the_latest():
    held = Recent(2)
    held["a"], held["b"] = 1, 2
    assert held.use("a") == 1
    held["c"] = 3
    assert list(held) == ["a", "c"]


def test_setting_an_entry_anew_makes_it_the_latest():
    held = Recent(2)
    held["a"], held["b"] = 1, 2
    held["a"] = 4
    held["c"] = 3
    assert list(held.items()) == [("a", 4), ("c", 3)]


def test_looking_leaves_the_order_as_it_is():
    held = Recent(2)
    held["a"], held["b"] = 1, 2
    assert held["a"] == held.get("a") == 1
    assert "a" in held
    assert list(held.values()) == [1, 2]
    held["c"] = 3
    assert list(held) == ["b", "c"]


def test_what_is_not_there_is_not_there():
    held = Recent(2)
    assert held.use("a") is None
    assert held.get("a") is None
    with pytest.raises(KeyError):
        held["a"]
    with pytest.raises(KeyError):
        del held["a"]


def test_an_entry_without_a_value_can_be_used():
    held = Recent(2)
    held["a"], held["b"] = None, None
    assert held.use("a") is None
    held["c"] = None
    assert list(held) == ["a", "c"]


def test_the_limit_may_be_a_sum_of_sizes():
    held = Recent(10, size=lambda key, value: len(value))
    held["a"], held["b"] = "xxxx", "xxxxxx"
    held["c"] = "x"
    assert list(held) == ["b", "c"]
    held["b"] = "xx"
    held["d"] = "xxxxxxx"
    assert list(held) == ["c", "b", "d"]
    held["e"] = "x" * 100
    assert list(held) == ["e"], "the latest stays"


def test_only_what_is_dropped_for_want_of_room_is_told():
    told = []
    held = Recent(2, dropped=lambda key, value: told.append((key, value, key in held)))
    held["a"], held["b"] = 1, 2
    held["a"] = 3
    held["c"] = 4
    del held["a"]
    held.clear()
    assert told == [("b", 2, False)]
    assert len(held) == 0


def test_it_agrees_with_a_list_of_all_uses():
    """The same as keeping the order of all uses, and cutting it at the limit."""
    chance, held, order = random.Random(1), Recent(8), []
    for step in range(2_000):
        key = chance.randrange(16)
        action = chance.choice(("set", "use", "look", "delete"))
        if action == "set":
            held[key] = step
        elif action == "use":
            held.use(key)
        elif action == "look":
            held.get(key)
        else:
            held.pop(key, None)
        if action == "set" or (action == "use" and key in order):
            order = [*(each for each in order if each != key), key][-8:]
        elif action == "delete":
            order = [each for each in order if each != key]
        assert list(held) == order
