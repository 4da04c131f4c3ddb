"""``python -m benchmarks grammar --decode``: what a JSON grammar adds to the time of each decoded token."""

from __future__ import annotations

import json
import statistics
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

import numpy as np

from codespec.grammar import Grammar
from codespec.llama.context import Context
from codespec.llama.llguidance_tokenizer import tokenizer_from_vocab
from codespec.llama.model import Model
from codespec.llama.sequence import LlamaSequence
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import CodespecError, GrammarState, Sampling
from codespec.speculative.sampling import LogitSampler

ROUNDS = 5
_PROMPT = "A JSON document:\n"


@dataclass
class Step:
    """Seconds that one token took: in all, and outside the model's own decode."""

    total: float
    ours: float


def run(target: Path | None, tokens: int, out: Path | None) -> int:
    """Decode alternately with and without the shipped JSON grammar; print medians and their ratio.

    Raises:
        CodespecError: the model cannot be read, or the grammar ended the text at once.
    """
    path = target or Path(EMBEDDED_TARGET)
    with Model(path) as model, Context(model, context_length=max(512, tokens + 64)) as context:
        tokenizer = tokenizer_from_vocab(model.vocabulary)
        sequence = context.sequence()
        pristine = Grammar.load("json").state(tokenizer)
        summary: dict[str, Any] = {"target": str(path), "vocabulary": tokenizer.size, "tokens": tokens}
        for name, sampling in (("greedy", Sampling()), ("sampled", Sampling(temperature=0.8, seed=1))):
            steps: dict[str, list[Step]] = {"free": [], "json": []}
            for round_ in range(ROUNDS):
                for kind in ("free", "json") if round_ % 2 else ("json", "free"):
                    print(f"{name} {round_ + 1}/{ROUNDS} {kind}", file=sys.stderr, flush=True)
                    state = pristine.copy() if kind == "json" else None
                    steps[kind] += decode(sequence, model, sampling, state, tokens, round_)
            summary[name] = compare(steps)
    print(json.dumps(summary, indent=1))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "constrained.json").write_text(json.dumps(summary, indent=1) + "\n", "utf-8")
    return 0


def decode(
    sequence: LlamaSequence, model: Model, sampling: Sampling, grammar: GrammarState | None, tokens: int, sample: int
) -> list[Step]:
    """One generation, a token at a time; where the text may end it goes on, and starts again where it must."""
    prompt = model.vocabulary.tokenize(_PROMPT)
    sampler = LogitSampler(_going_on(sampling, model, sample), len(prompt))
    history = list(prompt)
    row = sequence.decode(prompt, last=1)[0]
    start = grammar.copy() if grammar is not None else None
    steps = []
    for _ in range(tokens):
        began, ours = perf_counter(), thread_time()
        token = sampler.choose(row, history, grammar)
        if token is not None and grammar is not None:
            grammar.accept([token])
        ours = thread_time() - ours
        if token is None:  # a complete document
            assert start is not None
            grammar = start.copy()
            continue
        history.append(token)
        row = sequence.decode([token], last=1)[0]
        steps.append(Step(perf_counter() - began, ours))
    sequence.rollback(0)
    if len(steps) < tokens // 2:
        raise CodespecError("the grammar leaves no tokens to decode")
    return steps


def _going_on(sampling: Sampling, model: Model, sample: int) -> Sampling:
    return replace(sampling, sample=sample, logit_bias=dict.fromkeys(model.vocabulary.end_tokens, -np.inf))


def compare(steps: dict[str, list[Step]]) -> dict[str, float]:
    """Medians in milliseconds, and what the grammar adds as a share."""
    free, constrained = (statistics.median(step.total for step in steps[kind]) for kind in ("free", "json"))
    ours_free, ours = (statistics.fmean(step.ours for step in steps[kind]) for kind in ("free", "json"))
    return {
        "ms_per_token_free": round(free * 1e3, 3),
        "ms_per_token_json": round(constrained * 1e3, 3),
        "ratio_of_medians": round(constrained / free, 4),
        "python_us_per_token_free": round(ours_free * 1e6, 1),
        "python_us_per_token_json": round(ours * 1e6, 1),
        "added_share": round((ours - ours_free) / free, 4),
    }
