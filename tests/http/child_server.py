"""A server in a process of its own, whose memory, descriptors and log can be looked at."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from typing_extensions import Self

ROOT = Path(__file__).resolve().parents[2]
WRONG = re.compile(r"^(ERROR|CRITICAL)\b|Traceback|^Exception ignored|never (awaited|retrieved)", re.MULTILINE)
"""What must not be in a log."""


class ChildServer:
    """Serves from ``__enter__`` to ``__exit__``.

    Args:
        target: a GGUF file; empty for the embedded model.
        limits: fields of ``HttpLimits``.
        keys: that clients may give; none: no key is wanted.
        debug: whether all that any package logs is logged.

    Attributes:
        host: that it listens on.
        port: that it listens on.
    """

    host = "127.0.0.1"

    def __init__(
        self,
        target: Path | str = "",
        limits: dict[str, float] | None = None,
        keys: Sequence[str] = (),
        debug: bool = False,
    ) -> None:
        self._command = [sys.executable, "-m", "tests.http.serve", "--target", str(target)]
        self._command += ["--limits", json.dumps(limits or {}), *(f"--key={key}" for key in keys)]
        self._command += ["--debug"] * debug
        self.port = 0

    def __enter__(self) -> Self:
        self._log = tempfile.TemporaryFile()
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        self._child = subprocess.Popen(
            self._command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, env=environment
        )
        try:
            self.port = int(self._wait_for(r"listening on http://[^ ]*:(\d+)")[1])
            self._wait_for("the model is loaded")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._child.terminate()
        try:
            self._child.wait(30)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._log.close()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        """Its process."""
        return self._child.pid

    @property
    def status(self) -> int | None:
        """The exit status; None while it runs."""
        return self._child.poll()

    def log(self) -> str:
        """All that it has written."""
        # The child writes where this file is read: with ``seek`` it would write over what it has written.
        return os.pread(self._log.fileno(), os.fstat(self._log.fileno()).st_size, 0).decode("utf-8", "replace")

    def complaints(self) -> list[str]:
        """What a log must not hold."""
        log = self.log()
        return [log[max(0, hit.start() - 80) : hit.end() + 400] for hit in WRONG.finditer(log)]

    def _wait_for(self, pattern: str, seconds: float = 120) -> re.Match[str]:
        end = time.monotonic() + seconds
        while (found := re.search(pattern, self.log())) is None:
            if self.status is not None or time.monotonic() > end:
                raise RuntimeError(f"no server (status {self.status}): {self.log()[-2000:]}")
            time.sleep(0.05)
        return found
