"""What drafts save with a scoring engine beside its own stream, by the way there and back."""

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
from codespec.remote.streaming.streaming_engine import StreamingEngine


@dataclass
class Arm:
    """One way to generate the texts of a set.

    Attributes:
        round_trip_ms: of the way, as it was added.
        way: ``drafts``, with the engine's stream between them, as new users have it; or its ``stream`` alone.
        requests: that were sent, to find out more about single tokens, too.
    """

    round_trip_ms: float
    set: str
    way: str
    tokens: int = 0
    requests: int = 0
    accepted: int = 0
    seconds: float = 0.0

    @property
    def token_ms(self) -> float:
        """Milliseconds for a token of the text."""
        return self.seconds * 1e3 / max(1, self.tokens)


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
    print("| way there and back | set | tokens | requests, with drafts | ms a token: drafts | stream | share |")
    print("|---|---|---|---|---|---|---|")
    for way in ways_ms:
        with delayed(url, way) as address:
            for name in sets:
                found = _measure(address, kind, vocabulary, way, name, files, count, tokens)
                arms += found
                print(_line(*found), flush=True)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "round-trips.json").write_text(json.dumps([asdict(arm) for arm in arms], indent=1) + "\n", "utf-8")
    return 0


def _line(drafted: Arm, streamed: Arm) -> str:
    return (
        f"| {drafted.round_trip_ms:.0f} ms | {drafted.set} | {drafted.tokens} | "
        f"{drafted.requests} ({drafted.requests / drafted.tokens:.2f} a token) | {drafted.token_ms:.1f} | "
        f"{streamed.token_ms:.1f} | {drafted.token_ms / streamed.token_ms:.2f} |"
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
        engine.drafts.choose(engine.drafts.find("auto", by_id("python")))
        # Others at every distance: of what it was asked about, an engine has the answer in its cache.
        texts = prompts(engine, name, files, count, tokens, seed=1 + round(way))  # type: ignore[arg-type]
        drafts, stream = Arm(way, name, "drafts"), Arm(way, name, "stream")
        streaming = StreamingEngine(Connection(Address(url)), kind, vocabulary=vocabulary)
        try:
            for prompt in texts:
                replayed[0].text = None if prompt.known is None else [*prompt.tokens, *prompt.known]
                _generate(engine, connection, prompt, drafts, tokens)
                _stream(streaming, prompt, stream, tokens)
        finally:
            streaming.close()
        return drafts, stream
    finally:
        engine.close()


def _stream(engine: StreamingEngine, prompt: Prompt, arm: Arm, tokens: int) -> None:
    """The engine's own text, whatever it is: a token takes it as long in any."""
    engine.prefill(prompt.tokens)
    began = perf_counter()
    for _ in engine.generate(prompt.tokens, limits=Limits(max_tokens=tokens)):
        pass
    arm.seconds += perf_counter() - began
    arm.tokens += engine.statistics.tokens
    arm.requests += 1


def _generate(engine: ScoringEngine, connection: Connection, prompt: Prompt, arm: Arm, tokens: int) -> None:
    limits = Limits(max_tokens=min(tokens, len(prompt.known)) if prompt.known is not None else tokens)
    engine.drafts.forget_generated()
    engine.prefill(prompt.tokens)
    before, began = connection.trips, perf_counter()
    for chunk in engine.generate(prompt.tokens, prompt.state(engine), limits=limits):  # type: ignore[arg-type]
        assert chunk.round is not None
        arm.tokens += len(chunk.round.tokens)
        arm.accepted += chunk.round.accepted
    arm.seconds += perf_counter() - began
    arm.requests += connection.trips - before
