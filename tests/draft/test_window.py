"""The window as a draft: where the new text stands in it after every kind of difference, and what is expected again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from codespec.draft.window.window_draft import LONGEST_PROPOSAL, WindowDraft
from codespec.llama.model import Model
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import Sampling
from codespec.speculative.sampling import LogitSampler

SAMPLER = LogitSampler(Sampling(), 1)
PROMPT = [1, 2, 3]

OLD = """\
class Cart:
    def add(self, item):
        self.items.append(item)
        self.total += item.price

    def remove(self, item):
        self.items.remove(item)
        self.total -= item.price

    def count(self):
        return len(self.items)
"""


@pytest.fixture(scope="module")
def vocabulary():
    model = Model(EMBEDDED_TARGET, vocabulary_only=True)
    yield model.vocabulary
    model.close()


def passes(draft: WindowDraft, text: Sequence[int]) -> list[int]:
    """How many tokens each pass of a target adds that writes ``text``: those that the draft foresaw, and its own."""
    found, place = [], 0
    while place < len(text):
        tokens = [*PROMPT, *text[:place]]
        proposal = draft.propose(tokens, None, SAMPLER, lambda _: True).tokens
        right = 0
        while right < min(len(proposal), len(text) - place) and proposal[right] == text[place + right]:
            right += 1
        found.append(right + 1)
        place += right + 1
    return found


def written(vocabulary, new: str, old: str = OLD, changes: Sequence[tuple[str, str]] = ()) -> list[int]:
    draft = WindowDraft(vocabulary)
    pairs = [(vocabulary.tokenize(one), vocabulary.tokenize(other)) for one, other in changes]
    draft.begin(len(PROMPT), vocabulary.tokenize(old), pairs)
    return passes(draft, vocabulary.tokenize(new))


def test_without_a_window_nothing_is_proposed(vocabulary) -> None:
    draft = WindowDraft(vocabulary)
    assert draft.propose(PROMPT, None, SAMPLER, lambda _: True).tokens == ()
    draft.begin(3, vocabulary.tokenize(OLD))
    assert draft.propose(PROMPT, None, SAMPLER, lambda _: True).tokens
    draft.begin(3, ())
    assert draft.propose(PROMPT, None, SAMPLER, lambda _: True).tokens == ()


def test_a_text_that_stays_as_it_is_takes_as_few_passes_as_there_can_be(vocabulary) -> None:
    count = len(vocabulary.tokenize(OLD))
    assert len(written(vocabulary, OLD)) == -(-count // (LONGEST_PROPOSAL + 1))


@pytest.mark.parametrize(
    ("old", "new", "most"),
    [
        ("item.price\n\n", "item.cost\n\n", 3),
        ("def add(self, item)", "def insert(self, item)", 3),
        ("        self.total += item.price\n", "", 3),
        ("self.items.append(item)\n", "self.items.append(item)\n        self.changed = True\n", 8),
        ("    def count(self):\n", "    @property\n    def count(self):\n", 6),
        ("return len(self.items)", "return len(self.items) + 1", 4),
        ("self.total -= item.price", "self.total -= item.price * 2", 4),
        ("class Cart:", "class Basket(Base):", 8),
    ],
    ids=["replaced", "renamed once", "line deleted", "line inserted", "line before", "at the end", "after", "begin"],
)
def test_it_goes_on_after_a_difference(vocabulary, old: str, new: str, most: int) -> None:
    """No more passes than tokens that nobody could foresee, and one or two in which it finds its place again."""
    at_once = len(written(vocabulary, OLD))
    assert OLD.count(old) == 1 or OLD.replace(old, new, 1) != OLD
    assert len(written(vocabulary, OLD.replace(old, new, 1))) <= at_once + most


def test_what_was_changed_once_is_expected_again(vocabulary) -> None:
    new = OLD.replace("item", "product").replace("self.products", "self.items")
    all_but_first = written(vocabulary, new)
    told = written(vocabulary, new, changes=[("def add(self, item):\n", "def add(self, product):\n")])
    assert len(all_but_first) <= len(written(vocabulary, OLD)) + 4
    assert len(told) <= len(written(vocabulary, OLD)) + 1
    assert len(told) <= len(all_but_first)


def test_an_inserted_argument_is_expected_again(vocabulary) -> None:
    old = "".join(f"    total = total + price(item{n})\n    show(total)\n" for n in "abcdef")
    new = old.replace("price(", "price(shop, ")
    assert len(written(vocabulary, new, old)) < len(vocabulary.tokenize(new)) / 5


def test_a_change_that_does_not_come_again_is_given_up(vocabulary) -> None:
    old = "".join(f"value = read(value, {n})\n" for n in range(10))
    new = old.replace("read", "load", 1)
    assert len(written(vocabulary, new, old)) <= len(written(vocabulary, old, old)) + 6


CALLS = """\
def close(self):
    drop(self.first_lookup)
    drop(self.another_lookup)
    self.count = 0
    drop(self.last_of_all)
    drop(self.very_last)
    return None
