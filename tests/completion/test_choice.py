"""A model that was not trained to fill in chooses among candidates by what follows the cursor."""

from dataclasses import replace

import pytest

from codespec import Completer, Config, Request
from codespec.completion.choice import LINES, LONGEST, following_lines, most_likely, time_for_others
from codespec.config_sections import LoraConfig
from codespec.engine.local import LocalEngine
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import Limits, Statistics
from tests.present import present

BASE = replace(Config(), target_lora=LoraConfig("none"), time_budget_ms=0, max_tokens=48)


@pytest.fixture(scope="module")
def engine(smollm2):
    engine = LocalEngine(smollm2, context_length=2048)
    yield engine
    engine.close()


@pytest.mark.parametrize(
    ("suffix", "following"),
    [
        ("", ""),
        ("\n  \n", ""),
        (")\n\nb = 1\n\nc = 2\nd = 3\n", ")\n\nb = 1\n\nc = 2\n"),
        ("\nb = 1", "\nb = 1"),
        ("x" * 1000, "x" * LONGEST),
    ],
)
def test_what_candidates_are_judged_by(suffix, following):
    assert following_lines(suffix) == following
    assert sum(bool(line.strip()) for line in following.split("\n")) <= LINES


def test_the_likeliest_is_the_first_of_equals():
    assert most_likely([-3.0, -1.0, -1.0]) == 1


def test_others_only_where_time_allows_them(engine):
    first = Statistics(tokens=10, total_ms=100.0)
    assert time_for_others(engine, 100, first, "\nreturn x\n", Limits(64)) == Limits(36)
    assert time_for_others(engine, 100, first, "\nreturn x\n", Limits(64, 101.0)) is None
    allowed = time_for_others(engine, 100, first, "\nreturn x\n", Limits(64, 1e6))
    assert allowed is not None
    assert allowed.max_tokens == 36
    assert 0 < present(allowed.time_budget_ms) < 1e6


def test_what_fits_what_follows_is_more_likely(engine):
    prompt = engine.vocabulary.tokenize("def area(width, height):\n    area =")
    texts = [f" {value}\n    return area\n" for value in ("width * height", "'z' ** None")]
    right, wrong = engine.chances(prompt, texts)
    assert right > wrong
    held = engine.chances(prompt, texts[:1])
    assert held == [pytest.approx(right)]


def test_the_chosen_text_is_the_same_with_drafts_and_without(smollm2):
    text = "def total(prices):\n    result = 0\n    for price in prices:\n        \n    return result\n"
    offset = text.index("        \n") + 8
    texts = []
    for draft in ("auto", "none"):
        engine = LocalEngine(smollm2, context_length=1024, exact=True)
        try:
            completer = Completer(engine, replace(BASE, draft=draft))
            [completion] = completer.complete(Request(text, offset, "python", "a.py"))
            texts.append(completion.text)
        finally:
            engine.close()
    assert texts[0] == texts[1]
    assert "result += price" in texts[0]


def test_no_choice_where_the_model_fills_in_or_nothing_follows(engine):
    class Counting:
        asked = 0

        def __init__(self, own):
            self._own = own

        def __getattr__(self, name):
            return getattr(self._own, name)

        def chances(self, *arguments):
            Counting.asked += 1
            return self._own.chances(*arguments)

    text = "def add(a, b):\n    "
    Completer(Counting(engine), BASE).complete(Request(text, len(text), "python", "a.py"))
    assert Counting.asked == 0
    embedded = LocalEngine(EMBEDDED_TARGET)
    try:
        Completer(Counting(embedded), BASE).complete(Request(text + "\n\nx = add(1, 2)\n", len(text), "python", "a.py"))
        assert Counting.asked == 0
    finally:
        embedded.close()
    Completer(Counting(engine), BASE).complete(Request(text + "\n\nx = add(1, 2)\n", len(text), "python", "a.py"))
    assert 1 <= Counting.asked <= 2  # the first text alone, then the others


def test_where_there_is_no_room_for_a_choice_the_first_text_is_the_answer(smollm2):
    text = "def total(prices):\n    result = 0\n    for price in prices:\n        "
    after = "\n    return " + " + ".join(f"value_{number}" for number in range(60)) + "\n"
    engine = LocalEngine(smollm2, context_length=256)
    try:
        before = "".join(f"x_{number} = {number}\n" for number in range(200)) + text
        config = replace(BASE, max_tokens=16)
        [completion] = Completer(engine, config).complete(Request(before + after, len(before), "python", "a.py"))
        assert completion.text
        prompt = engine.vocabulary.tokenize("a = 1\n" * 60)[:250]
        assert engine.chances(prompt, ["b = 2\n" * 20]) == []
        assert engine.chances(prompt, ["b"]) != []
    finally:
        engine.close()
