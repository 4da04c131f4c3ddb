"""The report of a completion, beside its text."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from codespec.protocols import Statistics


def report_of(s: Statistics, grammar: str, gate: str, draft: Path | None, target: str) -> dict[str, Any]:
    """The fields of ``--json`` other than text and finish reason."""
    return {
        "tokens": s.tokens,
        "target_calls": s.target_calls,
        "drafted": s.drafted,
        "accepted": s.accepted,
        "by_source": {name: asdict(count) for name, count in s.by_source.items()},
        "prefill_tokens": s.prefill_tokens,
        "reused_tokens": s.reused_tokens,
        "grammar": grammar,
        "gate": gate,
        "draft": draft_name(draft),
        "target": target,
        "timings_ms": {
            name: round(getattr(s, f"{name}_ms"), 3) for name in ("prefill", "draft", "verify", "grammar", "total")
        },
    }


def draft_name(path: Path | None) -> str:
    """The name of a draft model; ``none`` without one, where n-grams and forced text still draft."""
    return path.stem if path else "none"