"""


def test_a_line_like_a_changed_one_is_expected_to_change(vocabulary) -> None:
    new = (
        CALLS.replace("lookup)", "lookup).wait()")
        .replace("all)", "all).wait()")
        .replace("very_last)", "very_last).wait()")
    )
    told = [("    drop(self.first_lookup)\n", "    drop(self.first_lookup).wait()\n")]
    alone, once = written(vocabulary, new, CALLS), written(vocabulary, new, CALLS, told)
    assert len(once) <= len(written(vocabulary, CALLS, CALLS)) + 1
    assert len(once) < len(alone)


def test_a_line_like_a_changed_one_that_stays_costs_little(vocabulary) -> None:
    told = [("    drop(self.first_lookup)\n", "    drop(self.first_lookup).wait()\n")]
    new = CALLS.replace("first_lookup)", "first_lookup).wait()")
    assert len(written(vocabulary, new, CALLS, told)) <= len(written(vocabulary, CALLS, CALLS)) + 3


@pytest.mark.parametrize(("old", "new"), [("i", "index"), ("k", "place_of_key")])
def test_a_name_of_one_letter_is_renamed_everywhere(vocabulary, old: str, new: str) -> None:
    text = "for N in range(len(items)):\n    show(items[N])\n    if N > 3 and N < last:\n        total += weights[N]\n"
    before, after = text.replace("N", old), text.replace("N", new)
    told = [(before.splitlines(True)[0], after.splitlines(True)[0])]
    assert len(written(vocabulary, after, before, told)) <= len(written(vocabulary, before, before)) + 1


def test_a_name_that_stays_at_one_place_of_a_change_is_renamed_at_others(vocabulary) -> None:
    text = "const NAME = operation.client;\nconst options = NAME.options;\nsend(NAME, options);\n"
    before, after = text.replace("NAME", "client"), text.replace("NAME", "clients")
    told = [(before.splitlines(True)[0], after.splitlines(True)[0])]
    assert len(written(vocabulary, after, before, told)) <= len(written(vocabulary, before, before)) + 2


def test_a_value_is_not_replaced_wherever_it_stands(vocabulary) -> None:
    text = "if cache is None:\n    return None\nshow(first, None, last)\n"
    told = [("limit = None\n", "limit = read_limit()\n")]
    assert len(written(vocabulary, text, text, told)) == len(written(vocabulary, text, text))


def test_a_copy_of_earlier_text_is_no_move_back(vocabulary) -> None:
    """What stands above is written again at a difference: the text goes on where it differed."""
    old = "import scipy.fft.backend as first\nlib: like numpy.fft, or\n   None, that is numpy.fft.\nend of this text\n"
    new = old.replace("numpy.fft, or", "scipy.fft, or")
    assert len(written(vocabulary, new, old)) <= len(written(vocabulary, old, old)) + 4


def test_part_of_a_word_is_not_taken_for_it(vocabulary) -> None:
    old = "cat = 1\nconcat = cat\ncategory = cat\n"
    new = "dog = 1\nconcat = dog\ncategory = dog\n"
    assert len(written(vocabulary, new, old)) <= 5


def test_tokens_cut_elsewhere_are_no_difference(vocabulary) -> None:
    """Where the text has the characters of the window in other tokens, it stands behind those characters."""
    draft = WindowDraft(vocabulary)
    draft.begin(len(PROMPT), vocabulary.tokenize(OLD))
    end = OLD.index("(self, item)")
    text = [*vocabulary.tokenize(OLD[: end - 3]), *(token for each in "add" for token in vocabulary.tokenize(each))]
    proposal = draft.propose([*PROMPT, *text], None, SAMPLER, lambda _: True).tokens
    assert OLD[end:].encode().startswith(b"".join(map(vocabulary.token_bytes, proposal))[:20])
    assert proposal


def test_nothing_is_proposed_before_the_text_or_after_the_window(vocabulary) -> None:
    draft = WindowDraft(vocabulary)
    window = vocabulary.tokenize(OLD)
    draft.begin(len(PROMPT), window)
    assert draft.propose(PROMPT[:2], None, SAMPLER, lambda _: True).tokens == ()
    assert draft.propose([*PROMPT, *window], None, SAMPLER, lambda _: True).tokens == ()


@pytest.mark.parametrize("seed", range(20))
def test_whatever_comes_it_proposes_tokens_of_its_own(vocabulary, seed: int) -> None:
    """Texts and windows at random, of tokens of every kind: it neither fails nor remembers another text."""
    rng = np.random.default_rng(seed)
    known = vocabulary.tokenize(OLD)
    draft = WindowDraft(vocabulary)

    def some(count: int) -> list[int]:
        return [known[i] if rng.random() < 0.8 else int(rng.integers(vocabulary.size)) for i in
                rng.integers(0, len(known), count)]  # fmt: skip

    for _ in range(20):
        start, window = int(rng.integers(0, 4)), some(int(rng.integers(0, 60)))
        changes = [(some(int(rng.integers(0, 6))), some(int(rng.integers(0, 6)))) for _ in range(rng.integers(0, 3))]
        draft.begin(start, window, changes)
        text = some(start)
        for _ in range(20):
            text += window[: rng.integers(0, 30)] if rng.random() < 0.3 else some(int(rng.integers(0, 5)))
            again = WindowDraft(vocabulary)
            again.begin(start, window, changes)
            proposal = draft.propose(text, None, SAMPLER, lambda _: True)
            assert proposal == again.propose(text, None, SAMPLER, lambda _: True)
            assert set(proposal.every_source) <= {"window"}
            if rng.random() < 0.2:
                text = text[: max(start, len(text) - 4)]
