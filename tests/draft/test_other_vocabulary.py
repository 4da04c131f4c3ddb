"""A draft with another vocabulary: the same text in other tokens."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from codespec.draft.draft_length import FixedLength
from codespec.draft.markers import Markers, shared_markers
from codespec.draft.other_vocabulary import OtherVocabularyDraft
from codespec.draft.retokenize import BEHIND, RetokenizedText, cut_alike
from codespec.draft.sequence import common_prefix
from codespec.draft.text import exact_tokens, spelled, tokenize_after
from codespec.protocols import Aborted, CodespecError, Limits, Proposal, Sampling
from codespec.speculative.generate import Generator
from codespec.speculative.sampling import LogitSampler
from tests.fakes import FakeVocabulary, SetGrammar, Table, TableTarget, TextGrammar
from tests.present import present

TARGET = FakeVocabulary(["def ", "return", " x", "(x)", ": ", "é", "if ", ":\n", "  "])
OWN = FakeVocabulary(["de", "f f", "return ", "x", "(", "x)", " é", "if", "\n"])
TEXT = "def f(x):\n    return xé if x: é\n    return (x)\n" * 2
SAMPLER = LogitSampler(Sampling(), 1)


class Writes(Table):
    """Logits of a model that writes one text, in its own tokens, and then ends."""

    def __init__(self, text: str, vocabulary: FakeVocabulary, control: Sequence[int] = ()) -> None:
        super().__init__(vocabulary.size, seed=0)
        self.text, self.own = text.encode(), vocabulary

    def row(self, tokens: Sequence[int]) -> np.ndarray:
        row = np.zeros(self.vocabulary, np.float32)
        here = spelled(self.own, tokens)
        at = self.text.find(here) + len(here)
        rest = self.text[at:]
        if self.text.find(here) >= 0 and rest:
            sizes = range(len(rest), 0, -1)
            row[next(self.own._ids[rest[:n]] for n in sizes if rest[:n] in self.own._ids)] = 9
        else:
            row[0] = 9
        return row


def writer(text: str = TEXT, **options: object) -> OtherVocabularyDraft:
    options.setdefault("alike", 0.0)
    return OtherVocabularyDraft(TableTarget(Writes(text, OWN)), OWN, TARGET, **options)  # type: ignore[arg-type]


def propose(draft: OtherVocabularyDraft, tokens: Sequence[int], grammar=None, count: int = 4) -> Proposal:
    return draft.propose(tokens, grammar, SAMPLER, FixedLength(count).more(count))


def model_of(draft: OtherVocabularyDraft) -> TableTarget:
    return draft._sequence.target  # type: ignore[return-value]


# Text and tokens


class Sentence(FakeVocabulary):
    """Puts a blank before every text, as SentencePiece does."""

    def tokenize(self, text: str, special: bool = False) -> list[int]:
        return super().tokenize(" " + text)


def test_exact_tokens_of_a_vocabulary_that_adds_a_blank() -> None:
    vocabulary = Sentence([" x", "def "])
    assert spelled(vocabulary, vocabulary.tokenize("def x")) == b" def x"
    assert spelled(vocabulary, exact_tokens(vocabulary, "def x")) == b"def x"
    assert spelled(vocabulary, exact_tokens(vocabulary, " x")) == b" x"
    assert spelled(vocabulary, tokenize_after(vocabulary, vocabulary.tokenize("a"), b" x")) == b" x"


def test_exact_tokens_of_a_vocabulary_that_changes_the_text() -> None:
    class Lower(FakeVocabulary):
        def tokenize(self, text: str, special: bool = False) -> list[int]:
            return super().tokenize(text.lower())

    assert exact_tokens(Lower(), "Def") == []
    assert exact_tokens(Lower(), "def") == FakeVocabulary().tokenize("def")
    assert exact_tokens(Lower(), "") == []


def test_text_behind_half_a_character() -> None:
    tail = [*TARGET.tokenize("return"), "é".encode()[0] + 1]
    assert spelled(TARGET, tokenize_after(FakeVocabulary(), [ord("a") + 1, tail[-1]], "é".encode()[1:])) == b"\xa9"
    assert tokenize_after(TARGET, tail, "é".encode()[1:]) == [], "the two bytes are one token"


# The text in the draft's tokens


@pytest.mark.parametrize("seed", range(20))
def test_retokenized_text_follows_any_jump(seed: int) -> None:
    rng = np.random.default_rng(seed)
    retokenized = RetokenizedText(OWN, TARGET)
    seen: list[int] = []
    data = TEXT.encode()
    for _ in range(40):
        kept = int(rng.integers(max(0, len(seen) - 6), len(seen) + 1)) if rng.random() < 0.9 else 0
        start = int(rng.integers(len(data)))
        while data[start] & 0xC0 == 0x80:
            start -= 1
        new = TARGET.tokenize(data[start:].decode())[: rng.integers(0, 5)]
        if rng.random() < 0.3:
            new = [byte + 1 for byte in spelled(TARGET, new)]
        try:
            spelled(TARGET, [*seen[:kept], *new, *TARGET.tokenize("")]).decode()
            whole = True
        except UnicodeDecodeError:
            whole = False
        before = list(retokenized.tokens)
        grew = kept == len(seen)
        seen[kept:] = new
        retokenized.replace(kept, new)
        assert spelled(OWN, retokenized.tokens) + retokenized.rest == spelled(TARGET, seen)
        if whole:
            assert retokenized.rest == b""
        else:
            retokenized, seen = RetokenizedText(OWN, TARGET), []
            continue
        if grew:
            assert common_prefix(before, retokenized.tokens) >= len(before) - BEHIND


def test_the_share_of_token_ends_that_are_the_targets() -> None:
    assert cut_alike(TARGET, TARGET) == 1
    assert cut_alike(FakeVocabulary(), TARGET) < 1
    assert cut_alike(TARGET, FakeVocabulary()) == 1


# Proposals


@pytest.mark.parametrize("alike", [0.0, 1.0])
def test_proposes_the_models_text_in_the_targets_tokens(alike: float) -> None:
    whole = TARGET.tokenize(TEXT)
    draft = writer(alike=alike)
    right = total = 0
    for at in range(1, len(whole) - 6):
        for count in (1, 2, 5):
            tokens = propose(draft, whole[:at], count=count).tokens
            assert len(tokens) == count
            assert TEXT.encode().startswith(spelled(TARGET, [*whole[:at], *tokens]))
            right += list(tokens) == whole[at : at + count]
            total += 1
    # These two vocabularies are far from alike: the last token is often the beginning of a longer one.
    assert right > (0.4 if alike else 0.8) * total


def test_the_last_token_is_kept_where_the_text_ends() -> None:
    tokens = TARGET.tokenize("def f(x)")
    assert propose(writer("def f(x): x"), tokens, count=9).tokens == tuple(TARGET.tokenize(": x"))
    assert propose(writer("def f(x)"), tokens).tokens == ()


def test_asks_before_every_token_and_stops_when_told() -> None:
    asked: list[float] = []

    def more(confidence: float) -> bool:
        asked.append(confidence)
        return len(asked) < 4

    proposal = writer().propose(TARGET.tokenize("def "), None, SAMPLER, more)
    assert len(proposal.tokens) == 3
    assert asked[0] == 1.0
    assert all(0 < c <= 1 for c in asked)
    assert writer().propose([5], None, SAMPLER, lambda _: False) == Proposal(())
    assert propose(writer(), []) == Proposal(())


def test_decodes_only_what_it_has_not_seen() -> None:
    whole = TARGET.tokenize(TEXT)
    draft = writer()
    propose(draft, whole[:10])
    for at in range(11, len(whole) - 6):
        model_of(draft).decodes.clear()
        propose(draft, whole[:at], count=2)
        assert len(model_of(draft).decodes[0]) <= 2 * BEHIND


def test_half_characters_on_either_side() -> None:
    text = "x = 'é€é'\n"
    target = FakeVocabulary(["x ="])  # characters are bytes
    own = FakeVocabulary(["'é", "€"])
    draft = OtherVocabularyDraft(TableTarget(Writes(text, own)), own, target, alike=0.0)
    whole = target.tokenize(text)
    for at in range(1, len(whole)):
        tokens = propose(draft, whole[:at], count=30).tokens
        assert list(tokens) == whole[at:], at
    other_way = OtherVocabularyDraft(TableTarget(Writes(text, target)), target, own, alike=0.0)
    assert propose(other_way, own.tokenize("x = "), count=30).tokens == tuple(own.tokenize("'é€é'\n"))


def test_text_that_is_no_text() -> None:
    draft = writer()
    assert propose(draft, [0xFF + 1] * 5).tokens == ()
    assert propose(draft, [*[0xFF + 1] * 5, *TARGET.tokenize("def ")]).tokens == ()
    assert len(propose(draft, TARGET.tokenize("def ")).tokens) == 4


def test_a_text_that_cannot_be_cut_comes_to_an_end() -> None:
    target = FakeVocabulary(["a" * n for n in range(2, 200)])
    own = FakeVocabulary()
    model = TableTarget(Writes("a" * 150, own))
    assert (
        len(OtherVocabularyDraft(model, own, target, alike=0.0).propose([98], None, SAMPLER, lambda _: True).tokens)
        <= 1
    )
    assert len(model.decodes) < 20


def test_the_grammar_takes_what_it_allows() -> None:
    start = TARGET.tokenize("def ")
    for allowed in ("def f(x):\n    return y", "def g", "def f(x)"):
        grammar = TextGrammar([allowed.encode()], TARGET)
        assert grammar.accept(start) == 1
        proposal = propose(writer(), start, grammar, count=8)
        text = spelled(TARGET, [*start, *proposal.tokens]).decode()
        assert allowed.startswith(text)
        assert TEXT.startswith(text)
        assert grammar.history[-1] == text.encode()


def test_an_abort_leaves_it_usable() -> None:
    start = TARGET.tokenize("def f")
    expected = propose(writer(), start)
    draft = writer()
    model_of(draft).abort_at = {0, 3}
    grammar = SetGrammar([dict.fromkeys(range(1, TARGET.size), 0)], frozenset(), TARGET.end_tokens)
    for _ in range(2):
        with pytest.raises(Aborted):
            propose(draft, start, grammar)
        assert grammar.history == [0]
    assert propose(draft, start, grammar) == expected


def test_a_tokenizer_that_refuses_once_leaves_it_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(text: str, special: bool = False) -> list[int]:
        raise CodespecError("refused")

    draft, start = writer(), TARGET.tokenize("def f")
    expected = propose(writer(), start)
    propose(draft, start[:1])
    monkeypatch.setattr(OWN, "tokenize", refuse)
    with pytest.raises(CodespecError, match="refused"):
        propose(draft, start)
    monkeypatch.undo()
    assert propose(draft, start) == expected


def test_logits_that_are_no_numbers() -> None:
    draft = writer()
    model_of(draft).table.row = lambda tokens: np.full(OWN.size, np.nan, np.float32)  # type: ignore[method-assign]
    with pytest.raises(CodespecError, match="damaged"):
        propose(draft, [5])


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=1.0, seed=3)])
@pytest.mark.parametrize("alike", [0.0, 1.0])
@pytest.mark.parametrize("constrained", [False, True])
def test_the_text_is_that_of_the_target_alone(sampling: Sampling, alike: float, constrained: bool) -> None:
    for seed in range(10):
        table = Table(TARGET.size, seed, scale=4)
        texts = []
        drafts = (
            None,
            OtherVocabularyDraft(TableTarget(Table(OWN.size, seed + 1)), OWN, TARGET, alike=alike),
            writer(),
        )
        for draft in drafts:
            grammar = TextGrammar([TEXT.encode(), TEXT.encode()[4:]], TARGET) if constrained else None
            generator = Generator(TableTarget(table), draft, TARGET.end_tokens)
            rounds = generator.generate(TARGET.tokenize("def f"), sampling, Limits(30), grammar)
            texts.append([token for step in rounds for token in step.tokens])
        assert texts[0] == texts[1] == texts[2]


# Control tokens and long texts


class Marked(FakeVocabulary):
    """Some of the words are control tokens."""

    def __init__(self, words: Sequence[str], control: Sequence[str]) -> None:
        super().__init__([*words, *control])
        self.control = {name: 257 + len(words) + i for i, name in enumerate(control)}

    def tokenize(self, text: str, special: bool = False) -> list[int]:
        return super().tokenize(text)

    def token_bytes(self, token: int) -> bytes:
        return b"" if token in self.control.values() else super().token_bytes(token)


FIM = ["<PRE>", "<SUF>", "<MID>", "<SEP>"]
THEIRS = Marked(["def ", "return"], FIM)
OURS = Marked(["de", "f "], ["<BEG>", *FIM])


def view(prompt: str, markers: Markers, context_length: int | None = None, generated: str = "") -> str:
    """What the model reads for a prompt."""
    tokens: list[int] = []
    for part in prompt.split("|"):
        tokens += [THEIRS.control[part]] if part in THEIRS.control else THEIRS.tokenize(part)
    names = {token: name for name, token in OURS.control.items()}
    table = Table(OURS.size, seed=1)
    table.row = lambda tokens: (np.arange(OURS.size) == ord("x") + 1).astype(np.float32)  # type: ignore[method-assign]
    model = TableTarget(table)
    draft = OtherVocabularyDraft(model, OURS, THEIRS, markers, context_length, alike=1.0)
    if generated:
        propose(draft, tokens, count=1)
    propose(draft, [*tokens, *THEIRS.tokenize(generated)], count=1)
    return "".join(names.get(token) or OURS.token_bytes(token).decode() for token in model.tokens)


SAME = {THEIRS.control[name]: OURS.control[name] for name in FIM}
CURSOR = (THEIRS.control["<PRE>"], THEIRS.control["<SUF>"])
SPM = "<SEP>|a.py\n|<PRE>|<SUF>|return 2|<MID>|def f"
PSM = "<SEP>|a.py\n|<PRE>|def f|<SUF>|return 2|<MID>"


@pytest.mark.parametrize("generated", ["", "(x)"])
def test_control_tokens_become_those_of_the_draft(generated: str) -> None:
    for prompt in (SPM, PSM):
        plain = Markers(fim=CURSOR)
        assert view(prompt, Markers(SAME, CURSOR), None, generated) == prompt.replace("|", "") + generated
        assert view(prompt, plain, None, generated) == "def f" + generated
        some = {token: own for token, own in SAME.items() if own != OURS.control["<MID>"]}
        assert view(prompt, Markers(some, CURSOR), None, generated) == "def f" + generated
        without_separator = {**SAME, THEIRS.control["<SEP>"]: None}
        read = prompt.replace("|", "").replace("<SEP>", "") + generated
        assert view(prompt, Markers(without_separator, CURSOR), None, generated) == read
        assert view(prompt, Markers(SAME, CURSOR, OURS.control["<BEG>"]), None, generated).startswith("<BEG><SEP>")
        assert view(prompt, Markers({}, CURSOR, OURS.control["<BEG>"]), None, generated) == "<BEG>def f" + generated
    assert view("return|<SEP>|def f", Markers(), None, generated) == "def f" + generated


def test_a_text_that_is_too_long_loses_its_beginning() -> None:
    full = Markers(SAME, CURSOR)
    assert view(SPM, full, 100).startswith("<SEP>")
    assert view(SPM, full, 20, "(x)") == "def f(x)"
    assert view(PSM, full, 20, "(x)") == "def f(x)"
    long = "def f(x): return x\n" * 50
    read = view(long, full, 64)
    assert long.endswith(read)
    assert 30 < len(OURS.tokenize(read)) <= 56


def test_a_long_text_keeps_its_kv_cache() -> None:
    whole = TARGET.tokenize(TEXT * 20)
    model = TableTarget(Table(OWN.size, seed=1), n_ctx=64)
    draft = OtherVocabularyDraft(model, OWN, TARGET, context_length=64, alike=1.0)
    for at in range(1, len(whole)):
        propose(draft, whole[:at], count=1)
        assert model.n_past <= 64
    assert sum(map(len, model.decodes)) < 12 * len(whole)


# Real models


@pytest.fixture(scope="module")
def permuted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded draft with its token ids shuffled."""
    pytest.importorskip("gguf")
    from codespec.models.registry import EMBEDDED
    from tests import permuted as module

    return module.write(EMBEDDED / "draft-python.gguf", tmp_path_factory.mktemp("gguf") / "permuted.gguf")


