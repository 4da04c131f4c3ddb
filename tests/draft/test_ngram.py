"""The index of earlier text: equal to a search through everything, through any growth and cut."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from codespec.draft.ngram import BREAK, CANDIDATES, GRAM, LONGEST_MATCH, NgramDraft, NgramIndex
from codespec.protocols import Sampling
from codespec.speculative.sampling import LogitSampler

SAMPLER = LogitSampler(Sampling(), 1)


def searched(text: Sequence[int], tail: Sequence[int]) -> list[tuple[int, int]]:
    """(length, place) of the most recent places after the last tokens of ``tail``, by looking everywhere."""
    found = []
    for place in range(len(text) - 1, GRAM - 1, -1):
        length = 0
        while length < min(LONGEST_MATCH, place, len(tail)) and text[place - 1 - length] == tail[-1 - length]:
            length += 1
        if length >= GRAM:
            found.append((length, place))
    return [each for each in found[:CANDIDATES] if text[each[1]] != BREAK]


@pytest.mark.parametrize("seed", range(20))
def test_places_are_those_of_a_search(seed: int) -> None:
    rng = np.random.default_rng(seed)
    index, text = NgramIndex(), []
    for _ in range(60):
        if rng.random() < 0.3:
            length = int(rng.integers(0, len(text) + 1))
            index.truncate(length)
            del text[length:]
        new = rng.integers(-1 if rng.random() < 0.2 else 0, 4, rng.integers(0, 12)).tolist()
        index.extend(new)
        text += new
        assert index.tokens.tolist() == text
        tail = rng.integers(0, 4, 10).tolist() if rng.random() < 0.3 or len(text) < 3 else text
        assert index.places(tail) == searched(text, tail)


def proposed(draft: NgramDraft, tokens: Sequence[int], count: int) -> tuple[int, ...]:
    left = [True] * count
    return tuple(draft.propose(tokens, None, SAMPLER, lambda _: bool(left) and left.pop()).tokens)


def test_it_goes_on_as_the_last_time() -> None:
    assert proposed(NgramDraft(), [1, 2, 3, 4, 5, 9, 1, 2], 3) == (3, 4, 5)


def test_the_longest_match_counts() -> None:
    assert proposed(NgramDraft(), [7, 1, 2, 3, 8, 1, 2, 4, 7, 1, 2], 1) == (3,)


def test_what_repeats_itself_goes_on_past_its_end() -> None:
    assert proposed(NgramDraft(), [1, 2, 3, 1, 2, 3, 1, 2], 8) == (3, 1, 2, 3, 1, 2, 3, 1)


def test_other_texts_are_followed_to_their_end_and_not_across() -> None:
    learnt = NgramIndex()
    learnt.extend([1, 2, 3, BREAK, 1, 9, 4])
    draft = NgramDraft(learnt)
    assert proposed(draft, [8, 1, 2], 5) == (3,)
    assert proposed(draft, [8, 1, 9], 5) == (4,)
    assert proposed(draft, [8, 2, 9], 5) == ()


def test_a_document_is_drafted_from_until_there_is_another_one() -> None:
    draft = NgramDraft()
    draft.read([1, 2, 3, 4, BREAK, 5, 6, 7])
    assert proposed(draft, [9, 1, 2], 8) == (3, 4)
    assert proposed(draft, [9, 5, 6], 8) == (7,)
    draft.read([5, 6, 8])
    assert proposed(draft, [9, 5, 6], 8) == (8,)
    assert proposed(draft, [9, 1, 2], 8) == ()
    draft.read(())
    assert proposed(draft, [9, 5, 6], 8) == ()


def test_whether_earlier_places_agree() -> None:
    draft = NgramDraft()
    for text, agreed in (([1, 2, 3, 1, 2, 3, 1, 2], True), ([1, 2, 3, 1, 2, 4, 1, 2], False)):
        draft.sync(text)
        match = draft.match(text)
        assert match is not None
        assert match.agreed == agreed
