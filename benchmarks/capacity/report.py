"""What ``python -m benchmarks plan`` prints and writes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.capacity.planning import Answer, Row
from benchmarks.plot import Line, lines

TOO_LONG_MS = 2_000.0
"""Longer than most developers wait before the next key."""


def table(rows: Sequence[Row], within: float | None) -> str:
    """The waits by developers, and what each change is worth."""
    given = rows[0]
    out = [
        f"{'developers':>10}{'replicas':>10}{'GPUs':>8}{'median':>10}{'95 %':>10}{'answered':>10}{'memory':>8}"
        f"{'requests/s':>12}{'busy':>6}"
    ]
    for index, each in enumerate(given.answers):
        note = ""
        if within and given.needed[index] is None:
            note = f"   no number of replicas gives {within:g} ms"
        out.append(
            f"{each.developers:10,}{each.replicas:10,}{each.gpus:8,}{_ms(each.ms[0]):>10}{_ms(each.ms[1]):>10}"
            f"{each.answered:10.0%}{each.memory:8.0%}{each.requests:12,.0f}{each.busy:6.0%}{note}"
        )
    return "\n".join([*out, "", *_changes(rows, within)])


def _changes(rows: Sequence[Row], within: float | None) -> list[str]:
    last = rows[0].answers[-1]
    where = f"{last.developers:,} developers on {last.replicas:,} replica{'s' * (last.replicas != 1)}"
    title = f"{'one thing at a time':28}{'median':>10}{'95 %':>10}"
    counts = [each.developers for each in rows[0].answers]
    if within:
        title += "   replicas for " + ", ".join(f"{n:,}" for n in counts)
    out = [f"{where}; the same with one thing different:", title]
    for row in rows:
        median, most = row.answers[-1].ms
        line = f"{row.change.name:28}{_ms(median):>10}{_ms(most):>10}"
        if within:
            line += "   " + ", ".join("none suffice" if each is None else f"{each:,}" for each in row.needed)
        out.append(line)
    return out


def _ms(value: float) -> str:
    """Milliseconds; what nobody ever waited for has no number."""
    if math.isnan(value):
        return "–"
    return f"{value:,.0f} ms" if math.isfinite(value) else "too long"


def as_json(rows: Sequence[Row], settings: Mapping[str, Any]) -> dict[str, Any]:
    """For ``plan.json``; ``null`` stands for waits that are too long to tell."""
    return {
        **settings,
        "rows": [
            {
                "name": row.change.name,
                "engine": asdict(row.change.engine),
                "work": asdict(row.change.work),
                "answers": [_answer(each) for each in row.answers],
                "replicas_needed": row.needed,
                "one_replica": [
                    {"developers": load, "median_ms": _finite(ms[0]), "p95_ms": _finite(ms[1])}
                    for load, ms in row.loads
                ],
            }
            for row in rows
        ],
    }


def _answer(each: Answer) -> dict[str, Any]:
    found = {key: round(value, 4) if isinstance(value, float) else value for key, value in asdict(each).items()}
    del found["ms"]
    return {**found, "median_ms": _finite(each.ms[0]), "p95_ms": _finite(each.ms[1])}


def _finite(value: float) -> float | None:
    return round(value, 2) if math.isfinite(value) else None


def picture(rows: Sequence[Row], within: float | None) -> str:
    """An SVG: what developers wait, by how many there are on one replica."""
    drawn: list[Line] = []
    for index, name in enumerate(("median", "95 %")):
        points = [(float(load), ms[index]) for load, ms in rows[0].loads if math.isfinite(ms[index])]
        drawn += [(name, points, False)] if points else []
    end = max((x for _, points, _ in drawn for x, _ in points), default=1.0)
    if within:
        drawn.append((f"{within:g} ms", [(0.0, within), (end, within)], True))
    elif not drawn:
        drawn.append(("too long to tell", [(0.0, TOO_LONG_MS), (end, TOO_LONG_MS)], True))
    return lines("Milliseconds from request to answer", "developers on one replica", "ms", drawn)


def write(out: Path, rows: Sequence[Row], settings: Mapping[str, Any], within: float | None) -> None:
    """``plan.json`` and ``plan.svg``.

    Raises:
        OSError: one cannot be written.
    """
    out.mkdir(parents=True, exist_ok=True)
    (out / "plan.json").write_text(json.dumps(as_json(rows, settings), indent=1) + "\n", "utf-8")
    (out / "plan.svg").write_text(picture(rows, within), "utf-8")
