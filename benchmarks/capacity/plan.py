"""``python -m benchmarks plan``: how many replicas of an engine a team needs."""

from __future__ import annotations

import argparse
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from benchmarks.capacity.planning import MOST, plan
from benchmarks.capacity.report import as_json, table, write
from benchmarks.capacity.sessions import Work
from benchmarks.capacity.simulation import EngineSettings
from codespec.cli import show
from codespec.draft.costs import CostCurve
from codespec.errors import CodespecError

LARGEST_FILE = 1 << 20
_REMEDY = "give profile.json of `python -m benchmarks profile --out DIR`"
RANGES: dict[str, tuple[float, float]] = {
    "slots": (1, 4096),
    "batch": (1, 65_536),
    "prefill": (0, 1e7),
    "cache": (0, 1_000_000),
    "draft": (0, 64),
    "accepted": (0, 64),
    "draft_ms": (0, 1e4),
    "sequence_ms": (0, 1e4),
    "overhead_ms": (0, 1e4),
    "late_cancel": (0, 1),
    "replicas": (1, MOST),
    "gpus": (1, 1024),
}
"""The least and the largest value of each setting of an engine."""


def run_plan(options: argparse.Namespace) -> int:
    """``python -m benchmarks plan``.

    Raises:
        CodespecError: no such curve, engine settings or numbers of developers, or ``--out`` cannot be written.
    """
    curve = read_curve(options.curve)
    engine = read_engine(options.engine)
    work = Work(options.prompt, options.reread, options.answer, options.memory, options.debounce, options.prefill)
    developers = [max(1, round(each * options.active)) for each in options.developers]
    fixed = any(part.split("=")[0].strip() == "replicas" for part in options.engine.split(","))
    tell = show.progress() or (lambda _what, _percent: None)
    rows = plan(curve, engine, work, developers, options.within, options.seed, tell, fixed, options.keys)
    settings: dict[str, Any] = {
        "developers": list(options.developers),
        "active": options.active,
        "within_ms": options.within,
        "seed": options.seed,
        "curve": curve.as_json(),
    }
    print(json.dumps(as_json(rows, settings)) if options.json else table(rows, options.within))
    if options.out is not None:
        try:
            write(options.out, rows, settings, options.within)
        except OSError as error:
            raise CodespecError(f"{options.out}: cannot be written ({error.strerror}); choose another --out") from error
    return 0


def read_curve(path: Path) -> CostCurve:
    """The cost curve in a file: a curve, or what ``benchmarks profile --out`` writes, whose target's it is then.

    Raises:
        CodespecError: there is none.
    """
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise CodespecError(f"{path}: too large for a cost curve; {_REMEDY}")
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise CodespecError(f"{path}: cannot be read ({error.strerror}); {_REMEDY}") from error
    except (ValueError, RecursionError):
        raise CodespecError(f"{path}: no JSON; {_REMEDY}") from None
    if isinstance(data, dict) and "target" in data:
        data = data["target"]
    try:
        return CostCurve.from_json({"switch_ms": 0.0, **data} if isinstance(data, dict) else data)
    except ValueError as error:
        raise CodespecError(f"{path}: {error}; {_REMEDY}") from error


def read_engine(text: str) -> EngineSettings:
    """The engine of ``KEY=VALUE,KEY=VALUE…``; what is not named is as ``EngineSettings`` has it.

    Raises:
        CodespecError: no such key, or no such value.
    """
    kinds = {each.name: int if each.type == "int" else float for each in fields(EngineSettings)}
    values: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if key not in kinds or not equals:
            raise CodespecError(f"--engine: {part!r} is no setting; give KEY=VALUE,… of {', '.join(kinds)}")
        values[key] = _value(key, value, kinds[key])
    engine = replace(EngineSettings(), **values)
    if engine.accepted > engine.draft:
        raise CodespecError(
            f"--engine: accepted={engine.accepted:g} of draft={engine.draft} proposed tokens is too many; "
            "set draft to what is proposed in a pass, or accepted to no more than that"
        )
    return engine


def _value(key: str, text: str, kind: type[int] | type[float]) -> float:
    least, most = RANGES[key]
    try:
        value = kind(text)
    except ValueError:
        value = kind(-1)
    if not least <= value <= most:
        what = "a whole number" if kind is int else "a number"
        raise CodespecError(f"--engine: {key}={text!r} must be {what} from {least:,g} to {most:,g}")
    return value
