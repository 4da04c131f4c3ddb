"""The loop gives exactly what the target alone would have given, with any draft."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import pytest

import codespec.speculative.generate as generate_module
from codespec.draft.acceptance import Acceptance
from codespec.draft.combined import CombinedDraft
from codespec.draft.costs import RunningCosts
from codespec.draft.model import ModelDraft
from codespec.draft.ngram import NgramDraft
from codespec.draft.sequence import HeldSequence
from codespec.protocols import CodespecError, Draft, Limits, Round, Sampling
from codespec.speculative.generate import Generator
from codespec.speculative.verify import Verdict, verify_coupled
from tests.fakes import (
    FakeDraft,
    SetGrammar,
    Table,
    TableTarget,
    oracle_draft,
    random_draft,
    random_grammar,
    wrong_draft,
)
from tests.speculative.loops import END, SAMPLED, joined, model_draft, table
from tests.speculative.reference import target_only

CASES = 2_400
CHUNKS = 8


__all__ = ["table"]


@dataclass
class Case:
    table: Table
    prompt: list[int]
    sampling: Sampling
    max_tokens: int
    grammar: SetGrammar | None
    end_tokens: frozenset[int]
    n_ctx: int
    draft_length: int

    def expected(self) -> tuple[list[int], str]:
        grammar = None if self.grammar is None else self.grammar.copy()
        return target_only(
            self.table, self.prompt, self.sampling, self.max_tokens, grammar, self.end_tokens, self.n_ctx
        )


def random_sampling(rng: np.random.Generator, vocabulary: int) -> Sampling:
    penalised, biased = rng.random(2) < 0.3
    biased_ids = rng.integers(0, vocabulary, 3).tolist()
    return Sampling(
        temperature=float(rng.choice([0.0, 0.0, 0.3, 0.8, 1.5])),
        top_k=int(rng.choice([0, 0, 1, 3, 10, 40])),
        top_p=float(rng.choice([1.0, rng.random()])),
        min_p=float(rng.choice([0.0, rng.random() * 0.3])),
        seed=int(rng.integers(-5, 1 << 40)),
        sample=int(rng.integers(3)),
        repeat_penalty=float(rng.choice([0.8, 1.3])) if penalised else 1.0,
        frequency_penalty=float(rng.choice([0.0, 0.4])) if penalised else 0.0,
        presence_penalty=float(rng.choice([0.0, 0.7])) if penalised else 0.0,
        penalty_window=int(rng.choice([0, 3, 64])),
        logit_bias={t: float(rng.choice([-np.inf, -1.0, 2.0])) for t in biased_ids} if biased else {},
    )


def random_case(rng: np.random.Generator) -> Case:
    vocabulary = int(rng.choice([5, 12, 40, 90]))
    end_tokens = frozenset({0}) if rng.random() < 0.5 else frozenset({1, 3})
    table = Table(
        vocabulary,
        int(rng.integers(1 << 30)),
        order=int(rng.integers(1, 4)),
        scale=float(rng.choice([0.5, 2.0, 5.0])),
        step=float(rng.choice([0.0, 0.0, 0.5])),
    )
    return Case(
        table=table,
        prompt=rng.integers(0, vocabulary, rng.integers(1, 6)).tolist(),
        sampling=random_sampling(rng, vocabulary),
        max_tokens=int(rng.choice([1, 2, 12, 25])),
        grammar=random_grammar(rng, vocabulary, end_tokens) if rng.random() < 0.6 else None,
        end_tokens=end_tokens,
        n_ctx=int(rng.choice([8, 10_000, 10_000])),
        draft_length=int(rng.integers(1, 8)),
    )


def random_speculator(rng: np.random.Generator, case: Case, text: Sequence[int]) -> Draft | None:
    """One of every kind; ``text`` is the whole text to come, prompt included."""
    vocabulary = case.table.vocabulary
    noisy = Table(vocabulary, 7, case.table.order, base=case.table, noise=float(rng.choice([0.0, 0.3, 1.0])))
    model = ModelDraft(TableTarget(noisy, n_ctx=int(rng.choice([9, 10_000]))), case.end_tokens)
    blind, rude = (bool(x) for x in rng.random(2) < 0.2)
    drafts: list[Draft | None] = [
        None,
        model,
        model,
        random_draft(vocabulary, 5, blind=blind, polite=not rude),
        oracle_draft([*text, *case.end_tokens], blind=blind, polite=not rude),
        wrong_draft([*text, 2, 2], vocabulary),
        FakeDraft(lambda tokens: text[len(tokens) :], fail_at={2}),
        # No clock: how much is proposed follows the time, and a case is to be the same each time.
        CombinedDraft(
            RunningCosts(), Acceptance(), [NgramDraft()], model, end_tokens=case.end_tokens, clock=lambda: 0.0
        ),
        CombinedDraft(
            RunningCosts(),
            Acceptance(),
            [NgramDraft()],
            other_vocabulary=random_draft(vocabulary, 6),
            clock=lambda: 0.0,
        ),
    ]
    return drafts[int(rng.integers(len(drafts)))]


def check_counts(generator: Generator, target: TableTarget, rounds: Sequence[Round], case: Case) -> None:
    statistics = generator.statistics
    assert statistics.tokens == sum(len(r.tokens) for r in rounds) <= case.max_tokens
    assert statistics.drafted == sum(len(r.proposed) for r in rounds)
    assert statistics.accepted == sum(r.accepted for r in rounds) <= statistics.drafted
    assert statistics.prefill_tokens + statistics.reused_tokens in (0, len(case.prompt))
    for r in rounds:
        assert len(r.proposed) <= case.draft_length
        # An accepted end token is no text.
        assert tuple(r.proposed[: r.accepted])[: len(r.tokens)] == r.tokens[: r.accepted]
        assert len(r.tokens) - r.accepted in (-1, 0, 1)
        assert len(r.sources) == len(r.proposed)
    assert target.n_past == len(generator.sequence.tokens)
    assert target.tokens == generator.sequence.tokens


def run(case: Case, draft: Draft | None) -> tuple[Generator, TableTarget, list[Round], SetGrammar | None]:
    target = TableTarget(case.table, n_ctx=case.n_ctx)
    generator = Generator(target, draft, case.end_tokens, case.draft_length)
    grammar = None if case.grammar is None else case.grammar.copy()
    limits = Limits(max_tokens=case.max_tokens)
    rounds = list(generator.generate(case.prompt, case.sampling, limits, grammar))
    return generator, target, rounds, grammar


def check_case(seed: int) -> str:
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    text, reason = case.expected()
    draft = random_speculator(rng, case, [*case.prompt, *text])
    generator, target, rounds, grammar = run(case, draft)
    assert joined(rounds) == (text, reason), seed
    check_counts(generator, target, rounds, case)
    if grammar is not None:
        assert case.grammar is not None
        again = case.grammar.copy()
        assert again.accept(text) == len(text)
        assert again.history == grammar.history
    return reason


def check_cases(seeds: range) -> list[str]:
    return [check_case(seed) for seed in seeds]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_equal_to_the_target_alone(chunk: int) -> None:
    reasons = check_cases(range(chunk, CASES, CHUNKS))
    assert set(reasons) == {"stop", "length", "grammar"}
    assert min(reasons.count(r) for r in set(reasons)) > len(reasons) // 20


def accept_everything(target_logits, proposal, tokens, grammar, sampler, end_tokens, room) -> Verdict:
    proposed = proposal.tokens
    tokens.extend(proposed)
    own = sampler.choose(target_logits[len(proposed)], tokens, None)
    tokens.append(own)
    return Verdict((*proposed, own), len(proposed), "length" if len(proposed) + 1 >= room else None)


class Forgetful:
    """Every row is drawn with the history before the proposal: noise and penalties of the wrong place."""

    def __init__(self, sampler, before) -> None:
        self._sampler, self._before = sampler, before

    def only_choice(self, logits):
        return None

    def choose_closely(self, logits, tokens, grammar):
        return self._sampler.choose(logits, self._before, grammar)


def forgetful_verify(target_logits, proposal, tokens, grammar, sampler, end_tokens, room) -> Verdict:
    forgetful: Any = Forgetful(sampler, tuple(tokens))
    return verify_coupled(target_logits, proposal, tokens, grammar, forgetful, end_tokens, room)


def keep_the_kv_cache(self: HeldSequence, count: int) -> None:
    del self.tokens[count:]


MUTANTS = [
    (generate_module, "verify_coupled", accept_everything),
    (generate_module, "verify_coupled", forgetful_verify),
    (HeldSequence, "rollback", keep_the_kv_cache),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m[2].__name__)
def test_a_broken_loop_is_noticed(mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """The strength of the test above: each of these faults must show within 60 cases."""
    place, name, fault = mutant
    monkeypatch.setattr(place, name, fault)
    with pytest.raises((AssertionError, IndexError, CodespecError)):
        check_cases(range(60))


def test_every_sample_index_gives_another_text(table: Table) -> None:
    generator = Generator(TableTarget(table), model_draft(table), END)
    texts = {tuple(joined(generator.generate([1], replace(SAMPLED, sample=i), Limits(20)))[0]) for i in range(20)}
    assert len(texts) == 20


def test_a_good_draft_saves_target_calls(table: Table) -> None:
    alone = Generator(TableTarget(table), None, END)
    text, _ = joined(alone.generate([1, 2], SAMPLED, Limits(41)))
    assert alone.statistics.target_calls == 41
    same = Generator(TableTarget(table), model_draft(table, noise=0), END, draft_length=4)
    assert joined(same.generate([1, 2], SAMPLED, Limits(41)))[0] == text
    assert same.statistics.target_calls == 1 + 8
    assert same.statistics.accepted == same.statistics.drafted == 32
    assert same.statistics.by_source["model"].accepted == 32


@pytest.mark.parametrize("after", [0, 1, 3])
def test_cancelled_between_passes(table: Table, after: int) -> None:
    expected, _ = target_only(table, [1, 2], SAMPLED, 50, None, END)
    cancel = threading.Event()
    generator = Generator(TableTarget(table), model_draft(table), END)
    rounds = []
    if not after:
        cancel.set()
    for r in generator.generate([1, 2], SAMPLED, Limits(50), cancel=cancel):
        rounds.append(r)
        if len(rounds) == after:
            cancel.set()
    text, reason = joined(rounds)
    assert reason == "cancelled"
    assert len(rounds) == after + 1
    assert text == expected[: len(text)]
    assert joined(generator.generate([1, 2], SAMPLED, Limits(50)))[0] == expected


@pytest.mark.parametrize("call", range(7))
@pytest.mark.parametrize("whose", ["target", "draft"])
def test_aborted_in_the_middle_of_a_pass(table: Table, call: int, whose: str) -> None:
    # Before the first token the target reads the prompt, the draft proposes its four, the target looks at them.
    before_the_first = {"target": 2, "draft": 4}[whose]
    expected, _ = target_only(table, [1, 2], SAMPLED, 50, None, END)
    target = TableTarget(table, abort_at={call} if whose == "target" else ())
    draft = model_draft(table, abort_at={call} if whose == "draft" else ())
    generator = Generator(target, draft, END)
    text, reason = joined(generator.generate([1, 2], SAMPLED, Limits(50)))
    assert reason == "cancelled"
    assert text == expected[: len(text)]
    assert (not text) == (call < before_the_first)
    assert joined(generator.generate([1, 2], SAMPLED, Limits(50)))[0] == expected


def test_cancelled_within_a_pass_keeps_its_tokens(table: Table) -> None:
    cancel = threading.Event()
    target = TableTarget(table)
    target.on_decode = lambda: cancel.set() if len(target.decodes) == 2 else None
    rounds = list(Generator(target, None, END).generate([1], SAMPLED, Limits(9), cancel=cancel))
    assert [len(r.tokens) for r in rounds] == [1, 1, 1]
    assert rounds[-1].finish_reason == "cancelled"


def test_how_much_of_a_prompt_is_read_can_be_seen(table: Table) -> None:
    target = TableTarget(table)
    generator = Generator(target, None, END, steps=lambda: (2, 2, 1))
    seen: list[int | None] = []
    target.on_decode = lambda: seen.append(generator.reading)
    assert generator.reading is None
    joined(generator.generate([1, 2] * 4, SAMPLED, Limits(1)))
    assert [each for each in seen if each is not None] == [0, 28, 57, 85]  # the last token is decoded with what follows
    assert generator.reading is None


def test_time_budget(table: Table) -> None:
    generator = Generator(TableTarget(table), None, END)
    assert joined(generator.generate([1], SAMPLED, Limits(9, time_budget_ms=0))) == ([], "time")
    began = perf_counter()
    text, reason = joined(generator.generate([1], SAMPLED, Limits(100_000, time_budget_ms=20)))
    assert reason == "time"
    assert perf_counter() - began >= 0.02
    assert text == target_only(table, [1], SAMPLED, len(text), None, END)[0]


def test_reuse_of_the_kv_cache_after_an_early_close() -> None:
    rng = np.random.default_rng(4)
    table = Table(30, seed=3, order=3)
    target, small = TableTarget(table), TableTarget(Table(30, 9, 3, base=table, noise=0.3))
    generator = Generator(target, ModelDraft(small, END), END)
    text = [5, 6, 7]
    for _ in range(60):
        # Type on, delete, or jump back into what was generated.
        prompt = [*text[: rng.integers(1, len(text) + 1)], *rng.integers(1, 30, rng.integers(3)).tolist()]
        shared = next((i for i, (a, b) in enumerate(zip(prompt, target.tokens, strict=False)) if a != b), None)
        shared = min(len(prompt), target.n_past) if shared is None else shared
        rounds: Any = generator.generate(prompt, SAMPLED, Limits(12))
        got = [t for _, r in zip(range(rng.integers(1, 6)), rounds, strict=False) for t in r.tokens]
        rounds.close()
        assert target.tokens == generator.sequence.tokens
        assert generator.statistics.reused_tokens == min(shared, len(prompt) - 1)
        assert got == target_only(table, prompt, SAMPLED, 12, None, END)[0][: len(got)]
        text = [*prompt, *got]


def test_a_second_generation_ends_the_first(table: Table) -> None:
    generator = Generator(TableTarget(table), None, END)
    first = generator.generate([1], SAMPLED, Limits(9))
    next(first)
    second = list(generator.generate([1], SAMPLED, Limits(9)))
    with pytest.raises(CodespecError, match="another generation"):
        next(first)
    assert joined(second)[0] == target_only(table, [1], SAMPLED, 9, None, END)[0]


def test_a_held_prefix_is_not_decoded_again(table: Table) -> None:
    target = TableTarget(table)
    target.decode([1, 2, 3, 4], last=0)
    generator = Generator(target.fork(), None, END, held=[1, 2, 3])
    text, _ = joined(generator.generate([1, 2, 3, 9], SAMPLED, Limits(5)))
    assert generator.statistics.reused_tokens == 3
    assert text == target_only(table, [1, 2, 3, 9], SAMPLED, 5, None, END)[0]
    with pytest.raises(ValueError, match="said to be held"):
        Generator(target, None, END, held=[1, 2, 3, 4, 5])


def test_prompts_that_cannot_be_used(table: Table) -> None:
    generator = Generator(TableTarget(table, n_ctx=4), None, END)
    with pytest.raises(CodespecError, match="prompt is empty"):
        generator.generate([], SAMPLED, Limits(1))
    with pytest.raises(CodespecError, match="do not fit"):
        next(generator.generate([1, 2, 3, 4, 5], SAMPLED, Limits(1)))
    assert joined(generator.generate([1, 2, 3, 4], SAMPLED, Limits(9)))[1] == "length"


def test_a_draft_that_fails_is_left_out(table: Table) -> None:
    expected = target_only(table, [1], SAMPLED, 30, None, END)
    draft = oracle_draft([1, *expected[0]])
    draft.fail_at = {2}
    generator = Generator(TableTarget(table), draft, END)
    assert joined(generator.generate([1], SAMPLED, Limits(30))) == expected
    assert draft.calls == 3
    assert joined(generator.generate([1], SAMPLED, Limits(30))) == expected
    assert draft.calls > 4, "the next generation asks it again"


def test_bad_logits_are_an_error_and_nothing_breaks(table: Table) -> None:
    target = TableTarget(table)
    generator = Generator(target, model_draft(table), END)
    table.row([1, 2]).fill(np.nan)
    with pytest.raises(CodespecError, match="not numbers"):
        list(generator.generate([1, 2], SAMPLED, Limits(5)))
    assert joined(generator.generate([1, 3], SAMPLED, Limits(5)))[1] == "length"


def test_drafts_grammar_is_copied_once_and_rolled_back() -> None:
    """No copy a round: a copy costs as much as the text is long."""
    table = Table(20, seed=5)
    cycle = [dict.fromkeys(range(1, 20), 0)]
    grammar = SetGrammar(cycle, frozenset(), END)
    generator = Generator(TableTarget(table), model_draft(table, noise=0.6), END)
    list(generator.generate([1], SAMPLED, Limits(60), grammar))
    assert generator.statistics.accepted < generator.statistics.drafted
    assert grammar.calls["copy"] == 1
    assert generator.statistics.grammar_ms > 0


def test_a_draft_grammar_of_ones_own() -> None:
    table = Table(20, seed=5)
    grammar = SetGrammar([dict.fromkeys(range(1, 20), 0)], frozenset(), END)
    other = SetGrammar([dict.fromkeys(range(1, 12), 0)], frozenset(), END)
    expected = target_only(table, [1], SAMPLED, 30, grammar.copy(), END)
    generator = Generator(TableTarget(table), model_draft(table), END)
    assert joined(generator.generate([1], SAMPLED, Limits(30), grammar, draft_grammar=other)) == expected
    assert generator.statistics.accepted > 0
