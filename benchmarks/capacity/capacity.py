"""``python -m benchmarks capacity``: what ``plan`` predicts against what a real ``llama-server`` does.

The same developers press the same keys at the same times in the simulation and in front of the server. The server's
costs are measured through it before and after each run, on its otherwise idle slots, so that a machine that others use,
too, is as slow in the prediction as it is in the run; with ``--curve`` they are those of a file.
"""

from __future__ import annotations

import asyncio
import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.capacity.clients import LONGEST_ANSWER, TYPED, ask, body, type_keys
from benchmarks.capacity.planning import SHARES
from benchmarks.capacity.sessions import Work, draw
from benchmarks.capacity.simulation import EngineSettings, pass_costs, simulate
from benchmarks.capacity.waits import Waits, percentiles, together
from benchmarks.decode.llama_cpp import environment
from benchmarks.llama_server import Server
from codespec.draft.costs import CostCurve
from codespec.errors import CodespecError

SIZES = (1, 2, 4, 8, 16, 33)
REPEATS, LEAST_REPEATS = 7, 2
CALIBRATION_S = 6.0
"""After which no further repeat of a calibration begins."""
TIMEOUT_S = 120.0
PAUSE_S = 0.15
BAR = 0.25
"""The error of a percentile that is still good enough."""


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes:
        clients: how many developers there are, each number apart.
        seconds: of each run with four clients or more; with fewer it is longer, for as many requests.
        repeats: of each number, with other seeds.
        curve: None measures the server.
    """

    server: Path
    target: Path
    clients: Sequence[int]
    slots: int
    threads: int
    seconds: float
    repeats: int
    work: Work
    seed: int
    spin: int | None = None
    curve: CostCurve | None = None
    out: Path | None = None


def run(plan: Plan, say: Callable[[str], None]) -> int:
    """Measure, print a table, write ``capacity.json`` under ``plan.out``; 1 where the bar is missed.

    Raises:
        CodespecError: the server cannot be started, or failed.
    """
    context = plan.work.prompt + TYPED + LONGEST_ANSWER + 8
    line = [str(plan.server), "--model", str(plan.target), "--parallel", str(plan.slots), "--no-ui"]
    line += ["--ctx-size", str(plan.slots * context), "--threads", str(plan.threads), "--threads-batch"]
    line += [str(plan.threads), "--no-kv-unified"]
    print(f"{'clients':>7}{'run':>4}{'requests':>9}{'answered':>16}{'median':>19}{'95 %':>19}  CPU waited for, T(1)")
    try:
        with Server(line, environment(plan.spin), TIMEOUT_S) as server:
            ids = server.ask("/tokenize", {"content": _text()})["tokens"]
            found = [
                _one(plan, server.port, clients, repeat, ids, say)
                for clients in plan.clients
                for repeat in range(plan.repeats)
            ]
    except (RuntimeError, OSError) as error:
        raise CodespecError(f"{plan.server}: {error}") from None
    errors = summary(found)
    for clients, each in errors.items():
        print(f"{clients} clients: error of the median {each['median']:+.0%}, of 95 % {each['p95']:+.0%}")
    if plan.out is not None:
        plan.out.mkdir(parents=True, exist_ok=True)
        settings = {"slots": plan.slots, "threads": plan.threads, "seconds": plan.seconds, "work": asdict(plan.work)}
        data = {**settings, "target": plan.target.name, "errors": errors, "runs": [each for each, _, _ in found]}
        (plan.out / "capacity.json").write_text(json.dumps(data, indent=1) + "\n", "utf-8")
        print(f"wrote capacity.json to {plan.out}")
    return int(any(abs(value) > BAR for each in errors.values() for value in each.values()))


def _text() -> str:
    """Real text to make prompts of: this package's own."""
    import codespec

    files = sorted(Path(codespec.__file__).parent.rglob("*.py"))
    return "".join(path.read_text("utf-8") for path in files)[:400_000]


