"""Progress of a child process of codespec's own, told to the process that started it: JSON lines on standard error."""

from __future__ import annotations

import json
import os
import sys

VARIABLE, FORM = "CODESPEC_PROGRESS", "json"
"""The environment variable of a child whose parent reads progress, and its value."""


def is_read() -> bool:
    """Whether the process that started this one reads progress."""
    return os.environ.get(VARIABLE) == FORM


def tell(step: str, share: float) -> None:
    """Tell how far a step is, from 0 to 1."""
    print(json.dumps({"step": step, "share": round(share, 4)}), file=sys.stderr, flush=True)


def heard(line: str) -> tuple[str, float] | None:
    """Step and share of a line that a child has written; None where it is something else."""
    if not line.startswith('{"step": '):
        return None
    try:
        found = json.loads(line)
        return str(found["step"]), min(1.0, max(0.0, float(found["share"])))
    except (ValueError, KeyError, TypeError):
        return None
