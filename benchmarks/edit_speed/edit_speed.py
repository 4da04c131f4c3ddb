"""The command: edits replayed at the cost of a large model, by codespec's drafts and by llama.cpp's n-gram modes."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

from benchmarks.decode.decode import load_curve
from benchmarks.edit.case import Case, read_cases
from benchmarks.edit.git_cases import git_cases
from benchmarks.edit_speed import report
from benchmarks.edit_speed.arms import ARMS, Bench, Sample
from benchmarks.edit_speed.cases import Tokens, chosen
from benchmarks.edit_speed.peers import Peers, selected, title
from benchmarks.edit_speed.replay_model import ReplayModel, Shape
from benchmarks.progress import Say, progress
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import CodespecError

SMALL = Shape(layers=1, width=256, ffn=256, heads=4, kv_heads=1)
"""Of the model that decodes where time is modelled."""


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes:
        files, folders: of cases: JSON lines, and git repositories.
        model: where the model file is written, and found again; None: in a temporary folder.
        costs: a cost curve that the time of passes is taken from; None: the clock.
        peers: the folder of llama.cpp's programs; None leaves them out.
        peer_settings: see ``selected``.
    """

    files: Sequence[Path]
    folders: Sequence[Path]
    count: int = 60
    seed: int = 1
    threads: int = 0
    model: Path | None = None
    costs: Path | None = None
    peers: Path | None = None
    peer_settings: str = ""
    out: Path | None = None


def run(plan: Plan) -> int:
    """Measure, print a table, write ``edit-speed.json`` under ``out``.

    Raises:
        CodespecError: no cases, something cannot be read, or a program wrote another text than it should.
    """
    say, settings = progress(), selected(plan.peer_settings) if plan.peers is not None else []
    found = [case for case in _cases(plan) if case.kind != "none"]
    random.Random(plan.seed).shuffle(found)
    with ExitStack() as stack:
        path = plan.model or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "replay.gguf"
        curve = load_curve(plan.costs) if plan.costs is not None else None
        model = ReplayModel(EMBEDDED_TARGET, path, SMALL if curve is not None else None)
        bench = stack.enter_context(closing(Bench(model, curve, plan.threads)))
        cases = chosen(found, plan.count, bench.engine.vocabulary)
        if not cases:
            raise CodespecError("no cases; name a file with --cases or a repository with --git")
        peers = None
        if plan.peers is not None:
            threads = bench.engine.threads
            peers = stack.enter_context(closing(Peers(plan.peers, path, settings, threads, curve is not None)))
        samples = measured(bench, peers, cases, plan.seed, say)
        summary = {
            "modelled": curve is not None,
            "costs": {rows: round(bench.engine.costs.kept(0)[rows], 2) for rows in (1, 2, 4, 8, 16, 33)},
            **report.summarize(cases, samples, bench.curve),
        }
    say("")
    print("\n".join(report.table(summary)))
    if plan.out is not None:
        plan.out.mkdir(parents=True, exist_ok=True)
        rows = [
            {
                "kind": case.case.kind,
                "path": case.case.path,
                **{name: asdict(each[n]) for name, each in samples.items()},
            }
            for n, case in enumerate(cases)
        ]
        text = json.dumps({**summary, "samples": rows}, indent=1)
        (plan.out / "edit-speed.json").write_text(text + "\n", "utf-8")
    return 0


def _cases(plan: Plan) -> list[Case]:
    return list(chain.from_iterable([*map(read_cases, plan.files), *map(git_cases, plan.folders)]))


def measured(
    bench: Bench, peers: Peers | None, cases: Sequence[Tokens], seed: int, say: Say
) -> dict[str, list[Sample]]:
    """Every arm and every peer on each case in turn, in an order of its own for each case."""
    order = random.Random(seed)
    samples: dict[str, list[Sample]] = {arm: [] for arm in ARMS}
    samples |= {title(each.setting): [] for each in (peers.peers if peers is not None else [])}
    for number, case in enumerate(cases, 1):
        say(f"edit {number}/{len(cases)}: {case.case.kind}, {case.case.path}")
        bench.prepare(case)
        names = list(samples)
        order.shuffle(names)
        for name in names:
            if name in ARMS:
                samples[name].append(bench.run(case, name))
            elif peers is not None:
                peer = next(each for each in peers.peers if title(each.setting) == name)
                samples[name].append(_of_peer(bench, peers.run(peer, case)))
    return samples


def _of_peer(bench: Bench, sample: Sample) -> Sample:
    """The sample of a peer, at the modelled costs where time is modelled."""
    if not bench.modelled:
        return sample
    tokens = sum(sample.passes) - sum(drafted - accepted for drafted, accepted in sample.by_source.values())
    return Sample(bench.passes_ms(sample.passes) / max(1, tokens), sample.passes, sample.by_source)
