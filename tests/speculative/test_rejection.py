"""Rejection sampling leaves the target's law as it is: exactly, by going through every course that chance may take."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import codespec.speculative.sampling as sampling_module
import codespec.speculative.verify as verify_module
from codespec.draft.acceptance import Acceptance
from codespec.draft.combined import CombinedDraft
from codespec.draft.costs import RunningCosts
from codespec.draft.draft_length import FixedLength
from codespec.draft.model import ModelDraft
from codespec.draft.ngram import NgramDraft
from codespec.protocols import (
    CodespecError,
    Distribution,
    Draft,
    GrammarState,
    Limits,
    Pick,
    Proposal,
    Sampler,
    Sampling,
)
from codespec.speculative.generate import Generator
from codespec.speculative.noise import Purpose
from codespec.speculative.sampling import LogitSampler
from codespec.speculative.verify import acceptance, verify_rejection
from tests.fakes import FakeDraft, SetGrammar, Table, TableTarget
from tests.present import present
from tests.speculative.reference import Law, law_of_texts

END = frozenset({0})
EXACT = 1e-12


class Tree:
    """Stands in for ``Chance`` and lets every event come out in every way, one course after the other."""

    def __init__(self) -> None:
        self._path: list[tuple[list[tuple[object, float]], int]] = []
        self._depth, self._weight = 0, 1.0

    def accepts(self, index: int, probability: float) -> bool:
        assert 0 <= probability <= 1
        return self._event([(True, probability), (False, 1 - probability)])

    def draw(self, index: int, purpose: Purpose, distribution: Distribution) -> int:
        ids, probs = distribution
        assert math.isclose(probs.sum(), 1, abs_tol=EXACT)
        return self._event(list(zip(ids.tolist(), probs.tolist(), strict=True)))

    def _event(self, outcomes: list[tuple[object, float]]):
        if self._depth == len(self._path):
            self._path.append(([pair for pair in outcomes if pair[1] > 0], 0))
        possible, chosen = self._path[self._depth]
        self._depth += 1
        self._weight *= possible[chosen][1]
        return possible[chosen][0]

    def law(self, play: Callable[[], Law]) -> Law:
        """The law of what ``play`` comes to; a course may end in a law of its own."""
        law: Law = {}
        while True:
            self._depth, self._weight = 0, 1.0
            for outcome, share in play().items():
                law[outcome] = law.get(outcome, 0.0) + self._weight * share
            while self._path and self._path[-1][1] == len(self._path[-1][0]) - 1:
                self._path.pop()
            if not self._path:
                return law
            possible, chosen = self._path[-1]
            self._path[-1] = (possible, chosen + 1)


class LawDraft:
    """Draws from any law at all, blind to target and grammar; with ``certain`` every other token is not drawn."""

    def __init__(self, vocabulary: int, seed: int, certain: bool = False, argmax: bool = False) -> None:
        self.vocabulary, self.seed, self.certain, self.argmax = vocabulary, seed, certain, argmax

    def distribution(self, tokens: Sequence[int]) -> Distribution:
        rng = np.random.default_rng((self.seed, *tokens))
        # As many ids as not, and in any order: supports overlap, or not.
        ids = rng.permutation(self.vocabulary)[: rng.integers(2, self.vocabulary + 1)]
        return ids, rng.dirichlet(np.ones(len(ids)))

    def propose(
        self, tokens: Sequence[int], grammar: GrammarState | None, sampler: Sampler, more: Callable[[float], bool]
    ) -> Proposal:
        assert isinstance(sampler, LogitSampler)
        text = list(tokens)
        probabilities: list[Distribution | None] = []
        while more(0.5):
            ids, probs = self.distribution(text)
            if self.certain and len(text) % 2:
                text.append(int(ids[0]))
                probabilities.append(None)
                continue
            text.append(int(ids[probs.argmax()]) if self.argmax else sampler.draw((ids, probs), text, Purpose.DRAFT))
            probabilities.append((ids, probs))
        return Proposal(tuple(text[len(tokens) :]), tuple(probabilities))


@dataclass
class Case:
    table: Table
    prompt: list[int]
    sampling: Sampling
    max_tokens: int
    grammar: SetGrammar | None
    draft_length: int
    n_ctx: int
    draft: Callable[[], Draft | None]

    def expected(self) -> Law:
        return law_of_texts(
            self.table, self.prompt, self.sampling, self.max_tokens, self.grammar_copy(), END, self.n_ctx
        )

    def grammar_copy(self) -> SetGrammar | None:
        return None if self.grammar is None else self.grammar.copy()

    def rest(self, text: tuple[int, ...], grammar: SetGrammar | None) -> Law:
        return law_of_texts(self.table, self.prompt, self.sampling, self.max_tokens, grammar, END, self.n_ctx, text)


def random_sampling(rng: np.random.Generator) -> Sampling:
    return Sampling(
        temperature=float(rng.choice([0.6, 1.0, 1.7])),
        top_k=int(rng.choice([0, 0, 2, 3, 4])),
        top_p=float(rng.choice([1.0, 1.0, 0.6 + 0.4 * rng.random()])),
        min_p=float(rng.choice([0.0, 0.0, rng.random() * 0.2])),
        repeat_penalty=float(rng.choice([1.0, 1.5])),
        presence_penalty=float(rng.choice([0.0, 0.5])),
        logit_bias={int(rng.integers(3)): float(rng.choice([-np.inf, 1.0]))} if rng.random() < 0.4 else {},
        verify="rejection",
    )


def small_grammar(rng: np.random.Generator, size: int) -> SetGrammar:
    """Two to four states; the last has no continuation and is complete, or is a dead end."""
    states = int(rng.integers(2, 5))
    transitions = [
        {t: int(rng.integers(states)) for t in range(1, size) if rng.random() < 0.85} for _ in range(states - 1)
    ]
    return SetGrammar([*transitions, {}], frozenset(np.flatnonzero(rng.random(states) < 0.5).tolist()), END)


def random_draft(rng: np.random.Generator, table: Table, n_ctx: int) -> Callable[[], Draft | None]:
    size, seed = table.vocabulary, int(rng.integers(1 << 20))
    noisy = Table(size, seed, 2, base=table, noise=float(rng.choice([0.0, 0.5, 2.0])))

    def model() -> ModelDraft:
        return ModelDraft(TableTarget(noisy, n_ctx), END)

    def guess(tokens: Sequence[int]) -> list[int]:
        guesser = np.random.default_rng((seed, *tokens))
        return guesser.integers(0, size, guesser.integers(0, 5)).tolist()

    drafts: list[Callable[[], Draft | None]] = [
        model,
        model,
        model,
        lambda: FakeDraft(guess, source="ngram"),
        lambda: FakeDraft(guess, source="ngram", blind=True, polite=False),
        lambda: LawDraft(size, seed),
        lambda: LawDraft(size, seed),
        lambda: LawDraft(size, seed, certain=True),
        # Its decisions must not depend on the time here: every outcome is played again and again.
        lambda: CombinedDraft(RunningCosts(), Acceptance(), [NgramDraft()], model(), clock=lambda: 0.0),
        lambda: CombinedDraft(RunningCosts(), Acceptance(), other_vocabulary=FakeDraft(guess), clock=lambda: 0.0),
        lambda: None,
    ]
    return drafts[int(rng.integers(len(drafts)))]


def random_case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 6))
    table = Table(size, int(rng.integers(1 << 20)), order=2, scale=float(rng.choice([0.5, 1.0])))
    prompt = rng.integers(0, size, 2).tolist()
    return Case(
        table,
        prompt,
        random_sampling(rng),
        max_tokens=int(rng.choice([1, 3, 3, 4, 4] if size < 5 else [2, 3])),
        grammar=small_grammar(rng, size) if rng.random() < 0.4 else None,
        draft_length=int(rng.choice([0, 1, 2, 2, 3, 3])),
        n_ctx=int(rng.choice([9, 9, 9, 9, 4, 5])),
        draft=random_draft(rng, table, int(rng.choice([9, 9, 9, 3, 4]))),
    )


def error(law: Law, expected: Law) -> float:
    return max(abs(law.get(outcome, 0.0) - expected.get(outcome, 0.0)) for outcome in law | expected)


@pytest.fixture
def tree(monkeypatch: pytest.MonkeyPatch) -> Tree:
    tree = Tree()
    monkeypatch.setattr(sampling_module, "Chance", lambda seed, sample: tree)
    return tree


def law_of_generator(tree: Tree, case: Case) -> tuple[Law, int, int]:
    """The law of the whole loop, and how many tokens were drafted and accepted in all its courses."""
    counts = np.zeros(2, int)

    def play() -> Law:
        generator = Generator(TableTarget(case.table, case.n_ctx), case.draft(), END, case.draft_length)
        limits = Limits(case.max_tokens)
        rounds = list(generator.generate(case.prompt, case.sampling, limits, case.grammar_copy()))
        counts[:] += generator.statistics.drafted, generator.statistics.accepted
        return {(tuple(t for r in rounds for t in r.tokens), present(rounds[-1].finish_reason)): 1.0}

    return tree.law(play), int(counts[0]), int(counts[1])


def law_of_verdict(tree: Tree, case: Case) -> Law:
    """The law of one proposal and its verdict, with the target alone from there."""

    def play() -> Law:
        sampler = LogitSampler(case.sampling, len(case.prompt))
        draft, grammar, tokens = case.draft(), case.grammar_copy(), list(case.prompt)
        length = FixedLength(case.draft_length).more(case.draft_length)
        try:
            proposal = draft.propose(tokens, case.grammar_copy(), sampler, length) if draft else Proposal(())
        except CodespecError:
            proposal = Proposal(())
        proposed = proposal.tokens
        rows = np.stack([case.table.row([*tokens, *proposed[:i]]) for i in range(len(proposed) + 1)])
        verdict = verify_rejection(rows, proposal, tokens, grammar, sampler, END, case.max_tokens)
        if verdict.finish_reason is not None:
            return {(verdict.tokens, verdict.finish_reason): 1.0}
        return case.rest(verdict.tokens, grammar)

    return tree.law(play)


@pytest.mark.parametrize("chunk", range(4))
def test_the_loop_has_the_law_of_the_target(tree: Tree, chunk: int) -> None:
    reasons, drafted, accepted = set(), 0, 0
    for seed in range(chunk, 200, 4):
        case = random_case(seed)
        expected = case.expected()
        law, *counts = law_of_generator(tree, case)
        assert error(law, expected) < EXACT, seed
        assert math.isclose(sum(law.values()), 1, abs_tol=EXACT)
        reasons |= {reason for _, reason in law}
        drafted, accepted = drafted + counts[0], accepted + counts[1]
    assert reasons == {"stop", "length", "grammar"}
    assert drafted / 10 < accepted < drafted  # every course of a text counts the same, however unlikely


def verdict_cases(seeds: range) -> Iterator[tuple[int, Case]]:
    for seed in seeds:
        case = replace(random_case(seed), n_ctx=9)
        if case.grammar is None or not case.grammar.finished:
            yield seed, case


@pytest.mark.parametrize("chunk", range(4))
def test_a_verdict_has_the_law_of_the_target(tree: Tree, chunk: int) -> None:
    """Longer proposals than the loop has room for in texts so short, and behind the prompt too."""
    for seed, case in verdict_cases(range(1_000 + chunk, 1_300, 4)):
        assert error(law_of_verdict(tree, case), case.expected()) < EXACT, seed


# Faults that the tests above must notice


class ArgmaxDraft(LawDraft):
    """llama.cpp's fault: proposes the most probable token and names the whole distribution."""

    def __init__(self) -> None:
        super().__init__(4, seed=1, argmax=True)


