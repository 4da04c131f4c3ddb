"""The figures of ``python -m benchmarks latency``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.latency.llama_vim import Sent
from benchmarks.latency.typing import Press, Typed

KINDS = ("along", "typing", "thought", "all")
SHARES = (50, 95, 99)
WITHIN_MS = (50, 100, 200)


@dataclass
class Log(Typed):
    """What happened in one arm.

    Attributes:
        status: what ``codespec.status`` says at the end; numbers are those of these sessions.
        answers: what each answer took in the server.
        sent: the requests to ``llama-server``.
    """

    status: dict[str, Any] = field(default_factory=dict)
    answers: list[dict[str, Any]] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)


def quantiles(values: Iterable[float]) -> dict[str, float | None]:
    """p50, p95 and p99; None where they lie among what never came (infinity); nothing of no values."""
    kept = list(values)
    found = {f"p{share}": float(np.quantile(kept, share / 100, method="higher")) for share in SHARES if kept}
    return {key: round(value, 2) if math.isfinite(value) else None for key, value in found.items()}


def figures(log: Log) -> dict[str, Any]:
    """Quantiles in milliseconds, by kind of key, and what the servers counted.

    ``waited`` is from request to answer, ``from_key`` from key to answer, ``all_keys`` the same with keys that got no
    answer before the next one counted as waiting for ever; ``text_within`` is the share of keys with a text so soon.
    """
    kinds: dict[str, Any] = {}
    for kind in KINDS:
        pressed = [each for each in log.presses if kind in (each.kind, "all")]
        answered = [each for each in pressed if each.from_key is not None]
        kinds[kind] = {
            "keys": len(pressed),
            "asked": sum(each.asked for each in pressed),
            "answered": len(answered),
            "with_text": sum(bool(each.text) for each in answered),
            "from_memory": sum(each.memory for each in answered),
            "waited": quantiles(each.waited for each in answered if each.waited is not None),
            "from_key": quantiles(each.from_key for each in answered if each.from_key is not None),
            "all_keys": quantiles(math.inf if each.from_key is None else each.from_key for each in pressed),
            "text_within": {f"{ms} ms": _share(pressed, ms) for ms in WITHIN_MS},
        }
    found: dict[str, Any] = {"requests": kinds}
    if log.status:
        pass_ms = log.status.get("pass_ms", 0.0)
        stops = {key: value for key, value in log.status.get("stop_decode_ms", {}).items() if key != "count"}
        found |= {"server": log.status, "in_server": {kind: in_server(log.answers, kind) for kind in KINDS}}
        found["stop_decode_in_passes"] = {key: round(ms / pass_ms, 2) for key, ms in stops.items() if pass_ms > 0}
    found["prompt_tokens"] = prompt_tokens(log)
    if log.sent:
        found["sent"] = {
            role: {"count": len(of), "ms": quantiles(each.ms for each in of)}
            for role in ("first", "speculative", "ring")
            if (of := [each for each in log.sent if each.role == role])
        }
    return found


def _share(pressed: Sequence[Press], ms: float) -> float | None:
    shown = sum(bool(each.text) and each.from_key is not None and each.from_key <= ms for each in pressed)
    return round(shown / len(pressed), 3) if pressed else None


def on_the_same_keys(own: Log, other: Log) -> dict[str, Any]:
    """Milliseconds from key to answer of two arms, at the keys that both answered before the next one: who answers
    more of what takes long is not the slower one for that."""
    pairs = [
        (a, b, a.from_key, b.from_key)
        for a, b in zip(own.presses, other.presses, strict=True)
        if a.from_key is not None and b.from_key is not None
    ]
    found = {}
    for what, kept in (
        ("answered by both", pairs),
        ("with text from both", [p for p in pairs if p[0].text and p[1].text]),
    ):
        found[what] = {
            "keys": len(kept),
            "own": quantiles(mine for *_, mine, _ in kept),
            "other": quantiles(theirs for *_, theirs in kept),
        }
    return found


def in_server(answers: Sequence[dict[str, Any]], kind: str) -> dict[str, Any]:
    """What answers took that a model was asked for, also over the decoding, the first pass of which is over the last
    token of the prompt: 1 is no visible prefill."""
    asked = [each for each in answers if kind in (each["kind"], "all") and not each["memory"]]
    ratios = [
        each["ms"] / (each["total_ms"] - each["prefill_ms"]) for each in asked if each["total_ms"] > each["prefill_ms"]
    ]
    return {
        "count": len(asked),
        "ms": quantiles(each["ms"] for each in asked),
        "prefill_tokens": quantiles(each["prefill_tokens"] for each in asked),
        "prefill_ms": quantiles(each["prefill_ms"] for each in asked),
        "over_decoding": quantiles(ratios),
    }


def prompt_tokens(log: Log) -> dict[str, Any]:
    """Tokens of prompts that were evaluated, by what for, and for each key that got an answer."""
    answered = sum(each.from_key is not None for each in log.presses)
    if log.sent:
        by = {role: sum(each.prompt_n for each in log.sent if each.role == role) for role in ("first", "speculative")}
        by["ring"] = sum(each.prompt_n for each in log.sent if each.role == "ring")
        for_answers = by["first"]
    else:
        by = {key: log.status.get(key, 0) for key in ("prefill_tokens", "read_ahead")}
        for_answers = by["prefill_tokens"]
    total = sum(by.values())
    return {
        **by,
        "total": total,
        "per_answer": round(total / answered, 1) if answered else None,
        "per_answer_without_ahead": round(for_answers / answered, 1) if answered else None,
    }
