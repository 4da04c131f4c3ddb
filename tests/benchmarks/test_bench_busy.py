"""What a token takes while other programs compute."""

from __future__ import annotations

import json
import os
from pathlib import Path

import psutil

from benchmarks.decode.busy import run
from codespec.models.registry import EMBEDDED_TARGET


def test_every_load_with_and_without_drafts(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    files = [Path(__file__).parents[2] / "codespec" / "completion"]
    assert run(EMBEDDED_TARGET, files, 1, f"echo x >> {marker}; sleep 0.2", tmp_path) == 0
    rows = json.loads((tmp_path / "busy.json").read_text())
    assert len(rows) == 4 * 3 * 3
    assert all(value > 0 for row in rows for key in ("idle", "busy") for value in row[key])
    assert marker.read_text().count("x") > 1
    left = [each.info["cmdline"] for each in psutil.process_iter(["cmdline"]) if each.pid != os.getpid()]
    assert not any(str(marker) in " ".join(command or ()) for command in left)