def residual_by_position(target_probs: Distribution, draft_probs: Distribution, token: int):
    """llama.cpp's other fault: subtracts what stands at the same place of the list, not the same token."""
    accept, _ = acceptance(target_probs, draft_probs, token)
    ids, left = target_probs[0], target_probs[1].copy()
    shared = min(len(ids), len(draft_probs[0]))
    left[:shared] = np.maximum(left[:shared] - draft_probs[1][:shared], 0)
    return accept, (ids, left / left.sum()) if left.sum() > 0 else target_probs


def no_residual(target_probs: Distribution, draft_probs: Distribution, token: int):
    return acceptance(target_probs, draft_probs, token)[0], target_probs


def hotter_draft(self: LogitSampler, logits, tokens, grammar, among=None) -> Pick | None:
    """Draws at another temperature than that of the distribution it names."""
    named, hotter = self.distribution(logits, tokens, grammar), self.distribution(logits / 2, tokens, grammar)
    return named and hotter and Pick(self.draw(hotter, tokens, Purpose.DRAFT), 1.0, named)


def nothing_if_not_all(self: Proposal, count: int) -> Proposal:
    """Drops a proposal that does not fit into the context: drops a token for what was drawn behind it."""
    return Proposal(())


def nothing_if_it_fails(self: Any, tokens, grammar, sampler, more) -> Proposal:
    """Withholds what was drawn before the draft's context was full."""
    proposal = propose(self, tokens, grammar, sampler, more)
    full = len(tokens) + len(proposal.tokens) > self._sequence._target.n_ctx
    return Proposal(()) if full and not END & set(proposal.tokens) else proposal


