"""``codespec bench decode``: what a draft is worth on this machine, as a ratio to the target alone in one run."""

from __future__ import annotations

import json
import random
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from codespec.completion.local import LocalEngine
from codespec.completion.prompt import fim_prompt
from codespec.languages import by_path
from codespec.models.fim import fim_format
from codespec.models.registry import EMBEDDED_TARGET, find_draft
from codespec.protocols import CodespecError, Limits, Sampling

TOKENS = 64
LINES_BEFORE = 5


@dataclass(frozen=True)
class Measurement:
    """One position, decoded with the draft and without."""

    alone_ms: float
    drafted_ms: float
    drafted: int
    accepted: int
    tokens: int
    target_calls: int
    same_text: bool


def run(files: list[Path], positions: int, draft_length: int, out: Path | None) -> int:
    """Measure, print a summary, write ``decode.json`` under ``out``.

    Raises:
        CodespecError: no file to complete.
    """
    files = files or default_files()
    texts = [(path, path.read_text("utf-8")) for path in files if path.suffix == ".py"]
    if not texts:
        raise CodespecError("no Python file to complete; name some")
    chooser = random.Random(1)
    measurements = []
    engine = LocalEngine(EMBEDDED_TARGET, draft_length=draft_length)
    try:
        engine.use_draft(find_draft("auto", by_path("x.py")))
        for index in range(positions):
            path, text = texts[index % len(texts)]
            measurements.append(measure(engine, path, text, chooser, drafted_first=bool(index % 2)))
            if sys.stderr.isatty():
                print(f"\r{index + 1}/{positions}", end="", file=sys.stderr, flush=True)
    finally:
        engine.close()
    summary = summarize(measurements, draft_length)
    print(json.dumps(summary, indent=1))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "decode.json").write_text(json.dumps(summary, indent=1) + "\n", "utf-8")
    return 0


def default_files() -> list[Path]:
    """The package's own sources: code that neither model has seen."""
    return sorted(Path(__file__).parent.parent.rglob("*.py"))


def measure(engine: LocalEngine, path: Path, text: str, chooser: random.Random, drafted_first: bool) -> Measurement:
    """Complete at a random line's end, greedily, with the draft and without; prefill not counted."""
    lines = text.split("\n")
    row = chooser.randrange(min(LINES_BEFORE, len(lines) - 1), len(lines))
    prefix, suffix = "\n".join(lines[:row]) + "\n", "\n" + "\n".join(lines[row:])
    layout = fim_format(engine.model)
    if layout is None:
        raise CodespecError(f"{engine.model.path}: this model cannot fill in the middle")
    prompt = fim_prompt(engine.vocabulary, layout, prefix, suffix, path.name, engine.context_length - TOKENS - 1)
    results: dict[bool, tuple[str, float, Any]] = {}
    for speculate in (drafted_first, not drafted_first):
        began = perf_counter()
        # No end tokens' worth of luck: both runs give the same number of tokens unless their texts differ.
        chunks = engine.generate(prompt, None, Sampling(), Limits(TOKENS), speculate=speculate)
        generated = "".join(chunk.text for chunk in chunks)
        results[speculate] = (
            generated,
            (perf_counter() - began) * 1e3 - engine.statistics.prefill_ms,
            engine.statistics,
        )
    statistics_ = results[True][2]
    return Measurement(
        alone_ms=results[False][1],
        drafted_ms=results[True][1],
        drafted=statistics_.drafted,
        accepted=statistics_.accepted,
        tokens=statistics_.tokens,
        target_calls=statistics_.target_calls,
        same_text=results[True][0] == results[False][0],
    )


def summarize(measurements: list[Measurement], draft_length: int) -> dict[str, Any]:
    """Medians and totals. Positions where nothing was generated say nothing about speed and are left out."""
    used = [m for m in measurements if m.tokens >= 8]
    if not used:
        raise CodespecError("no position gave a completion of 8 tokens or more; name longer files")
    return {
        "positions": len(used),
        "draft_length": draft_length,
        "acceptance": round(sum(m.accepted for m in used) / max(1, sum(m.drafted for m in used)), 3),
        "tokens_per_target_call": round(sum(m.tokens for m in used) / sum(m.target_calls for m in used), 2),
        "ms_per_token_alone": round(statistics.median(m.alone_ms / m.tokens for m in used if m.same_text), 3),
        "ms_per_token_drafted": round(statistics.median(m.drafted_ms / m.tokens for m in used), 3),
        "speed_ratio": round(statistics.median(m.alone_ms / m.drafted_ms for m in used if m.same_text), 3),
        "same_text": sum(m.same_text for m in used),
    }
