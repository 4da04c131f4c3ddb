"""llama.cpp's own server with the embedded target, for tests; ``make llama-server`` builds it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codespec.models.registry import EMBEDDED_TARGET

VARIABLE = "CODESPEC_LLAMA_SERVER"
BUILT = Path(__file__).parents[2] / ".venv" / "llama-tools" / "build" / "bin" / "llama-server"
MISSING = f"no llama-server: `make llama-server` builds it, or {VARIABLE} names one"
START_S = 60.0


def binary() -> Path | None:
    """The program, None where there is none."""
    found = Path(os.environ.get(VARIABLE) or BUILT)
    return found if found.is_file() else None


needs_server = pytest.mark.tools


@dataclass
class RunningServer:
    """A llama-server on loopback."""

    url: str

    def get(self, path: str) -> Any:
        """The JSON at a path, or its text."""
        with urllib.request.urlopen(self.url + path, timeout=5) as answer:
            data = answer.read()
        try:
            return json.loads(data)
        except ValueError:
            return data.decode()

    def busy(self) -> bool:
        """Whether any slot works on a request."""
        return any(slot["is_processing"] for slot in self.get("/slots"))


@contextlib.contextmanager
def running(*options: str, model: Path = EMBEDDED_TARGET, context: int = 4096) -> Iterator[RunningServer]:
    """A server that runs, with one slot; the test is skipped where there is none."""
    program = binary()
    if program is None:
        pytest.skip(MISSING)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    fixed = ("-m", str(model), "-c", str(context), "-np", "1", "--port", str(port), "--host", "127.0.0.1")
    command: Sequence[str] = (str(program), *fixed, "-t", "2", "--slots", "--log-disable", *options)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = RunningServer(f"http://127.0.0.1:{port}")
    try:
        _wait(server, process)
        yield server
    finally:
        process.terminate()
        process.wait(10)


def _wait(server: RunningServer, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_S
    while True:
        assert process.poll() is None, f"llama-server ended with {process.returncode}"
        with contextlib.suppress(OSError, urllib.error.HTTPError):
            server.get("/health")
            return
        assert time.monotonic() < end, "llama-server does not answer"
        time.sleep(0.05)
