"""The table of a run."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.infill.outcome import Outcome

COLUMNS = {
    "exact": "exact",
    "similarity": "similar",
    "parses": "parses",
    "passes": "passes",
    "first_line_passes": "first line passes",
    "empty": "empty",
    "median_ms": "ms, median",
    "late_ms": "ms, 95 %",
}


def figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Counts, shares from 0 to 1, and times."""
    times = sorted(each.ms for each in outcomes)
    return {
        "places": len(outcomes),
        "exact": _share(each.exact for each in outcomes),
        "similarity": round(statistics.mean(each.similarity for each in outcomes), 3) if outcomes else None,
        "parses": _share(each.parses for each in outcomes),
        "passes": _share(each.passes for each in outcomes),
        "first_line_passes": _share(each.first_line_passes for each in outcomes),
        "tested": sum(each.passes is not None for each in outcomes),
        "empty": _share(each.empty for each in outcomes),
        "median_ms": round(statistics.median(times), 1) if times else None,
        "late_ms": round(times[min(len(times) - 1, int(0.95 * len(times)))], 1) if times else None,
    }


def _share(values: Iterable[bool | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 4) if known else None


def groups(outcomes: Sequence[Outcome]) -> dict[tuple[str, str, str], list[Outcome]]:
    """The outcomes by language, kind and cursor, then those of each kind in all languages, where there are several, and
    all: not where places are there with both cursors."""
    found: dict[tuple[str, str, str], list[Outcome]] = {}
    for each in outcomes:
        found.setdefault((each.language, each.kind, each.cursor), []).append(each)
    found = dict(sorted(found.items()))
    if len({each.language for each in outcomes}) > 1:
        for each in outcomes:
            found.setdefault(("all", each.kind, each.cursor), []).append(each)
    if len(found) > 1 and not {"start", "indentation"} <= {each.cursor for each in outcomes}:
        found["all", "all", ""] = list(outcomes)
    return found


def table(arms: Mapping[str, Sequence[Outcome]]) -> str:
    """Markdown: a row for each arm, language, kind and cursor."""
    head = ["arm", "language", "kind", "cursor", "places", *COLUMNS.values()]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for arm, outcomes in arms.items():
        for key, of in groups(outcomes).items():
            found = figures(of)
            cells = [arm, *key, str(found["places"]), *(_cell(name, found[name]) for name in COLUMNS)]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "–"
    if name.endswith("_ms"):
        return f"{value:.0f}"
    return f"{value:.2f}" if name == "similarity" else f"{100 * value:.1f} %"