@pytest.fixture(scope="module")
def engine():
    from codespec.engine.local import LocalEngine
    from codespec.models.registry import EMBEDDED_TARGET

    engine = LocalEngine(EMBEDDED_TARGET, exact=True)
    yield engine
    engine.close()


def test_a_draft_with_shuffled_ids_is_as_good(engine, permuted: Path, caplog: pytest.LogCaptureFixture) -> None:
    from benchmarks.decode.decode import default_files
    from benchmarks.decode.prompts import prompts
    from codespec.draft.draft_length import FixedLengthDraft
    from codespec.models.registry import EMBEDDED

    def text_and_counts(prompt, draft):
        chunks = list(engine.generate(prompt.tokens, limits=Limits(64), speculate=draft))
        return "".join(chunk.text for chunk in chunks), engine.statistics.accepted, engine.statistics.drafted

    chosen = prompts(engine, "code", default_files()[20:30], 10, 64, seed=1)
    alone = [text_and_counts(prompt, False)[0] for prompt in chosen]
    accepted = {}
    for path in (EMBEDDED / "draft-python.gguf", permuted):
        engine.drafts.choose(path)
        found = [text_and_counts(prompt, FixedLengthDraft(engine.drafts.model, 4)) for prompt in chosen]
        assert [text for text, *_ in found] == alone
        accepted[path] = sum(count for _, count, _ in found) / sum(drafted for *_, drafted in found)
    own, shuffled = accepted.values()
    assert own > 0.1
    assert abs(own - shuffled) < 0.05
    engine.drafts.choose(permuted)
    [note] = engine.notes
    assert "permuted.gguf has another vocabulary than target target.gguf" in note
    assert "expect about 0% of the last tokens" in note
    assert [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING] == [note]


def test_markers_of_real_vocabularies(permuted: Path, engine) -> None:
    from codespec.llama.model import Model

    target = engine.vocabulary
    with Model(permuted, vocabulary_only=True) as model:
        markers = shared_markers(model.vocabulary, target)
        assert {target.name(a): model.vocabulary.name(present(b)) for a, b in markers.same.items()} == {
            target.name(a): target.name(a) for a in target.control_tokens
        }
        assert markers.fim == (target.fim_token("pre"), target.fim_token("suf"))
        assert cut_alike(model.vocabulary, target) == 1


def test_the_note_names_the_price() -> None:
    from codespec.draft.other_vocabulary import other_vocabulary_note

    assert "only 80% of cases" in other_vocabulary_note("a.gguf", "b.gguf", 0.8)
    assert "about 5% of the last tokens" in other_vocabulary_note("a.gguf", "b.gguf", 0.95)