propose = ModelDraft.propose
PLAIN = Sampling(temperature=1.0, top_k=0, top_p=1, min_p=0, verify="rejection")
TABLE = Table(4, seed=5, scale=0.5)
NOISY = Table(4, seed=8, base=TABLE, noise=0.7)


def plain_case(draft: Callable[[], Draft] | None = None, n_ctx: int = 9) -> Case:
    return Case(TABLE, [1, 2], PLAIN, 4, None, 2, n_ctx, draft or model_draft)


def model_draft(n_ctx: int = 9) -> ModelDraft:
    return ModelDraft(TableTarget(NOISY, n_ctx), END)


def law_draft() -> LawDraft:
    return LawDraft(4, seed=1)


MUTANTS: dict[str, tuple[Case, list[tuple[Any, str, Any]]]] = {
    "argmax proposals": (plain_case(ArgmaxDraft), []),
    "residual by position": (plain_case(law_draft), [(verify_module, "acceptance", residual_by_position)]),
    "no residual": (plain_case(), [(verify_module, "acceptance", no_residual)]),
    "another temperature": (plain_case(), [(LogitSampler, "pick", hotter_draft)]),
    "full target": (plain_case(n_ctx=4), [(Proposal, "first", nothing_if_not_all)]),
    "full draft": (plain_case(lambda: model_draft(3)), [(ModelDraft, "propose", nothing_if_it_fails)]),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_fault_is_noticed(name: str, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    case, faults = MUTANTS[name]
    if faults:
        assert error(law_of_generator(tree, case)[0], case.expected()) < EXACT
    for place, attribute, fault in faults:
        monkeypatch.setattr(place, attribute, fault)
    assert error(law_of_generator(tree, case)[0], case.expected()) > 1e-4


# One step


def of(**probabilities: float) -> Distribution:
    return np.array([int(t[1:]) for t in probabilities]), np.array(list(probabilities.values()))


@pytest.mark.parametrize(
    ("target", "draft", "token", "accept", "residual"),
    [
        (of(t1=0.5, t2=0.5), of(t2=0.8, t1=0.2), 2, 0.625, {1: 1.0}),
        (of(t1=0.5, t2=0.5), of(t2=0.8, t1=0.2), 1, 1.0, {1: 1.0}),
        (of(t1=0.5, t2=0.5), of(t7=1.0), 7, 0.0, {1: 0.5, 2: 0.5}),  # disjoint
        (of(t9=0.5, t2=0.3, t4=0.2), of(t9=1.0), 9, 0.5, {2: 0.6, 4: 0.4}),  # certain
        (of(t1=1.0), of(t1=1.0), 1, 1.0, {1: 1.0}),  # nothing is left: the target's own law
        (of(t5=0.75, t3=0.25), of(t3=0.5, t4=0.5), 3, 0.5, {5: 1.0}),
    ],
)
def test_acceptance_and_residual(target, draft, token: int, accept: float, residual: dict[int, float]) -> None:
    probability, (ids, probs) = acceptance(target, draft, token)
    assert probability == pytest.approx(accept)
    assert {t: p for t, p in zip(ids.tolist(), probs.tolist(), strict=True) if p} == pytest.approx(residual)


def test_a_draft_must_name_what_it_drew_from() -> None:
    with pytest.raises(CodespecError, match="token 3"):
        acceptance(of(t3=1.0), of(t1=1.0), 3)


def test_a_banned_token_is_never_accepted() -> None:
    sampling = replace(PLAIN, logit_bias={1: -math.inf})
    rows = np.zeros((2, 4), np.float32)
    for sample in range(50):
        tokens = [3]
        sampler = LogitSampler(replace(sampling, sample=sample), 1)
        verdict = verify_rejection(rows, Proposal((1,)), tokens, None, sampler, END, 5)
        assert verdict.accepted == 0
        assert 1 not in verdict.tokens
