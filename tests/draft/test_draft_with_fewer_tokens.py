"""Drafts that have only some of their target's tokens."""

import json

import gguf
import numpy as np
import pytest

from codespec.cli.main import main
from codespec.draft.draft_length import FixedLengthDraft
from codespec.draft.vocabulary_mapping import TrimmedVocabularyTarget
from codespec.engine.local import LocalEngine
from codespec.grammar import Grammar
from codespec.languages import by_id
from codespec.models.index import best_draft
from codespec.models.info import inspect
from codespec.models.registry import EMBEDDED, EMBEDDED_TARGET
from codespec.protocols import CodespecError, Limits, Sampling
from tests import permuted
from tests.fakes import Table, TableTarget
from tests.present import present

DRAFT = EMBEDDED / "draft-python.gguf"
TOKENS = np.array([1, 3, 4, 7])  # of 9
GRAMMAR = 'root ::= "x = " [0-9]+ ("," " "? [a-z]+)* "\\n"'


@pytest.fixture(scope="module")
def trimmed(tmp_path_factory):
    """The embedded draft with half of its tokens, as many markers and bytes among them as there are."""
    path = tmp_path_factory.mktemp("trimmed") / "draft.gguf"
    return permuted.write_trimmed(DRAFT, path, np.arange(4096))


def test_logits_of_some_tokens():
    own = Table(5, seed=3)
    sequence = TrimmedVocabularyTarget(TableTarget(own), TOKENS.tolist(), 9, 4)
    lacking = [0, 2, 5, 6, 8]
    for text in ([3, 1], [7, 0, 5, 4], [1]):  # fewer rows after more
        sequence.rollback(0)
        logits = sequence.decode(text)
        read = [TOKENS.tolist().index(token) if token in TOKENS else 4 for token in text]
        expected = np.stack([own.row(read[: i + 1]) for i in range(len(read))])
        assert np.array_equal(logits[:, TOKENS], expected[:, :4])
        assert (logits[:, lacking] == -np.inf).all()
    assert sequence.decode([2], 0).shape == (0, 9)
    assert sequence.n_past == 2
    forks = [sequence.fork(), sequence.fork()]
    logits = sequence.decode_each(forks, [[4], [6]])
    assert np.array_equal(logits[:, TOKENS], [own.row([0, 4, 2])[:4], own.row([0, 4, 4])[:4]])


def texts(draft, sampling, grammar=None, target=EMBEDDED_TARGET):
    """What the target writes with the draft and alone, and how much of the proposals it took."""
    engine = LocalEngine(target, context_length=256, exact=True)
    try:
        engine.drafts.choose(draft)
        assert not engine.notes
        found = []
        for speculate in (FixedLengthDraft(present(engine.drafts.model), 4), False):
            prompt = engine.vocabulary.tokenize("import os\nimport sys\n\n\ndef main(")
            state = engine.grammar_state(grammar) if grammar is not None else None
            chunks = engine.generate(prompt, state, sampling, Limits(60), speculate=speculate)
            found.append("".join(chunk.text for chunk in chunks))
            if speculate:
                accepted = engine.statistics.accepted
        return found, accepted
    finally:
        engine.close()


@pytest.mark.parametrize("grammar", [None, GRAMMAR], ids=["free", "grammar"])
@pytest.mark.parametrize(
    "sampling",
    [Sampling(), Sampling(temperature=0.9, seed=4), Sampling(temperature=0.9, top_k=0, top_p=1, min_p=0, seed=4)],
    ids=["greedy", "sampled", "unfiltered"],
)
def test_the_text_is_the_targets(trimmed, sampling, grammar):
    (drafted, alone), accepted = texts(trimmed, sampling, Grammar.from_gbnf(grammar) if grammar else None)
    assert drafted == alone
    assert accepted > 0


def test_what_it_has_it_proposes_as_the_whole_draft(trimmed):
    assert texts(trimmed, Sampling())[1] >= 0.8 * texts(DRAFT, Sampling())[1]


def test_it_says_what_it_is(trimmed, capsys):
    info, target = inspect(trimmed), inspect(EMBEDDED_TARGET)
    assert (info.trimmed, info.vocabulary, info.vocabulary_size) == (True, target.vocabulary, 4097)
    assert not target.trimmed
    assert main(["models", "inspect", str(trimmed)]) == 0
    line = f"4,097 tokens, of a target's, for whose family alone it drafts: {target.vocabulary[:16]}"
    assert line in capsys.readouterr().out
    assert main(["models", "inspect", str(trimmed), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trimmed"] is True


def test_it_is_found_for_its_target(trimmed, tmp_path, monkeypatch):
    monkeypatch.setenv("CODESPEC_DATA", str(tmp_path))
    monkeypatch.setenv("CODESPEC_CACHE", str(tmp_path / "cache"))
    (tmp_path / "models").mkdir()
    mine = tmp_path / "models" / "mine.gguf"
    mine.write_bytes(trimmed.read_bytes())
    info = inspect(EMBEDDED_TARGET)
    assert best_draft(by_id("python"), info.vocabularies, info.parameters) == mine


@pytest.fixture(scope="module")
def relative(tmp_path_factory):
    """A target of the embedded one's family: other control tokens, and more of them."""
    return permuted.write_relative(EMBEDDED_TARGET, tmp_path_factory.mktemp("relative") / "target.gguf", 3)


def test_the_draft_of_a_relative(trimmed, relative, tmp_path, monkeypatch):
    """It proposes what both have, is found by itself, and changes nothing."""
    monkeypatch.setenv("CODESPEC_DATA", str(tmp_path))
    monkeypatch.setenv("CODESPEC_CACHE", str(tmp_path / "cache"))
    info = inspect(relative)
    assert info.vocabulary != inspect(EMBEDDED_TARGET).vocabulary
    assert best_draft(by_id("python"), info.vocabularies, info.parameters) == DRAFT
    for draft in (DRAFT, trimmed):
        (drafted, alone), accepted = texts(draft, Sampling(temperature=0.9, seed=4), target=relative)
        assert drafted == alone
        assert accepted >= 0.8 * texts(draft, Sampling(temperature=0.9, seed=4))[1]


def test_another_target_has_no_use_for_it(trimmed, tmp_path):
    engine = LocalEngine(permuted.write(EMBEDDED_TARGET, tmp_path / "other.gguf"), context_length=256)
    try:
        with pytest.raises(CodespecError, match="another target's vocabulary only"):
            engine.drafts.choose(trimmed)
    finally:
        engine.close()
    with pytest.raises(CodespecError, match="it can be no target"):
        LocalEngine(trimmed)


def test_tokens_that_the_target_does_not_know(trimmed, tmp_path):
    names = gguf.GGUFReader(trimmed).fields["tokenizer.ggml.tokens"].contents()
    name = next(each for each in reversed(names[:-1]) if len(each) > 6).encode()
    data = trimmed.read_bytes()
    assert data.count(name) >= 1
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(data.replace(name, b"#" * len(name), 1))
    engine = LocalEngine(EMBEDDED_TARGET, context_length=256)
    try:
        with pytest.raises(CodespecError, match="another target's vocabulary only"):
            engine.drafts.choose(damaged)
    finally:
        engine.close()
