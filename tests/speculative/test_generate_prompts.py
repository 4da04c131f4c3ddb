"""Prompts: read ahead, together with the first proposal, or up to where that was stopped."""

from __future__ import annotations

import threading

import pytest

from codespec.protocols import CodespecError, Limits
from codespec.speculative.generate import Generator
from tests.fakes import Table, TableTarget
from tests.speculative.loops import END, SAMPLED, joined, model_draft, table
from tests.speculative.reference import target_only

__all__ = ["table"]


def test_a_prompt_that_was_read_ahead_needs_only_its_last_token(table: Table) -> None:
    prompt = list(range(1, 24))
    expected = target_only(table, prompt, SAMPLED, 12, None, END)
    target = TableTarget(table)
    generator = Generator(target, model_draft(table), END, steps=lambda: (4, 8, 1))
    assert generator.prefill(prompt[:20]) == 20
    assert [len(each) for each in target.decodes] == [4, 4, 8, 4]
    assert generator.prefill(prompt) == 3
    assert joined(generator.generate(prompt, SAMPLED, Limits(12))) == expected
    assert (generator.statistics.prefill_tokens, generator.statistics.reused_tokens) == (1, len(prompt) - 1)


@pytest.mark.parametrize(("held", "steps"), [(0, [4, 4, 8, 6]), (18, [2]), (19, []), (22, []), (23, [])])
def test_the_end_of_a_prompt_is_read_together_with_the_first_proposal(
    table: Table, held: int, steps: list[int]
) -> None:
    prompt = list(range(1, 24))
    target = TableTarget(table)
    generator = Generator(target, model_draft(table), END, steps=lambda: (4, 8, 4))
    generator.prefill(prompt[:held])
    target.decodes.clear()
    rounds = list(generator.generate(prompt, SAMPLED, Limits(12)))
    expected = target_only(table, prompt, SAMPLED, 12, None, END)
    assert joined(rounds) == expected
    lacking = len(prompt) - min(held, len(prompt) - 1)
    proposed = rounds[0].proposed
    assert proposed
    decoded = [len(each) for each in target.decodes[: len(steps) + 1]]
    assert decoded == [*steps, lacking - sum(steps) + len(proposed)]
    assert (generator.statistics.prefill_tokens, generator.statistics.reused_tokens) == (lacking, 23 - lacking)


def test_nothing_is_proposed_before_a_first_token_that_is_to_come_soon(table: Table) -> None:
    target = TableTarget(table)
    rounds = list(Generator(target, model_draft(table), END).generate([1, 2, 3], SAMPLED, Limits(12, first_alone=True)))
    assert joined(rounds) == target_only(table, [1, 2, 3], SAMPLED, 12, None, END)
    assert not rounds[0].proposed
    assert len(rounds[0].tokens) == 1
    assert rounds[1].proposed


@pytest.mark.parametrize("ahead", [True, False])
def test_what_was_read_before_a_prompt_was_stopped_stays(table: Table, ahead: bool) -> None:
    prompt = list(range(1, 24))
    cancel = threading.Event()
    target = TableTarget(table, on_decode=lambda: cancel.set() if target.n_past >= 8 else None)
    generator = Generator(target, None, END, steps=lambda: (8, 8, 1))
    if ahead:
        assert generator.prefill(prompt, cancel) == 16
    else:
        [stopped] = generator.generate(prompt, SAMPLED, Limits(12), cancel=cancel)
        assert stopped.finish_reason == "cancelled"
    assert joined(generator.generate(prompt, SAMPLED, Limits(12))) == target_only(table, prompt, SAMPLED, 12, None, END)
    assert generator.statistics.reused_tokens == 16


def test_what_was_read_before_a_prefill_was_aborted_stays(table: Table) -> None:
    prompt = list(range(1, 24))
    generator = Generator(TableTarget(table, abort_at=[1]), None, END, steps=lambda: (8, 8, 1))
    assert generator.prefill(prompt) == 8
    assert joined(generator.generate(prompt, SAMPLED, Limits(12))) == target_only(table, prompt, SAMPLED, 12, None, END)
    assert generator.statistics.reused_tokens == 8
    assert Generator(TableTarget(table), None, END).prefill([]) == 0
    with pytest.raises(CodespecError):
        Generator(TableTarget(table, n_ctx=10), None, END).prefill(prompt)


def test_a_prefill_ends_a_generation_that_still_runs(table: Table) -> None:
    generator = Generator(TableTarget(table), None, END)
    rounds = generator.generate([1, 2, 3], SAMPLED, Limits(12))
    next(rounds)
    generator.prefill([1, 2, 5])
    with pytest.raises(CodespecError, match="another generation has begun"):
        next(rounds)
