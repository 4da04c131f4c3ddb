"""The figures of a run, as tables and as JSON."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.edit.replay import Outcome
from codespec.protocols import Statistics


def figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Counts, shares in per cent, and milliseconds."""
    shown = [each for each in outcomes if each.shown]
    work = Statistics()
    for each in outcomes:
        work.add(each.statistics)
    times = sorted(each.ms for each in outcomes)
    wanted = sum(each.wanted for each in outcomes)
    changed = sum(each.made for each in shown)
    return {
        "cases": len(outcomes),
        "exact": sum(each.exact for each in outcomes),
        "part": sum(each.part and not each.exact for each in outcomes),
        "shown": len(shown),
        "by": {name: [sum(each.exact for each in of), len(of)] for name, of in by(shown, lambda each: each.by).items()},
        "recall": _share(sum(each.right for each in outcomes), wanted),
        "precision": _share(sum(each.right for each in shown), changed),
        "exact before the gate": sum(each.raw == "exact" for each in outcomes),
        "kept after it": sum(each.raw == "exact" and each.shown and each.exact for each in outcomes),
        "kept back": dict(Counter(each.refused for each in outcomes if each.refused)),
        "undone": sum(each.undone for each in shown),
        "worse": sum(bool(each.errors) for each in shown),
        "outside": sum(each.outside for each in shown),
        "larger than needed": sum(each.large for each in shown),
        "white space": sum(each.space for each in shown),
        "median ms": round(statistics.median(times), 1) if times else 0.0,
        "95 % ms": round(times[int(0.95 * (len(times) - 1))], 1) if times else 0.0,
        "median CPU ms": round(statistics.median(each.cpu_ms for each in outcomes), 1) if outcomes else 0.0,
        "tokens a pass": round(work.tokens / max(1, work.target_calls), 2),
        "accepted": {name: [each.accepted, each.drafted] for name, each in work.by_source.items() if each.drafted},
    }


def by(outcomes: Iterable[Outcome], key: Callable[[Outcome], str]) -> dict[str, list[Outcome]]:
    """The outcomes of each kind or language, in order of names."""
    found: dict[str, list[Outcome]] = {}
    for each in outcomes:
        found.setdefault(key(each), []).append(each)
    return dict(sorted(found.items()))


COLUMNS = (
    "cases",
    "shown",
    "exact",
    "part",
    "recall",
    "precision",
    "undone",
    "worse",
    "outside",
    "median ms",
    "95 % ms",
    "median CPU ms",
)


def table(outcomes: Sequence[Outcome]) -> str:
    """A row for each kind in each language, for each kind, and for all."""
    rows = [
        *by(outcomes, lambda each: f"{each.kind} {each.language}").items(),
        *by(outcomes, lambda each: each.kind).items(),
        ("all", list(outcomes)),
    ]
    lines = [["", *COLUMNS]]
    for name, of in rows:
        found = figures(of)
        lines.append([name, *(str(found[column]) for column in COLUMNS)])
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    text = [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    whole = figures(outcomes)
    names = ("by", "exact before the gate", "kept after it", "kept back", "larger than needed", "white space",
             "tokens a pass", "accepted")  # fmt: skip
    return "\n".join([*text, *(f"{name}: {whole[name]}" for name in names)])


def write(out: Path, about: dict[str, Any], outcomes: Sequence[Outcome]) -> None:
    """``edit.json``: all figures; ``outcomes.jsonl``: every case."""
    out.mkdir(parents=True, exist_ok=True)
    kinds = {name: figures(of) for name, of in by(outcomes, lambda each: each.kind).items()}
    report = {**about, "all": figures(outcomes), "kinds": kinds}
    (out / "edit.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    lines = [json.dumps(asdict(each), ensure_ascii=False) + "\n" for each in outcomes]
    (out / "outcomes.jsonl").write_text("".join(lines), "utf-8")


def _share(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0
