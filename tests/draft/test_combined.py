"""How far drafts are combined: by what is expected to save time, and never much worse than no draft."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from codespec.draft.acceptance import Acceptance
from codespec.draft.combined import CombinedDraft
from codespec.draft.costs import LONGEST, CostCurve, RunningCosts
from codespec.draft.draft_budget import ConfidenceSpread, ExpectedSaving, SavingTrust, SpendingGuard
from codespec.draft.model import ModelDraft
from codespec.draft.ngram import NgramDraft
from codespec.protocols import Limits, Proposal, Sampling
from codespec.speculative.generate import Generator
from codespec.speculative.sampling import LogitSampler
from tests.fakes import SetGrammar, Table, TableTarget

SAMPLER = LogitSampler(Sampling(), 1)
END = frozenset({0})


def curve(*ms: float) -> CostCurve:
    """T(1), T(2) … as given, the last difference going on."""
    return CostCurve((0,), tuple(range(1, len(ms) + 1)), (ms,))


FLAT = curve(20, *(20 + 0.01 * n for n in range(1, LONGEST)))
STEEP = curve(*(20.0 * n for n in range(1, LONGEST + 1)))
JUMP = curve(*(20 + 0.1 * n for n in range(8)), *(100 + 0.1 * n for n in range(LONGEST - 8)))


def propose(draft: CombinedDraft, tokens: Sequence[int], limit: int = LONGEST) -> Proposal:
    left = [True] * limit
    return draft.propose(tokens, None, SAMPLER, lambda _: bool(left) and left.pop())


def walked(costs: CostCurve, text: Sequence[int], start: int = 12) -> list[int]:
    """Lengths of the proposals along a text that is decoded as proposed and accepted."""
    draft = CombinedDraft(RunningCosts(costs), Acceptance(), [NgramDraft()], clock=lambda: 0.0)
    lengths, at = [], start
    while at < len(text) - LONGEST:
        proposal = propose(draft, text[:at])
        lengths.append(len(proposal.tokens))
        at += 1
        for token in proposal.tokens:
            if token != text[at - 1]:
                break
            at += 1
    return lengths


def test_long_proposals_where_they_cost_nothing_and_are_right() -> None:
    assert walked(FLAT, [1, 2, 3, 4] * 100)[-1] == LONGEST - 1


def test_none_where_every_row_costs_a_pass() -> None:
    assert walked(STEEP, [1, 2, 3, 4] * 40)[-1] == 0


def test_a_proposal_ends_before_a_jump() -> None:
    assert walked(JUMP, [1, 2, 3, 4] * 100)[-1] == 7


def test_a_jump_is_looked_past_where_more_lies_behind_it() -> None:
    # Two rows cost as much as two passes, thirty-three little more.
    costs = curve(20, *(40 + 0.1 * n for n in range(LONGEST - 1)))
    assert walked(costs, [1, 2, 3, 4] * 100)[-1] == LONGEST - 1


def test_text_that_never_repeats_as_it_did_is_left_alone() -> None:
    rng = np.random.default_rng(1)
    text = rng.integers(0, 6, 3_000).tolist()
    assert np.mean(walked(curve(*(20 + 8.0 * n for n in range(LONGEST))), text)[-500:]) < 0.1


def test_a_proposal_that_is_dear_when_rejected_must_be_surer() -> None:
    text = [1, 2, 3, 4, 5, 6, 1, 2]
    found = []
    for again in (0.0, 400.0):
        costs = RunningCosts(FLAT)
        costs.replays = True
        costs.observe(1, 0, 20.0 + again, rejected=True)
        draft = CombinedDraft(costs, Acceptance(), [NgramDraft()], clock=lambda: 0.0)
        found.append(len(propose(draft, text).tokens))
    assert found[0] > 0
    assert found[1] == 0


def test_learning_stops_at_the_first_wrong_guess() -> None:
    acceptance = Acceptance()
    draft = CombinedDraft(RunningCosts(FLAT), acceptance, [NgramDraft()], clock=lambda: 0.0)
    text = [1, 2, 3, 4, 5, 6, 1, 2]
    assert propose(draft, text).tokens[:4] == (3, 4, 5, 6)
    draft.learn([*text, 3, 9, 5, 6])
    seen = {(depth, accepted, n) for _, _, depth, accepted, n in acceptance.as_json() if depth >= 0}
    assert seen == {(0, 1.0, 1.0), (1, 0.0, 1.0)}


def test_another_text_teaches_nothing() -> None:
    acceptance = Acceptance()
    draft = CombinedDraft(RunningCosts(FLAT), acceptance, [NgramDraft()], clock=lambda: 0.0)
    propose(draft, [1, 2, 3, 4, 5, 6, 1, 2])
    draft.learn([7, 7, 7, 7, 7, 7, 7, 7, 3, 4])
    assert acceptance.as_json() == []


@pytest.mark.parametrize(("price", "asked"), [(0.1, True), (60.0, False)])
def test_a_model_is_asked_if_its_time_is_worth_it(price: float, asked: bool) -> None:
    table = Table(50, seed=1, scale=6)
    model = TableTarget(table)
    draft = CombinedDraft(
        RunningCosts(curve(*(20 + 2.0 * n for n in range(LONGEST)))),
        Acceptance(),
        model=ModelDraft(model, END),
        model_costs=RunningCosts(curve(*(price + 0.01 * n for n in range(LONGEST)))),
        end_tokens=END,
        clock=lambda: 0.0,
    )
    generator = Generator(TableTarget(table), draft, END, draft_length=LONGEST - 1)
    list(generator.generate([1, 2, 3], Sampling(), Limits(80)))
    assert bool(model.decodes) == asked
    assert (generator.statistics.accepted > generator.statistics.tokens / 2) == asked


def test_a_guard_bounds_what_drafting_may_cost() -> None:
    rng = np.random.default_rng(3)
    for worst in (0.05, 0.3, 1.0, 5.0):
        guard, lost, rounds = SpendingGuard(), 0.0, 5_000
        for _ in range(rounds):
            if not guard.asleep():
                cost = float(rng.uniform(0, worst))
                lost += min(2.0, cost)
                guard.learn(-cost)
        assert lost <= 1.5 + 2.0 + 0.011 * rounds


def test_a_sleeping_guard_looks_more_rarely_after_each_failure() -> None:
    guard = SpendingGuard()
    for _ in range(100):  # then it is far from waking up by itself
        guard.learn(-2.0)
    tried = []
    for turn in range(3_000):
        assert guard.asleep()
        if guard.looks():
            tried.append(turn)
            guard.wake()
            guard.learn(-2.0)
    gaps = np.diff(tried)
    assert tried[0] == 7
    assert 5 < len(tried) < 12
    assert sorted(gaps) == list(gaps)


def test_a_sleeping_guard_goes_on_where_looking_pays() -> None:
    guard = SpendingGuard()
    for _ in range(50):
        guard.learn(-2.0)
    for turn in range(20):
        assert guard.asleep()
        if guard.looks():
            guard.wake()
            guard.learn(0.5)
            assert turn >= 7
        else:
            assert turn < 7
    assert guard.looks()  # nothing was there this time
    assert [guard.looks() for _ in range(8)] == [False] * 7 + [True]


def test_a_guard_wakes_for_what_it_missed() -> None:
    guard = SpendingGuard()
    while not guard.asleep():
        guard.learn(-0.5)
    guard.missed(3.0)
    assert not guard.asleep()


def test_a_guard_tells_what_ends_its_sleep() -> None:
    guard = SpendingGuard()
    while not guard.asleep():
        guard.learn(-0.5)
    assert not guard.wakes(0.0)
    assert not guard.wakes(-5.0)
    assert guard.wakes(3.0)
    guard.missed(3.0)
    assert not guard.asleep()


def asleep(text: Sequence[int]) -> CombinedDraft:
    """A draft that costs have put to sleep, at the end of a text."""
    draft = CombinedDraft(RunningCosts(FLAT), Acceptance(), [NgramDraft()], clock=lambda: 0.0)
    while not draft.guard.asleep():
        draft.guard.learn(-0.5)
    assert propose(draft, text).tokens == ()
    return draft


def test_asleep_it_follows_what_it_would_have_proposed_until_that_suffices() -> None:
    rng = np.random.default_rng(5)
    known = rng.permutation(200)[:60].tolist()
    draft = asleep([*known, 999, *known[:3]])
    for count in range(4, 9):
        text = [*known, 999, *known[:count]]
        if propose(draft, text).tokens:
            break
    assert 4 < len(text) - len(known) - 1 < 8  # two tokens or three have come that would have been right
    awake = propose(draft, text).tokens
    assert len(awake) > 8
    assert awake == tuple(known[count : count + len(awake)])


def test_asleep_it_learns_from_all_that_came_of_a_proposal() -> None:
    known = list(range(100, 160))
    draft = asleep([*known, 999, *known[:3]])
    draft.guard.learn(-2.0)  # deep asleep
    assert propose(draft, [*known, 999, *known[:4]]).tokens == ()
    assert propose(draft, [*known, 999, *known[:5]]).tokens == ()
    assert draft.acceptance.as_json() == []  # not decided
    assert propose(draft, [*known, 999, *known[:5], 7]).tokens == ()
    overall = [each for each in draft.acceptance.as_json() if each[2] == -1]
    assert sum(round(each[4]) for each in overall) == 3
    assert round(sum(each[3] for each in overall)) == 2


def test_asleep_a_new_text_ends_what_was_followed() -> None:
    known = list(range(100, 160))
    draft = asleep([*known, 999, *known[:3]])
    assert propose(draft, list(range(300, 340))).tokens == ()
    assert draft.acceptance.as_json() == []


def test_a_guard_never_sleeps_while_drafting_pays() -> None:
    guard = SpendingGuard()
    for saved in [0.4, -0.1, -0.2] * 300:
        assert not guard.asleep()
        guard.learn(saved)


def test_a_few_long_proposals_that_fail_do_not_end_the_copy_of_a_window() -> None:
    for copying in (False, True):
        guard = SpendingGuard()
        for saved in [4.0] * 8 + [-2.0] * 3:
            guard.learn(saved, copying)
        assert guard.asleep() != copying


def test_trust_follows_what_was_saved() -> None:
    costs = [float(n) for n in range(LONGEST + 1)]
    trust = SavingTrust()
    for _ in range(200):
        asked = ExpectedSaving(0, worth=1.0, rate=0.1, costs=costs)
        asked.length = 2
        trust.learn(asked, accepted=0)
    assert trust.factor == 0.0
    for _ in range(400):
        trust.forget()
    assert trust.factor > 0.1


def test_the_spread_of_a_models_chances_sums_to_one() -> None:
    acceptance, spread = Acceptance(), ConfidenceSpread()
    for place in (8, 8, 0, 1, 8):
        spread.count(acceptance.chance(("model", place), 0))
    assert sum(share for share, _ in spread.groups) == pytest.approx(1)
    assert spread.groups[0][1] > spread.groups[1][1]
    assert 0 < spread.mean < 1


class CountedGrammar(SetGrammar):
    """Counts how often it is asked to go on, with any number of tokens."""

    accepts = 0

    def accept(self, tokens: Sequence[int]) -> int:
        self.accepts += 1
        return super().accept(tokens)


def test_a_run_of_tokens_is_one_question_to_the_grammar() -> None:
    grammar = CountedGrammar([dict.fromkeys(range(9), 0)], frozenset(), END)
    draft = CombinedDraft(RunningCosts(FLAT), Acceptance(), [NgramDraft()], clock=lambda: 0.0)
    proposal = draft.propose([1, 2, 3, 4, 5, 6, 1, 2], grammar, SAMPLER, lambda _: True)
    assert proposal.tokens[:4] == (3, 4, 5, 6)
    assert grammar.accepts == 1
    assert len(grammar.history) == 1 + len(proposal.tokens)


def test_where_the_grammar_refuses_an_ngram_the_model_goes_on() -> None:
    # 3 4 and then anything but 5, which followed the last time.
    rest = dict.fromkeys(range(1, 50), 3)
    after = {token: 3 for token in rest if token != 5}
    transitions = [{3: 1}, {4: 2}, after, rest]
    text = [1, 2, 3, 4, 5, 6, 1, 2]
    for own in (None, ModelDraft(TableTarget(Table(50, seed=1, scale=6)), END)):
        grammar = SetGrammar(transitions, frozenset(), END)
        draft = CombinedDraft(
            RunningCosts(FLAT),
            Acceptance({("ngram", 0, -1): (900.0, 900.0), ("ngram", 1, -1): (900.0, 900.0)}),
            [NgramDraft()],
            model=own,
            model_costs=RunningCosts(curve(*(0.1 + 0.01 * n for n in range(LONGEST)))),
            clock=lambda: 0.0,
        )
        proposal = draft.propose(text, grammar, SAMPLER, lambda _: True)
        assert proposal.tokens[:2] == (3, 4)
        assert proposal.tokens[2:3] != (5,)
        assert (len(proposal.tokens) > 2) == (own is not None)
        assert len(grammar.history) == 1 + len(proposal.tokens)
        assert len(proposal.sources) == len(proposal.tokens)


def test_a_grammar_that_contradicts_itself_ends_a_proposal() -> None:
    grammar = SetGrammar([dict.fromkeys(range(1, 50), 0)], frozenset(), END)
    grammar.accept = lambda tokens: 0  # type: ignore[method-assign]
    table = Table(50, seed=1, scale=6)
    draft = CombinedDraft(
        RunningCosts(FLAT),
        Acceptance(),
        model=ModelDraft(TableTarget(table), END),
        model_costs=RunningCosts(curve(*(0.1 + 0.01 * n for n in range(LONGEST)))),
        clock=lambda: 0.0,
    )
    assert draft.propose([1, 2, 3], grammar, SAMPLER, lambda _: True).tokens == ()
