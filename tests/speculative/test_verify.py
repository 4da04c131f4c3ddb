"""One verdict at a time, on logits that name the target's choice in each row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from codespec.protocols import CodespecError, Proposal, Sampling
from codespec.speculative.sampling import LogitSampler
from codespec.speculative.verify import Verdict, verify_coupled
from tests.fakes import SetGrammar

END = frozenset({0})


class OneByOne(LogitSampler):
    """Asks the grammar for every token by itself."""

    def only_choice(self, logits):
        return None


def verdict_on(
    proposal: Sequence[int], choices: Sequence[int], grammar: SetGrammar | None = None, room: int = 99
) -> Verdict:
    logits = np.zeros((len(choices), 10), np.float32)
    logits[np.arange(len(choices)), choices] = 9
    tokens, before = [7, 7], None if grammar is None else grammar.copy()
    verdict = verify_coupled(logits, Proposal(proposal), tokens, grammar, LogitSampler(Sampling(), 2), END, room)
    assert tokens == [7, 7, *verdict.tokens]
    again = [7, 7]
    one_by_one = verify_coupled(logits, Proposal(proposal), again, before, OneByOne(Sampling(), 2), END, room)
    assert (one_by_one, again) == (verdict, tokens)
    return verdict


@pytest.mark.parametrize(
    ("proposal", "choices", "expected"),
    [
        ([], [4], Verdict((4,), 0, None)),
        ([4, 5], [4, 5, 6], Verdict((4, 5, 6), 2, None)),
        ([4, 5], [4, 3, 6], Verdict((4, 3), 1, None)),
        ([4, 5], [3, 5, 6], Verdict((3,), 0, None)),
        ([4, 0], [4, 0, 6], Verdict((4,), 2, "stop")),
        ([4, 5], [4, 0, 6], Verdict((4,), 1, "stop")),
        ([4, 5], [4, 5, 0], Verdict((4, 5), 2, "stop")),
        ([0], [3, 6], Verdict((3,), 0, None)),
    ],
)
def test_as_far_as_the_proposal_was_right(proposal: list[int], choices: list[int], expected: Verdict) -> None:
    assert verdict_on(proposal, choices) == expected


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (1, Verdict((4,), 1, "length")),
        (2, Verdict((4, 5), 2, "length")),
        (3, Verdict((4, 5, 6), 2, "length")),
        (4, Verdict((4, 5, 6), 2, None)),
    ],
)
def test_never_more_than_there_is_room_for(room: int, expected: Verdict) -> None:
    assert verdict_on([4, 5], [4, 5, 6], room=room) == expected


def test_the_grammar_decides_too() -> None:
    # 0 -4-> 1 -5-> 2, complete there and without continuation
    grammar = SetGrammar([{4: 1}, {5: 2, 6: 3}, {}, {}], frozenset({2}), END)
    assert verdict_on([4, 5, 1], [1, 1, 1, 1], grammar) == Verdict((4, 5), 2, "stop")
    assert grammar.history == [0, 1, 2]
    grammar.rollback(2)
    assert verdict_on([4, 6, 1], [1, 6, 1, 1], grammar) == Verdict((4, 6), 2, "grammar")
    assert grammar.history == [0, 1, 3]


def test_a_grammar_that_contradicts_itself() -> None:
    grammar = SetGrammar([{4: 0}], frozenset(), END)
    grammar.accept = lambda tokens: 0  # type: ignore[method-assign]
    with pytest.raises(CodespecError, match="token 4"):
        verdict_on([], [4], grammar)
