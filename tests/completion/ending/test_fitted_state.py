"""The grammar state that asks the suffix gate about end tokens."""

import copy

import pytest

from codespec.completion.ending.fitted_state import FittedState, FreeState
from codespec.completion.ending.stop_rule import StopRule
from codespec.completion.ending.suffix_gate import SuffixGate
from tests.completion.ending.json_gate import END, Bytes, allowed, json_state, masked


def fitted(text, lead="", cut=None, vocabulary=None, gate=True):
    prefix, _, suffix = text.partition("|")
    prefix = prefix.removesuffix(lead)
    vocabulary = vocabulary or Bytes()
    asked = SuffixGate(vocabulary, suffix, json_state(prefix)) if gate else None
    return FittedState(json_state(prefix), asked, vocabulary, lead, cut)


def test_the_end_is_allowed_where_the_suffix_fits_and_nowhere_else():
    state = fitted('{"a": |}')
    ends = []
    for token in b'[1, "x"]':
        ends.append(state.allows(END))
        assert state.accept((token,)) == 1
    assert ends == [False] * 8
    assert state.allows(END)
    assert state.accept((END,)) == 1
    assert state.finished
    assert state.can_end
    assert not state.allows(ord("1"))
    assert masked(state) == set()


def test_mask_and_allows_agree_along_a_text():
    for lead in ("", " "):
        state = fitted('{"a": |}', lead)
        for token in (lead + '{"b": [1, 2], "c": "d"}').encode():
            assert masked(state) == allowed(state)
            assert state.accept((token,)) == 1
        assert END in masked(state)


def test_an_end_is_wanted_where_nothing_else_was_refused():
    state = fitted("[1|]")
    assert not state.allows(ord("\v"))
    assert state.end_was_wanted
    assert not state.allows(ord("x"))
    assert not state.end_was_wanted
    assert state.copy().end_was_wanted
    assert state.accept(b",2") == 2
    assert state.end_was_wanted


def test_a_text_that_must_say_something_does_not_end_before():
    state = FittedState(json_state("["), SuffixGate(Bytes(), "\n]", json_state("[")), Bytes(), "1", silent=False)
    assert state.accept(b"1 ") == 2
    assert not state.allows(END)
    assert END not in masked(state)
    assert state.copy().accept(b",2") == 2
    assert state.accept([*b",2", END]) == 3


def test_rollback_takes_back_text_and_end():
    state = fitted("[|]")
    assert state.accept([*b"12", END]) == 3
    state.rollback(1)
    assert not state.finished
    assert state.allows(ord("3"))
    state.rollback(2)
    assert state.allows(END)
    assert allowed(state) == allowed(fitted("[|]"))
    with pytest.raises(ValueError, match="cannot undo 1 of 0"):
        state.rollback(1)


def test_copies_are_independent_and_share_the_gate():
    state = fitted("[|]")
    state.accept(b"1")
    other = copy.deepcopy(state)
    other.accept(b",")
    assert state.allows(END)
    assert not other.allows(END)
    other.accept(b"2")
    assert other._gate is state._gate
    assert other.allows(END)


def test_the_text_begins_with_what_the_document_has_already():
    vocabulary = Bytes((b" 1", b"  ", b"12"))
    state = fitted('{"a": |}', " ", vocabulary=vocabulary)
    assert allowed(state, vocabulary.size) == {ord(" ")}
    assert state.accept(b"1") == 0
    assert state.accept(b" ") == 1
    assert state.allows(ord("1"))
    assert state.forced() == b""


def test_no_end_in_the_middle_of_a_character():
    state = fitted('["|"]')
    assert state.accept("é".encode()[:1]) == 1
    assert not state.allows(END)
    assert state.accept("é".encode()[1:]) == 1
    assert state.allows(END)


def test_a_line_ends_only_where_the_suffix_fits():
    cut = StopRule("line").cut
    state = fitted("[1|]", cut=cut)
    for text, breaks in ((b", ", False), (b"2", True), (b",", False), (b" [3", False), (b"]", True)):
        assert state.accept(text) == len(text)
        assert state.allows(10) == breaks
        assert masked(state) == allowed(state)
    assert state.accept(b"\n") == 1


@pytest.mark.parametrize(("line", "breaks"), [("a &", True), ("a ||", True), ("a =", True), ("a,", False), ("a", True)])
def test_behind_an_operator_a_text_goes_on_in_the_next_line(line, breaks):
    def check(text, strict=True):
        return text.rstrip()[-1:].isalpha()

    gate = SuffixGate(Bytes(), "\n", check=check)
    state = FittedState(FreeState(), gate, Bytes(), cut=StopRule("line").cut)
    assert state.accept(line.encode()) == len(line)
    assert state.allows(10) == breaks
    assert state.allows(END) == check(line)


def test_without_a_gate_a_text_ends_anywhere():
    state = fitted("[|]", gate=False)
    assert state.accept([*b"[1", END]) == 3


def test_a_state_without_a_grammar_takes_everything():
    state = FreeState()
    assert state.accept(range(10)) == 10
    assert masked(state) == set(range(257))
    assert not state.can_end
    assert not state.finished
    state.copy().rollback(10)
    with pytest.raises(ValueError, match="cannot undo 11"):
        state.rollback(11)


class Asked(FreeState):
    """Remembers what it was asked to take."""

    def __init__(self):
        super().__init__()
        self.runs = []

    def accept(self, tokens):
        self.runs.append(bytes(tokens))
        return super().accept(tokens)


def test_tokens_that_the_grammar_alone_judges_are_taken_at_once():
    inner = Asked()
    state = FittedState(inner, SuffixGate(Bytes(), ")", json_state("[")), Bytes(), "ab", lambda text: None)
    assert state.accept(b"abcd\nef") == 7
    assert inner.runs == [b"a", b"b", b"cd", b"\n", b"ef"]
    # The lead must come first, whatever else comes along with it.
    other = FittedState(Asked(), None, Bytes(), "ab")
    assert other.accept(b"acd") == 1
