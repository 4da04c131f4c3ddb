"""Model, forced and composed drafts, each on its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from codespec.draft.draft_length import FixedLength
from codespec.draft.forced import ForcedDraft
from codespec.draft.model import ModelDraft
from codespec.draft.sequence import HeldSequence, common_prefix
from codespec.draft.text import whole_characters
from codespec.protocols import Aborted, CodespecError, Proposal, Sampling
from codespec.speculative.sampling import LogitSampler
from tests.fakes import FakeVocabulary, SetGrammar, Table, TableTarget, TextGrammar
from tests.present import present

END = frozenset({0})
SAMPLER = LogitSampler(Sampling(temperature=0.8, seed=5, top_k=10), 1)


def propose(draft: ModelDraft | ForcedDraft, tokens: Sequence[int], grammar=None, count: int = 4) -> Proposal:
    return draft.propose(tokens, grammar, SAMPLER, FixedLength(count).more(count))


# A model


@pytest.fixture
def model() -> TableTarget:
    return TableTarget(Table(30, seed=2), n_ctx=40)


def test_proposes_what_the_target_would_choose_from_the_same_logits(model: TableTarget) -> None:
    tokens = [3, 4]
    proposal = propose(ModelDraft(model, END), tokens, count=6)
    for token in proposal.tokens:
        assert present(SAMPLER.pick(model.table.row(tokens), tokens, None)).token == token
        tokens.append(token)
    assert len(proposal.tokens) == 6 or proposal.tokens[-1] == 0
    assert proposal.source == "model"


def test_decodes_only_what_it_has_not_seen(model: TableTarget) -> None:
    draft = ModelDraft(model, END)
    text = [5, 6, 7, 8]
    proposal = propose(draft, text, count=3)
    assert model.decodes == [text, [proposal.tokens[0]], [proposal.tokens[1]]]
    model.decodes.clear()
    # All three accepted, and a token of the target's own.
    text = [*text, *proposal.tokens, 9]
    propose(draft, text, count=1)
    assert model.decodes == [[proposal.tokens[2], 9]]
    model.decodes.clear()
    # The same text again: the last token alone gives the logits.
    propose(draft, text, count=1)
    assert model.decodes == [[9]]


def test_asks_for_every_token_with_the_confidence_of_the_one_before(model: TableTarget) -> None:
    asked: list[float] = []

    def more(confidence: float) -> bool:
        asked.append(confidence)
        return len(asked) < 4

    ModelDraft(model, END).propose([3], None, SAMPLER, more)
    assert asked[0] == 1.0
    assert len(asked) == 4
    assert all(0 < c <= 1 for c in asked[1:])
    assert min(asked) < 1
    assert ModelDraft(model, END).propose([3], None, SAMPLER, lambda _: False) == Proposal(())


def test_an_end_token_is_the_last_one_proposed() -> None:
    table = Table(10, seed=2)
    table.row([4])[0] = 50
    assert propose(ModelDraft(TableTarget(table), END), [1, 4]).tokens[:1] != (0,)
    table.order = 1
    table.row([4])[0] = 50
    assert propose(ModelDraft(TableTarget(table), END), [1, 4]).tokens == (0,)


def test_stops_where_the_grammar_does(model: TableTarget) -> None:
    dead_end = SetGrammar([{5: 1}, {6: 2}, {}], frozenset(), END)
    assert propose(ModelDraft(model, END), [1], dead_end).tokens == (5, 6)
    complete = SetGrammar([{5: 1}, {6: 2}, {}], frozenset({2}), END)
    assert propose(ModelDraft(model, END), [1], complete).tokens == (5, 6)
    assert complete.history == [0, 1, 2]


def test_a_text_too_long_for_its_context(model: TableTarget) -> None:
    draft = ModelDraft(model, END)
    grammar = SetGrammar([dict.fromkeys(range(1, 30), 0)], frozenset(), END)
    with pytest.raises(CodespecError):
        propose(draft, [1] * 41, grammar)
    assert grammar.history == [0], "nothing was proposed"
    assert len(propose(draft, [1] * 38, grammar, count=9).tokens) == 3
    grammar.rollback(3)
    assert len(propose(draft, [1] * 30, grammar).tokens) == 4


def test_an_abort_leaves_it_usable(model: TableTarget) -> None:
    draft = ModelDraft(model, END)
    expected = propose(ModelDraft(TableTarget(model.table), END), [1, 2, 3])
    model.abort_at = {0, 3}
    for _ in range(2):
        with pytest.raises(Aborted):
            propose(draft, [1, 2, 3])
    assert propose(draft, [1, 2, 3]) == expected


@pytest.mark.parametrize("seed", range(20))
def test_held_sequence_follows_any_jump(seed: int) -> None:
    rng = np.random.default_rng(seed)
    target = TableTarget(Table(5, seed=1, order=4))
    sequence = HeldSequence(target)
    for _ in range(30):
        text = rng.integers(0, 3, rng.integers(1, 9)).tolist()
        kept = common_prefix(target.tokens, text)
        logits, decoded = sequence.bring_to(text)
        assert target.tokens == text == sequence.tokens
        assert decoded == len(text) - min(kept, len(text) - 1)
        assert (logits == target.table.row(text)).all()


def test_common_prefix_of_long_texts() -> None:
    text = list(range(1_000))
    for same in (0, 1, 15, 500, 983, 984, 985, 999, 1_000):
        other = [*text[:same], -1, *text[same + 1 :]]
        for a, b in ((text, other), (text, other[: same + 1]), (tuple(text), other), (other, [*text, 7])):
            assert common_prefix(a, b) == same == common_prefix(b, a)


# Forced text


WORDS = ["return", " = ", '": ', '"na', "me", '"name"', "é"]


def forced_proposal(texts: list[str], before: str = "", tokens: Sequence[int] | None = None) -> list[str]:
    """The pieces of text that are proposed behind ``before``."""
    vocabulary = FakeVocabulary(WORDS)
    grammar = TextGrammar([text.encode() for text in texts], vocabulary)
    tokens = vocabulary.tokenize(before) if tokens is None else tokens
    assert grammar.accept(tokens) == len(tokens)
    start = len(grammar.history)
    proposal = propose(ForcedDraft(vocabulary), tokens, grammar, count=20)
    assert len(grammar.history) - start == len(proposal.tokens)
    return [vocabulary.token_bytes(t).decode() for t in proposal.tokens]


@pytest.mark.parametrize(
    ("texts", "before", "expected"),
    [
        (["return"], "", []),  # one token, and the last is left out
        (["return = x"], "", ["return", " = "]),
        (["return = x", "return = y"], "", ["return"]),
        (["ab", "cd"], "", []),  # a choice
        (["ab", "abcd"], "ab", []),  # may end here
        (['{"name": 1', '{"name": 2'], "{", ['"name"', ":"]),
    ],
)
def test_forced_text(texts: list[str], before: str, expected: list[str]) -> None:
    assert forced_proposal(texts, before) == expected


def test_forced_text_behind_a_token_that_would_have_merged() -> None:
    # The text so far ends in `"`, which the tokenizer would have merged with what is forced.
    vocabulary = FakeVocabulary(WORDS)
    quote = vocabulary.tokenize('"')
    assert forced_proposal(['"name" = x'], tokens=quote) == ["n", "a", "me", '"', " = "]


def test_forced_text_in_the_spelling_that_the_target_chose() -> None:
    vocabulary = FakeVocabulary(WORDS)
    text = '"name" = x'
    forced = ForcedDraft(vocabulary)

    def proposed(tokens: Sequence[int]) -> list[str]:
        grammar = TextGrammar([text.encode()], vocabulary)
        assert grammar.accept(tokens) == len(tokens)
        return [vocabulary.token_bytes(t).decode() for t in propose(forced, tokens, grammar, count=20).tokens]

    canonical = vocabulary.tokenize(text)
    assert proposed([]) == [vocabulary.token_bytes(t).decode() for t in canonical[:-1]]
    quote, n, a = (vocabulary.tokenize(each)[0] for each in '"na')
    assert proposed([quote, n])[0] == "a"  # the target spelled `"` and `n`
    assert proposed([quote, n, a])[0] == "me"
    assert proposed([])[:3] == ['"', "n", "a"]  # as the target did; the rest as the vocabulary does
    assert proposed([canonical[0]]) != []  # another beginning is not held up by it


def test_forced_text_behind_part_of_a_character() -> None:
    first_byte = ["é".encode()[0] + 1]  # the ids of bytes are the bytes plus one
    assert forced_proposal(["éabc"], tokens=first_byte) == []
    assert whole_characters("aé".encode()[:-1]) == "a"
    assert whole_characters("a€".encode()[:-1]) == "a"
    assert whole_characters("€".encode()[1:]) == ""
    assert whole_characters(b"") == ""


def test_without_a_grammar_nothing_is_forced() -> None:
    assert propose(ForcedDraft(FakeVocabulary()), [5]).tokens == ()
