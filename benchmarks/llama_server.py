"""A ``llama-server`` of one's own on a free port, ended whatever happens."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPConnection
from typing import Any

PAUSE = 0.05  # seconds between two looks whether it is ready


class Server:
    """A child process that answers from ``__enter__`` to ``__exit__``.

    Args:
        line: the command without ``--host`` and ``--port``, or what gives the whole command for a port.
        environment: the child's.
        timeout: seconds, to load and for each answer.

    Raises:
        RuntimeError: from ``__enter__``: it ended, or was not ready in time.
    """

    def __init__(
        self,
        line: Sequence[str] | Callable[[int], Sequence[str]],
        environment: Mapping[str, str],
        timeout: float,
    ) -> None:
        self._environment = environment
        self._timeout = timeout
        self._port = free_port()
        own = ("--host", "127.0.0.1", "--port", str(self._port))
        self._line = line(self._port) if callable(line) else [*line, *own]

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._port

    def __enter__(self) -> Server:
        self._log = tempfile.TemporaryFile()  # not a pipe: one that nobody reads stops the child when it is full
        try:
            self._child = subprocess.Popen(
                self._line,
                stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, env=self._environment,
            )  # fmt: skip
        except OSError:
            self._log.close()
            raise
        try:
            self._wait()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _wait(self) -> None:
        deadline = time.monotonic() + self._timeout
        while time.monotonic() < deadline:
            if self._child.poll() is not None:
                raise RuntimeError(f"ended with status {self._child.returncode}: {self._last_line()}")
            try:
                if self._exchange("GET", "/health", None)[0] == 200:
                    return
            except OSError:
                pass  # not listening yet
            time.sleep(PAUSE)
        raise RuntimeError(f"not ready after {self._timeout:g} s")

    def ask(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a POST.

        Raises:
            RuntimeError: it refused, or has ended.
            OSError: no answer in time.
        """
        if self._child.poll() is not None:
            raise RuntimeError(f"ended with status {self._child.returncode}: {self._last_line()}")
        status, data = self._exchange("POST", path, json.dumps(body).encode())
        if status != 200:
            raise RuntimeError(f"status {status}: {data.decode('utf-8', 'replace')[:200]}")
        answer: dict[str, Any] = json.loads(data)
        return answer

    def logged(self) -> bytes:
        """What it has written to its standard output and error so far. POSIX only."""
        # Read without seeking: the offset is the child's, too.
        return os.pread(self._log.fileno(), os.fstat(self._log.fileno()).st_size, 0)

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=self._timeout)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def _last_line(self) -> str:
        self._log.seek(0)
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines() or ["no message"]
        return lines[-1][:200]

    def _end(self) -> None:
        self._child.kill()
        self._child.wait()
        self._log.close()


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
