"""The text that the target alone gives, one token at a time, written for plainness: what the loop is held to."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from codespec.protocols import FinishReason, GrammarState, Sampling
from tests.fakes import Table

WORD = 1 << 64


def mix(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % WORD
    return x ^ (x >> 31)


def noise(sampling: Sampling, index: int, token: int) -> float:
    key = 0
    for part in (sampling.seed, sampling.sample, index):
        key = mix((key + 0x9E3779B97F4A7C15 + part) % WORD)
    bits = mix((key + token * 0x9E3779B97F4A7C15) % WORD)
    return -math.log(-math.log(((bits >> 12) + 0.5) / 2**52))


def adjust(logits: np.ndarray, tokens: Sequence[int], sampling: Sampling) -> list[float]:
    scores = [float(np.float32(x) + np.float32(sampling.logit_bias.get(t, 0.0))) for t, x in enumerate(logits)]
    window = list(tokens)[max(0, len(tokens) - sampling.penalty_window) :]
    for token in set(window):
        x, times = scores[token], window.count(token)
        x = x / sampling.repeat_penalty if x > 0 else x * sampling.repeat_penalty
        x = x - times * sampling.frequency_penalty - sampling.presence_penalty
        scores[token] = float(np.float32(x))
    return scores


def survivors(scores: Sequence[float], sampling: Sampling, grammar: GrammarState | None) -> list[int]:
    """Mask, then top-k, top-p, min-p; best first."""
    ids = [t for t, x in enumerate(scores) if x > -math.inf and (grammar is None or grammar.allows(t))]
    ids.sort(key=lambda t: (-scores[t], t))
    if not ids or sampling.temperature == 0:
        return ids[:1]
    if sampling.top_k:
        ids = ids[: sampling.top_k]
    weights = np.exp(np.array([scores[t] - scores[ids[0]] for t in ids]))
    if sampling.top_p < 1:
        reached = np.flatnonzero(np.cumsum(weights) >= sampling.top_p * np.cumsum(weights)[-1])
        ids = ids[: int(reached[0]) + 1]
    if sampling.min_p > 0:
        ids = [t for t in ids if scores[t] >= scores[ids[0]] + math.log(sampling.min_p)]
    return ids


def choose(
    logits: np.ndarray, tokens: Sequence[int], prompt_length: int, sampling: Sampling, grammar: GrammarState | None
) -> int | None:
    scores = adjust(logits, tokens, sampling)
    ids = survivors(scores, sampling, grammar)
    if not ids:
        return None
    if sampling.temperature == 0:
        return ids[0]
    index = len(tokens) - prompt_length
    return max(ids, key=lambda t: scores[t] / sampling.temperature + noise(sampling, index, t))


def target_only(
    table: Table,
    prompt: Sequence[int],
    sampling: Sampling,
    max_tokens: int,
    grammar: GrammarState | None,
    end_tokens: frozenset[int],
    n_ctx: int = 10_000,
) -> tuple[list[int], FinishReason]:
    """The generated tokens and why they end; advances ``grammar``."""
    text: list[int] = []
    if grammar is not None and grammar.finished:
        return text, "stop"
    while len(text) < max_tokens:
        tokens = [*prompt, *text]
        if len(tokens) > n_ctx:
            return text, "length"
        token = choose(table.row(tokens), tokens, len(prompt), sampling, grammar)
        if token is None:
            return text, "grammar"
        if token in end_tokens:
            return text, "stop"
        text.append(token)
        if grammar is not None:
            assert grammar.accept([token]) == 1
            if grammar.finished:
                return text, "stop"
    return text, "length"


Law = dict[tuple[tuple[int, ...], FinishReason], float]
"""Texts, why they end, and how probable they are."""


def next_law(
    logits: np.ndarray, tokens: Sequence[int], sampling: Sampling, grammar: GrammarState | None
) -> dict[int, float]:
    """The probability of every token that may come next."""
    scores = adjust(logits, tokens, sampling)
    ids = survivors(scores, sampling, grammar)
    weights = [math.exp((scores[t] - scores[ids[0]]) / (sampling.temperature or 1)) for t in ids]
    return {t: weight / math.fsum(weights) for t, weight in zip(ids, weights, strict=True)}


def law_of_texts(
    table: Table,
    prompt: Sequence[int],
    sampling: Sampling,
    max_tokens: int,
    grammar: GrammarState | None,
    end_tokens: frozenset[int],
    n_ctx: int = 10_000,
    text: tuple[int, ...] = (),
) -> Law:
    """What the target alone generates behind ``prompt`` and ``text``, which ``max_tokens`` counts."""
    if grammar is not None and grammar.finished:
        return {(text, "stop"): 1.0}
    tokens = [*prompt, *text]
    if len(text) >= max_tokens or len(tokens) > n_ctx:
        return {(text, "length"): 1.0}
    law: Law = {}
    choices = next_law(table.row(tokens), tokens, sampling, grammar)
    for token, weight in choices.items():
        if token in end_tokens:
            law[text, "stop"] = law.get((text, "stop"), 0.0) + weight
            continue
        if grammar is not None:
            assert grammar.accept([token]) == 1
        further = law_of_texts(table, prompt, sampling, max_tokens, grammar, end_tokens, n_ctx, (*text, token))
        if grammar is not None:
            grammar.rollback(1)
        for outcome, share in further.items():
            law[outcome] = law.get(outcome, 0.0) + weight * share
    return law if choices else {(text, "grammar"): 1.0}