def _one(
    plan: Plan, port: int, clients: int, repeat: int, ids: Sequence[int], say: Callable[[str], None]
) -> tuple[dict[str, Any], Waits, Waits]:
    """One run and its prediction: figures, and the waits of both."""
    say(f"{clients} clients, run {repeat + 1} of {plan.repeats}")
    seed = plan.seed + repeat
    seconds = plan.seconds * max(1.0, 4 / clients)
    keys = draw(clients, seconds, plan.work, seed)
    keys = keys._replace(answer=keys.answer.clip(max=LONGEST_ANSWER))
    before, waited = asyncio.run(_calibrate(port, plan.work.prompt, plan.slots, ids)), _waited()
    began = perf_counter()
    measured = asyncio.run(type_keys(port, keys, seconds, plan.work, ids))
    waited = (_waited() - waited) / (perf_counter() - began)
    after = asyncio.run(_calibrate(port, plan.work.prompt, plan.slots, ids))
    between = tuple((a + b) / 2 for a, b in zip(before[0], after[0], strict=True))
    curve = plan.curve or CostCurve((0,), SIZES, (between,))
    outside, sequence = ((a + b) / 2 for a, b in zip(before[1:], after[1:], strict=True))
    engine = EngineSettings(slots=plan.slots, cache=1000, overhead_ms=outside, sequence_ms=sequence, late_cancel=1)
    costs = pass_costs(curve, engine, plan.work.prompt)
    predicted = simulate(keys, seconds, plan.work, engine, costs, curve.switch_ms)
    say("")
    pairs = list(zip(percentiles(predicted.waits, *SHARES), percentiles(measured.waits, *SHARES), strict=True))
    shares = predicted.waits.answered_share, measured.waits.answered_share
    print(
        f"{clients:7}{repeat + 1:4}{len(measured.ms):9}{f'{shares[0]:.0%} / {shares[1]:.0%}':>16}"
        + "".join(f"{f'{p:.1f} / {m:.1f}':>19}" for p, m in pairs)
        + f"  {waited:.0%}, {before[0][0]:.2f} and {after[0][0]:.2f} ms",
        flush=True,
    )
    figures = {
        "clients": clients,
        "seed": seed,
        "requests": len(measured.ms),
        "answered": {"predicted": shares[0], "measured": shares[1]},
        "median_ms": {"predicted": pairs[0][0], "measured": pairs[0][1]},
        "p95_ms": {"predicted": pairs[1][0], "measured": pairs[1][1]},
        "curve": curve.as_json(),
        "t1_ms": [before[0][0], after[0][0]],
        "overhead_ms": engine.overhead_ms,
        "sequence_ms": engine.sequence_ms,
        "busy": predicted.busy,
        "cpu_waited": waited,
        "clients_late_ms": measured.late_ms,
    }
    return figures, predicted.waits, measured.waits


async def _calibrate(port: int, context: int, slots: int, ids: Sequence[int]) -> tuple[tuple[float, ...], float, float]:
    """Milliseconds of passes over ``SIZES`` tokens, of a request outside them, and of each further request in a pass:
    medians.

    The pass over one token is that of a stream, with all that the server does for each token; larger ones are prompts
    of which all but so many tokens are cached. A request for one token behind a cached prompt takes such a pass and
    what is outside; it comes after a pause, as a typist's do, in which the machine has turned to other things.
    """
    taken: dict[int, list[float]] = {size: [] for size in SIZES}
    outside = []
    since = perf_counter()
    for repeat in range(REPEATS):
        if repeat >= LEAST_REPEATS and perf_counter() - since > CALIBRATION_S:
            break
        await ask(port, body(ids[:context], 1))
        for size in SIZES:
            new = ids[context + (repeat * 97 + size * 13) : context + (repeat * 97 + size * 13) + size]
            await asyncio.sleep(PAUSE_S if size == 1 else 0.0)
            began = perf_counter()
            timings = (await ask(port, body([*ids[:context], *new], 1)))["timings"]
            if size == 1:
                outside.append((perf_counter() - began) * 1e3)
            elif timings["prompt_n"] == size:
                taken[size].append(timings["prompt_ms"])
        timings = (await ask(port, body(ids[:context], 24)))["timings"]
        taken[1].append(timings["predicted_ms"] / max(1, timings["predicted_n"] - 1))
    missing = [size for size, each in taken.items() if not each]
    if missing:
        raise CodespecError(f"llama-server read other numbers of tokens than {missing}: its cache holds no prefix?")
    row = tuple(statistics.median(each) for each in taken.values())
    return row, max(0.0, statistics.median(outside) - row[0]), await _sequence_ms(port, context, slots, ids, row)


async def _sequence_ms(port: int, context: int, slots: int, ids: Sequence[int], row: Sequence[float]) -> float:
    """What a pass over a token of each slot takes longer than one over as many tokens of one, for each further slot."""
    if slots == 1:
        return 0.0
    prompts = [ids[start * context : (start + 1) * context] for start in range(slots)]
    taken: list[float] = []
    since = perf_counter()
    while len(taken) < REPEATS and (len(taken) < LEAST_REPEATS or perf_counter() - since < CALIBRATION_S):
        await asyncio.gather(*(ask(port, body(prompt, 1)) for prompt in prompts))
        answers = await asyncio.gather(*(ask(port, body(prompt, 24)) for prompt in prompts))
        taken.append(statistics.median(each["timings"]["predicted_ms"] / 23 for each in answers))
    alone = CostCurve((0,), SIZES, (tuple(row),)).at(0)[min(slots, SIZES[-1])]
    return max(0.0, (float(statistics.median(taken)) - alone) / (slots - 1))


def _waited() -> float:
    """Seconds in which some program wanted a CPU and had none, as Linux counts them; 0.0 where nothing does."""
    try:
        first = Path("/proc/pressure/cpu").read_text("ascii").split("\n")[0]
        return int(first.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError):
        return 0.0


def summary(runs: Sequence[tuple[dict[str, Any], Waits, Waits]]) -> dict[str, dict[str, float]]:
    """By clients: how far the predicted percentiles are from the measured ones, over the requests of all runs."""
    found: dict[str, dict[str, float]] = {}
    for clients in dict.fromkeys(each["clients"] for each, _, _ in runs):
        own = [each for each in runs if each[0]["clients"] == clients]
        predicted = percentiles(together([(each, 1.0) for _, each, _ in own]), *SHARES)
        measured = percentiles(together([(each, 1.0) for _, _, each in own]), *SHARES)
        found[str(clients)] = {
            name: p / m - 1.0 for name, p, m in zip(("median", "p95"), predicted, measured, strict=True)
        }
    return found
