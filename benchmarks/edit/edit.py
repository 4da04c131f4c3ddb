"""The command: cases from files and repositories, one model, one table."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from benchmarks.edit import report
from benchmarks.edit.case import read_cases
from benchmarks.edit.git_cases import git_cases
from benchmarks.edit.replay import chosen, replayed
from benchmarks.progress import progress
from codespec.edits.predictor import EditPredictor
from codespec.engine.local import LocalEngine
from codespec.protocols import CodespecError


def run(
    model: Path, files: list[Path], folders: list[Path], count: int, seed: int, budget_ms: float, threads: int,
    out: Path | None, show: int, renames: bool = True,
) -> int:  # fmt: skip
    """Replay cases, print a table, write ``edit.json`` and ``outcomes.jsonl`` under ``out``.

    Args:
        count: cases of each kind and language at most; 0: all.
        budget_ms: for each answer.
        show: how many offers that are not exact are printed.
        renames: as for ``EditPredictor``.

    Raises:
        CodespecError: no cases, a file or the model cannot be read.
    """
    read = chain.from_iterable([*(read_cases(path) for path in files), *(git_cases(path) for path in folders)])
    cases = chosen(read, count, seed)
    if not cases:
        raise CodespecError("no cases; name files with --cases or a repository with --git")
    say = progress()
    engine = LocalEngine(model, threads=threads)
    try:
        engine.measure(lambda: True)
        predictor = EditPredictor(engine, renames=renames)
        predictor.predict(cases[0].request(60_000.0))  # what is loaded with the first request
        outcomes = list(replayed(predictor, cases, budget_ms, say))
        say("")
    finally:
        engine.close()
    print(f"{model.name}, {predictor.format.name}, {len(cases)} cases, budget {budget_ms:g} ms, seed {seed}")
    print(report.table(outcomes))
    wrong = [(case, each) for case, each in zip(cases, outcomes, strict=True) if each.shown and not each.exact]
    for case, each in wrong[:show]:
        print(f"\n{each.kind} {each.path}: {each.why}")
        for recent in case.recent[-1:]:
            print(f"  typed   {recent.before!r} -> {recent.after!r}")
        for edit in each.edits:
            line = case.text[case.text.rfind("\n", 0, edit.start) + 1 : edit.end]
            print(f"  offered {line!r}: {case.text[edit.start : edit.end]!r} -> {edit.text!r}")
    if out is not None:
        report.write(out, {"model": str(model), "budget_ms": budget_ms, "seed": seed}, outcomes)
        print(f"wrote edit.json and outcomes.jsonl to {out}")
    return 0
