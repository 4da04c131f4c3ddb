"""What every draft must do; a new draft joins ``MAKERS``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from codespec.draft.acceptance import Acceptance
from codespec.draft.combined import CombinedDraft
from codespec.draft.costs import RunningCosts
from codespec.draft.forced import ForcedDraft
from codespec.draft.model import ModelDraft
from codespec.draft.ngram import NgramDraft
from codespec.draft.other_vocabulary import OtherVocabularyDraft
from codespec.draft.vocabulary_mapping import TrimmedVocabularyTarget
from codespec.draft.window.window_draft import WindowDraft
from codespec.protocols import Draft, Sampling
from codespec.speculative.sampling import LogitSampler
from tests.fakes import FakeVocabulary, Table, TableTarget, TextGrammar, oracle_draft, random_draft

VOCABULARY = FakeVocabulary(["def ", "return", "(x)", ": ", "é", "if "])
TEXTS = ["def f(x): return x\n", "def g(x): return é\n", "return x", "return y", "if x: return (x)", "if x"]
TABLE = Table(VOCABULARY.size, seed=1)


def model() -> ModelDraft:
    return ModelDraft(TableTarget(TABLE), VOCABULARY.end_tokens)


def other_vocabulary(alike: float) -> OtherVocabularyDraft:
    own = FakeVocabulary(["de", "f ", "return ", "(", "x)", " x", "if"])
    return OtherVocabularyDraft(TableTarget(Table(own.size, seed=4)), own, VOCABULARY, context_length=16, alike=alike)


def window() -> WindowDraft:
    """For the texts of ``situations``, behind a prompt of one token: the second token of a longer one is new text."""
    draft = WindowDraft(VOCABULARY)
    changes = [(VOCABULARY.tokenize("return x"), VOCABULARY.tokenize("return y"))]
    draft.begin(1, VOCABULARY.tokenize("def h(x): return x\nif x"), changes)
    return draft


def combined(model: ModelDraft | None, window: WindowDraft | None = None) -> CombinedDraft:
    return CombinedDraft(
        RunningCosts(),
        Acceptance(),
        [*([window] if window is not None else []), NgramDraft()],
        model,
        ForcedDraft(VOCABULARY),
        end_tokens=VOCABULARY.end_tokens,
        clock=lambda: 0.0,
    )


def trimmed() -> ModelDraft:
    tokens = range(0, VOCABULARY.size, 2)
    own = TableTarget(Table(len(tokens) + 1, seed=5))
    sequence = TrimmedVocabularyTarget(own, tokens, VOCABULARY.size, len(tokens))
    return ModelDraft(sequence, VOCABULARY.end_tokens, np.array(tokens))


MAKERS: dict[str, Callable[[], Draft]] = {
    "model": model,
    "trimmed": trimmed,
    "other vocabulary": lambda: other_vocabulary(0.5),
    "other vocabulary, cut alike": lambda: other_vocabulary(1.0),
    "forced": lambda: ForcedDraft(VOCABULARY),
    "ngram": NgramDraft,
    "window": window,
    "combined": lambda: combined(model()),
    "combined with a window": lambda: combined(model(), window()),
    "combined with a window, without a model": lambda: combined(None, window()),
    "combined without a model": lambda: combined(None),
    "fake, random": lambda: random_draft(VOCABULARY.size, seed=3, length=2),
    "fake, oracle": lambda: oracle_draft(VOCABULARY.tokenize(TEXTS[0])),
}

SAMPLER = LogitSampler(Sampling(temperature=1.0, seed=8, top_k=20), 1)


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Callable[[], Draft]:
    return MAKERS[request.param]


def new_grammar() -> TextGrammar:
    return TextGrammar([text.encode() for text in TEXTS], VOCABULARY)


def situations(seed: int, count: int = 60):
    """Texts that grow, shrink and diverge at random, with the grammar at their end."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        text = TEXTS[rng.integers(len(TEXTS))]
        whole = VOCABULARY.tokenize(text) if rng.random() < 0.7 else [b + 1 for b in text.encode()]
        tokens = whole[: rng.integers(0, len(whole) + 1)]
        grammar = new_grammar()
        assert grammar.accept(tokens) == len(tokens)
        # A prompt of one or two tokens before what the grammar sees.
        yield [1, 2][: rng.integers(1, 3)] + tokens, grammar, int(rng.integers(0, 6))


class More:
    """Allows ``count`` tokens and notes what it was asked."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.asked: list[float] = []

    def __call__(self, confidence: float) -> bool:
        self.asked.append(confidence)
        return len(self.asked) <= self.count


@pytest.mark.parametrize("seed", range(5))
def test_the_grammar_advances_over_exactly_the_proposal(make: Callable[[], Draft], seed: int) -> None:
    draft = make()
    for tokens, grammar, count in situations(seed):
        before = list(grammar.history)
        again = grammar.copy()
        proposal = draft.propose(tokens, grammar, SAMPLER, More(count))
        assert again.accept(proposal.tokens) == len(proposal.tokens)
        assert again.history == grammar.history
        grammar.rollback(len(proposal.tokens))
        assert grammar.history == before


@pytest.mark.parametrize("seed", range(5))
def test_asks_before_every_token(make: Callable[[], Draft], seed: int) -> None:
    draft = make()
    for tokens, grammar, count in situations(seed):
        more = More(count)
        proposal = draft.propose(tokens, grammar, SAMPLER, more)
        assert len(proposal.tokens) <= count
        assert len(proposal.tokens) <= len(more.asked)
        assert more.asked[:1] in ([], [1.0])
        assert all(0 <= c <= 1 + 1e-6 for c in more.asked)


def test_what_it_saw_before_changes_nothing() -> None:
    """In step after any jump: an old draft proposes what a new one does (the random fake apart)."""
    for name in ("model", "forced", "ngram", "window", "fake, oracle"):
        draft = MAKERS[name]()
        for tokens, grammar, count in situations(9):
            expected = MAKERS[name]().propose(tokens, grammar.copy(), SAMPLER, More(count))
            assert draft.propose(tokens, grammar, SAMPLER, More(count)) == expected


def test_leaves_the_text_alone_and_keeps_no_hold_of_it(make: Callable[[], Draft]) -> None:
    draft = make()
    tokens = [1]
    for _ in range(5):
        before = list(tokens)
        draft.propose(tokens, None, SAMPLER, More(4))
        assert tokens == before
        tokens.append(5)  # the caller's list changes between calls


def test_works_without_a_grammar(make: Callable[[], Draft]) -> None:
    proposal = make().propose([1, 2], None, SAMPLER, More(3))
    assert len(proposal.tokens) <= 3
    assert proposal.source in {"model", "window", "ngram", "forced"}


def test_asked_for_less_it_proposes_the_beginning_of_the_same(make: Callable[[], Draft]) -> None:
    """Whether a token is proposed does not depend on what comes after it."""
    for tokens, grammar, count in situations(4):
        whole = make().propose(tokens, grammar.copy(), SAMPLER, More(6))
        part = make().propose(tokens, grammar.copy(), SAMPLER, More(count))
        assert part.tokens == whole.first(count).tokens
