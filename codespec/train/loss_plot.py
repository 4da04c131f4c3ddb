"""The loss of a training run as a chart, drawn from its log."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from codespec.plot import lines

POINTS = 500
"""Of a line at most."""


def announce(folder: Path) -> None:
    """Say on stderr where ``draw`` will draw."""
    print(f"the loss as it falls: {folder / 'loss.svg'}", file=sys.stderr, flush=True)


def draw(folder: Path) -> None:
    """Write ``loss.svg`` beside the ``log.jsonl`` of a run: its loss and the factor of its learning rates over the
    tokens seen; nothing where the log is empty."""
    entries = list(_entries(folder / "log.jsonl"))
    if not entries:
        return
    entries = entries[:: -(-len(entries) // POINTS)]
    found = [
        (name, [(each["tokens"] / 1e6, each[key]) for each in entries if key in each], key == "rate")
        for name, key in (("loss", "loss"), ("learning rate / peak", "rate"))
    ]
    text = lines(f"{folder.name}: loss", "million tokens", "nats a token", [each for each in found if each[1]])
    temporary = folder / "loss.svg.tmp"
    temporary.write_text(text, "utf-8")
    temporary.replace(folder / "loss.svg")


def _entries(log: Path) -> Iterator[dict[str, Any]]:
    for line in log.read_text("utf-8").splitlines() if log.exists() else ():
        with suppress(ValueError):  # the last line of a run that was killed
            yield json.loads(line)
