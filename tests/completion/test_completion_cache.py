"""Completions answer again while the user types along, and after a step back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespec.completion.cache import CompletionCache
from codespec.completion.request import Completion, Request

PREFIX, SUFFIX = "def area(self):\n    ", "\n\nprint(1)\n"


def request(prefix: str, suffix: str = SUFFIX, language: str = "python") -> Request:
    return Request(prefix + suffix, len(prefix), language, "a.py")


def completion(text: str) -> Completion:
    return Completion(text, "stop", (), {})


def cache_of(*texts: str, prefix: str = PREFIX, suffix: str = SUFFIX) -> CompletionCache:
    cache = CompletionCache()
    cache.store("a", request(prefix, suffix), [completion(text) for text in texts])
    return cache


def texts(cache: CompletionCache, prefix: str, suffix: str = SUFFIX, **more: str) -> list[str] | None:
    found = cache.find("a", request(prefix, suffix, **more))
    return None if found is None else [each.text for each in found]


def test_typing_along() -> None:
    cache = cache_of("return self.a * self.b", "return 1")
    assert texts(cache, PREFIX) == ["return self.a * self.b", "return 1"]
    assert texts(cache, PREFIX + "ret") == ["urn self.a * self.b", "urn 1"]
    assert texts(cache, PREFIX + "return s") == ["elf.a * self.b"]
    assert texts(cache, PREFIX + "return x") is None
    assert texts(cache, PREFIX + "return 1") is None  # all of it is there: what follows is another question


def test_typing_a_bracket_may_indent_the_line_anew() -> None:
    above = "call(\n    a,\n"
    cache = cache_of(") {}}", ") {\n        b()\n    }", prefix=above + "    ")
    assert texts(cache, above + "    )") == [" {}}", " {\n        b()\n    }"]
    assert texts(cache, above + ")") == [" {}}"]  # other lines would be indented as before
    assert texts(cache, above + "\t) {") == ["}}"]
    assert texts(cache, above + "") is None
    assert texts(cache, above + "]") is None
    assert texts(cache, above + ")", SUFFIX + "x") is None
    assert texts(cache, "x" + above[1:] + ")") is None
    assert texts(cache_of("c)", prefix=above + "    b, "), above + "b, c") == [")"]


def test_what_else_changes_makes_it_another_place() -> None:
    cache = cache_of("return 1")
    assert texts(cache, "x" + PREFIX) is None
    assert texts(cache, PREFIX[:-1]) is None
    assert texts(cache, PREFIX, SUFFIX + "x") is None
    assert texts(cache, PREFIX, SUFFIX[1:]) is None
    assert texts(cache, PREFIX, language="go") is None
    assert cache.find("b", request(PREFIX)) is None


def test_going_back() -> None:
    cache = cache_of("return 1")
    cache.store("a", request(PREFIX + "x"), [completion(" = 2")])
    assert texts(cache, PREFIX + "x") == [" = 2"]
    assert texts(cache, PREFIX + "x =") == [" 2"]
    assert texts(cache, PREFIX) == ["return 1"]
    assert texts(cache, PREFIX + "re") == ["turn 1"]


def test_the_latest_answer_counts() -> None:
    cache = cache_of("return 1")
    cache.store("a", request(PREFIX), [completion("return 2")])
    assert texts(cache, PREFIX + "return ") == ["2"]


def test_nothing_is_an_answer_too() -> None:
    cache = cache_of()
    assert texts(cache, PREFIX) == []
    assert texts(cache, PREFIX + "a") is None


def test_what_there_was_no_time_for_is_asked_again() -> None:
    cache = CompletionCache()
    cache.store("a", request(PREFIX), [replace(completion(""), finish_reason="time")])
    assert texts(cache, PREFIX) is None
    cache.store("a", request(PREFIX), [replace(completion("return"), finish_reason="time")])
    assert texts(cache, PREFIX) == ["return"]


@pytest.mark.parametrize(
    ("typed", "written", "text", "left"),
    [
        ("f(", ")", "f(x, y)", ["x, y"]),
        ("f(", ")", "f(x, y).g", None),
        ("f(", ")", "f(x,\n  y)", None),
        ("f([", "])", "f([1])", ["1"]),
        ('x["', '"]', 'x["key"]', ["key"]),
        ("f", ")", "f(x)", None),
        ("f(", "))", "f(x))", None),
        ("f(", "b", "f(x)b", None),
        ("f(", ")", "f()", None),
    ],
)
def test_brackets_that_the_editor_closes(typed: str, written: str, text: str, left: list[str] | None) -> None:
    assert texts(cache_of(text), PREFIX + typed, written + SUFFIX) == left


def test_who_wants_alternatives_is_not_given_the_only_one() -> None:
    cache = cache_of("return 1")
    invoked = replace(request(PREFIX), count=3)
    assert cache.find("a", invoked) is None
    cache.store("a", invoked, [completion("return 1"), completion("return 2")])
    assert [each.text for each in cache.find("a", invoked) or ()] == ["return 1", "return 2"]
    assert texts(cache, PREFIX + "return") == [" 1", " 2"]  # and who types on keeps them


def test_line_ends_of_windows() -> None:
    cache = cache_of("return (\n    1\n)")
    assert texts(cache, PREFIX + "return (\r\n   ") == [" 1\n)"]
    cache = cache_of("return (\r\n    1)")
    assert texts(cache, PREFIX + "return (\n   ") == [" 1)"]


@given(st.text("ab(\n", max_size=8), st.text("ab(\n", max_size=8), st.text("ab(\n", max_size=8))
def test_what_is_typed_and_what_is_left_are_the_completion(prefix: str, text: str, typed: str) -> None:
    found = texts(cache_of(text, prefix=prefix), prefix + typed)
    if text.startswith(typed) and (not typed or text != typed):
        assert found == [text[len(typed) :]]
    else:
        assert found is None


def test_it_forgets() -> None:
    cache = CompletionCache(documents=2, kept=3)
    for turn in range(5):
        cache.store("a", request("x" * turn), [completion(str(turn))])
    assert [texts(cache, "x" * turn) for turn in range(5)] == [None, None, ["2"], ["3"], ["4"]]
    for name in "bac":  # `a` was asked about after `b`
        cache.store(name, request(""), [completion(name)])
    assert [cache.find(name, request("")) is None for name in "abc"] == [False, True, False]
    cache.forget("a")
    assert cache.find("a", request("")) is None
    assert cache.find("c", request("")) is not None
    cache.forget()
    assert cache.find("c", request("")) is None


def test_far_away_changes_are_seen() -> None:
    prefix, suffix = "a" * 5_000, "b" * 5_000
    cache = cache_of("text", prefix=prefix, suffix=suffix)
    assert texts(cache, prefix + "te", suffix) == ["xt"]
    assert texts(cache, "c" + prefix[1:], suffix) is None
    assert texts(cache, prefix, suffix[:-1] + "c") is None
    assert texts(cache, prefix + "te", suffix[:-1] + "c") is None
