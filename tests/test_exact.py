"""With ``exact``, the same text with the draft and without, on the embedded pair: 12 positions, two temperatures."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from codespec.completion.completer import Completer
from codespec.completion.request import Request
from codespec.config import Config
from codespec.engine.combinations import SOURCES
from codespec.protocols import Sampling
from tests.drafting import drafting_engine

FILES = sorted((Path(__file__).parent.parent / "codespec").rglob("*.py"))
POSITIONS = 12


def positions():
    chooser = random.Random(7)
    for index in range(POSITIONS):
        text = FILES[index * 29 % len(FILES)].read_text("utf-8")
        yield text, chooser.randrange(len(text))


@pytest.fixture(scope="module")
def engine():
    with drafting_engine() as engine:
        yield engine


@pytest.mark.parametrize("grammar", ["none", "auto"])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_same_text_with_and_without_the_draft(engine, temperature, grammar):
    config = replace(Config(), max_tokens=24, time_budget_ms=0, grammar=grammar)
    drafted = accepted = 0
    for number, (text, offset) in enumerate(positions()):
        sampling = Sampling(temperature=temperature, seed=number)
        texts = {}
        for draft in ("auto", "none"):
            engine.drafts.combinations.sources = SOURCES if draft == "auto" else frozenset()
            completer = Completer(engine, replace(config, draft=draft), sampling)
            (completion,) = completer.complete(Request(text, offset, "python", "x.py"))
            texts[draft] = (completion.text, completion.finish_reason)
            drafted += completion.report["drafted"]
            accepted += completion.report["accepted"]
        assert texts["auto"] == texts["none"], f"position {number}, offset {offset}"
    # The comparison says something only if drafts were both taken and refused.
    assert 0 < accepted < drafted
