"""With ``exact``, the same text with drafts and without, on a pretrained model in three quantizations.

``CODESPEC_TEXTS`` says how many texts of each kind are compared; ``CODESPEC_EXACT=0`` compares them as a new user has
them, and prints how many differ.
"""

import os
import random
from dataclasses import replace
from pathlib import Path

import llama_cpp
import numpy as np
import pytest

from codespec.completion.completer import Completer
from codespec.completion.request import Request
from codespec.config import Config
from codespec.engine.combinations import SOURCES
from codespec.engine.local import LocalEngine
from codespec.llama.adapter import Adapter
from codespec.protocols import Sampling

FILES = sorted((Path(__file__).parent.parent / "codespec").rglob("*.py"))
TEXTS = int(os.environ.get("CODESPEC_TEXTS", "1"))
EXACT = os.environ.get("CODESPEC_EXACT", "1") != "0"
# Of temperature and grammar: all of them where more than one text is compared.
KINDS_OF_TEXT = 4 if TEXTS > 1 else 2
CONTEXT = 1024
"""Tokens: longer than the 512 from which on llama.cpp may split a row's attention among threads."""

PROPOSED: dict[LocalEngine, int] = {}
"""Tokens, by all sources of drafts."""

# enum llama_ftype; None: as it was published
KINDS = {"q4_1": None, "q4_0": 2, "q8_0": 7}


@pytest.fixture(scope="module", params=KINDS)
def engine(request, smollm2, tmp_path_factory):
    path, kind = smollm2, KINDS[request.param]
    if kind is not None:
        path = tmp_path_factory.mktemp("models") / f"{request.param}.gguf"
        settings = llama_cpp.llama_model_quantize_default_params()
        settings.ftype, settings.allow_requantize = kind, True
        assert llama_cpp.llama_model_quantize(os.fsencode(smollm2), os.fsencode(path), settings) == 0
    engine = LocalEngine(path, context_length=CONTEXT, exact=EXACT, draft_length=4)
    yield engine
    # The comparison of texts says something only if something was proposed.
    assert PROPOSED.get(engine, 1) > 0
    engine.close()


def places(seed):
    """A cursor in a file, long files and short ones."""
    chooser = random.Random(seed)
    for _ in range(TEXTS):
        text = chooser.choice(FILES).read_text("utf-8")
        yield text, chooser.randrange(len(text) // 2, len(text))


@pytest.mark.parametrize(
    ("temperature", "grammar"), [(0.0, "auto"), (0.8, "none"), (0.8, "auto"), (0.0, "none")][:KINDS_OF_TEXT]
)
def test_same_text_with_and_without_drafts(engine, temperature, grammar):
    config = replace(Config(), max_tokens=24, time_budget_ms=0, grammar=grammar)
    drafted = same = 0
    for number, (text, offset) in enumerate(places(f"{temperature} {grammar}")):
        asked = Request(text, offset, "python", "x.py")
        texts = {}
        for draft in ("auto", "none"):
            engine.drafts.combinations.sources = SOURCES if draft == "auto" else frozenset()
            completer = Completer(engine, replace(config, draft=draft), Sampling(temperature=temperature, seed=number))
            texts[draft] = [(each.text, each.finish_reason) for each in completer.complete(asked)]
            drafted += completer.spent.drafted
        same += texts["auto"] == texts["none"]
        assert not EXACT or texts["auto"] == texts["none"], f"text {number}, offset {offset}"
    print(f"{engine.name}, temperature {temperature}, grammar {grammar}: {same} of {TEXTS} equal, {drafted} drafted")
    PROPOSED[engine] = PROPOSED.get(engine, 0) + drafted


@pytest.mark.parametrize(("before", "adapted"), [(100, True), (600, False)])
def test_a_row_alone_computes_what_it_does_among_others(engine, before, adapted):
    if not EXACT:
        pytest.skip("only exact decoding promises it")
    tokens = engine.vocabulary.tokenize("".join(each.read_text("utf-8") for each in FILES[:20]))[: before + 72]
    with engine.context.alike(CONTEXT) as context:
        if adapted:
            context.use(Adapter(engine.model, engine.filling_adapter))
        sequence = context.sequence()
        sequence.decode(tokens[:before], last=1)
        alone = np.concatenate([np.array(sequence.decode([each])) for each in tokens[before : before + 4]])
        for rows in (2, 4, 16, 30 if context.padded else 72):
            sequence.rollback(before)
            among = np.array(sequence.decode(tokens[before : before + rows], last=rows))
            assert np.array_equal(alone[:rows], among[:4]), f"{rows} rows"
