"""A prompt is no longer than can be read in time; the rest is read when nobody waits."""

from dataclasses import replace

import pytest

from codespec import Completer, Config, Request
from codespec.completion.prompt.timely import READING, SHORTER
from codespec.engine.local import LocalEngine
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import Sampling

TEXT = "".join(f"def function_{number}(a, b):\n    return a * {number} + b\n\n\n" for number in range(60))
CONFIG = replace(Config(), max_tokens=8)


class Through:
    """What an object does, but for what a subclass does instead."""

    def __init__(self, own):
        self._own = own

    def __getattr__(self, name):
        return getattr(self._own, name)


class EnteredCache(Through):
    """A prompt cache that notes which workspaces were entered."""

    def __init__(self, own):
        super().__init__(own)
        self.entered = []

    def enter(self, workspace):
        self.entered.append(workspace)
        self._own.enter(workspace)


class SlowReader(Through):
    """An engine that says that it reads slowly, or not how fast."""

    def __init__(self, own, token_ms):
        super().__init__(own)
        self._token_ms = token_ms
        self.prompt_cache = EnteredCache(own.prompt_cache)

    def reading_ms(self, tokens):
        return tokens * self._token_ms


@pytest.fixture
def engine():
    engine = LocalEngine(EMBEDDED_TARGET, context_length=4096)
    yield engine
    engine.close()


def asked(engine, config=CONFIG, path="a.py", text=TEXT):
    completer = Completer(engine, config, Sampling())
    completer.complete(Request(text, len(text), "python", path, workspace="/somewhere"))
    return completer


def test_all_of_it_where_that_is_quick_or_not_known_or_there_is_no_limit(engine):
    whole = asked(SlowReader(engine, 0.0)).prompt_tokens
    assert whole > SHORTER[1]
    assert asked(SlowReader(engine, 1e-6)).prompt_tokens == whole
    assert asked(SlowReader(engine, 1e6), replace(CONFIG, time_budget_ms=0)).prompt_tokens == whole


def test_the_nearest_text_where_reading_is_slow(engine):
    budget = CONFIG.time_budget_ms
    for tokens in (100, 300, 800):
        reader = SlowReader(engine, READING * budget / tokens)
        engine.prefill(engine.vocabulary.tokenize("x"))  # of another prompt: nothing is held
        size = asked(reader).prompt_tokens
        assert size <= max(tokens, SHORTER[-1])
        assert size > tokens / 2 or tokens > 2 * SHORTER[-1]


def test_the_rest_is_read_when_nobody_waits_and_serves_then(engine):
    whole = asked(SlowReader(engine, 0.0)).prompt_tokens
    engine.prefill(engine.vocabulary.tokenize("x"))
    reader = SlowReader(engine, READING * CONFIG.time_budget_ms / 200)
    text = TEXT.replace("function", "method")
    completer = asked(reader, text=text)
    assert completer.prompt_tokens < 200
    completer.idle(lambda: True)
    completer.complete(Request(text, len(text), "python", "a.py", workspace="/somewhere"))
    assert completer.prompt_tokens >= whole - 200


def test_what_is_read_later_is_kept_where_its_request_said(engine):
    reader = SlowReader(engine, 1e3)
    private = asked(reader, path=".env", text="SECRET = 1\n" * 400)
    other = asked(reader)
    assert reader.prompt_cache.entered == ["", "/somewhere"]
    private.idle(lambda: True)
    assert reader.prompt_cache.entered[2:] == [""]
    other.idle(lambda: True)
    assert reader.prompt_cache.entered[3:] == ["/somewhere"]


def test_nothing_is_read_later_of_a_workspace_that_is_forgotten(engine):
    completer = asked(SlowReader(engine, 1e3))
    completer.forget("/somewhere")
    engine.prefill(engine.vocabulary.tokenize("x"))
    completer.idle(lambda: True)
    assert completer.engine.lacking(engine.vocabulary.tokenize("x")) <= 1
