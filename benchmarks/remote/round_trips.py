"""How many requests drafts save with a scoring engine, and how much time, by the way there and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

from benchmarks.decode.prompts import Prompt, prompts
from benchmarks.decode.replay import ReplayTarget
from benchmarks.remote.delay import delayed
from codespec.languages import by_id
from codespec.protocols import Limits
from codespec.remote.address import Address
from codespec.remote.connection import Connection
from codespec.remote.scoring.scoring_engine import ScoringEngine


@dataclass
class Arm:
    """One way to generate the texts of a set.

    Attributes:
        round_trip_ms: of the way, as it was added.
        requests: that were sent, to find out more about single tokens, too.
    """

    round_trip_ms: float
    set: str
    drafts: bool
    tokens: int = 0
    requests: int = 0
    accepted: int = 0
    seconds: float = 0.0


def run(
    url: str,
    kind: str,
    vocabulary: Path,
    ways_ms: Sequence[float],
    sets: Sequence[str],
    files: Sequence[Path],
    count: int,
    tokens: int,
    out: Path | None,
) -> int:
    """Measure, and print a table."""
    arms: list[Arm] = []
    print("| way there and back | set | requests, one token at a time | with drafts | share | time, share |")
    print("|---|---|---|---|---|---|")
    for way in ways_ms:
        with delayed(url, way) as address:
            for name in sets:
                pair = _measure(address, kind, vocabulary, way, name, files, count, tokens)
                arms += pair
                print(_line(*pair), flush=True)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "round-trips.json").write_text(json.dumps([asdict(arm) for arm in arms], indent=1) + "\n", "utf-8")
    return 0


def _line(alone: Arm, drafted: Arm) -> str:
    return (
        f"| {alone.round_trip_ms:.0f} ms | {alone.set} | {alone.requests} for {alone.tokens} tokens | "
        f"{drafted.requests} for {drafted.tokens} | {drafted.requests / alone.requests:.2f} | "
        f"{drafted.seconds / alone.seconds:.2f} ({alone.seconds:.1f} s → {drafted.seconds:.1f} s) |"
    )


def _measure(
    url: str, kind: str, vocabulary: Path, way: float, name: str, files: Sequence[Path], count: int, tokens: int
) -> tuple[Arm, Arm]:
    replayed: list[ReplayTarget] = []

    def wrap(target, role):  # type: ignore[no-untyped-def]
        if role != "target":
            return target
        replayed.append(ReplayTarget(target))
        return replayed[0]

    connection = Connection(Address(url))
    engine = ScoringEngine(connection, kind, vocabulary, wrap=wrap)
    try:
        engine.measure(lambda: True)
        engine.use_draft(engine.find_draft("auto", by_id("python")))
        texts = prompts(engine, name, files, count, tokens, seed=1)  # type: ignore[arg-type]
        arms = Arm(way, name, False), Arm(way, name, True)
        for prompt in texts:
            for arm in arms:
                replayed[0].text = None if prompt.known is None else [*prompt.tokens, *prompt.known]
                _generate(engine, connection, prompt, arm, tokens)
        return arms
    finally:
        engine.close()


def _generate(engine: ScoringEngine, connection: Connection, prompt: Prompt, arm: Arm, tokens: int) -> None:
    limits = Limits(max_tokens=min(tokens, len(prompt.known)) if prompt.known is not None else tokens)
    engine.forget_generated()
    engine.prefill(prompt.tokens)
    before, began = connection.trips, perf_counter()
    for chunk in engine.generate(prompt.tokens, prompt.state(engine), limits=limits, speculate=arm.drafts):  # type: ignore[arg-type]
        assert chunk.round is not None
        arm.tokens += len(chunk.round.tokens)
        arm.accepted += chunk.round.accepted
    arm.seconds += perf_counter() - began
    arm.requests += connection.trips - before
