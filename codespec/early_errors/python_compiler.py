"""``compile`` in a child process, which hostile text may end and nothing else.

CPython's compiler crashes on some texts (100,000 ``for`` clauses in a comprehension) and takes seconds for others, and
nothing else runs in its process meanwhile.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

SECONDS = 2.0
"""After which a child that has not answered is ended."""
IDLE_SECONDS = 30.0
"""After which a child that nobody asks is ended."""
_CHILD = Path(__file__).with_name("python_child.py")


class Refusal(NamedTuple):
    """Why Python's compiler takes a text not.

    Attributes:
        message: its own; empty where it gave no answer.
        start, end: line and column of the error, both from 1, the column in characters; zeros where it names none.
    """

    message: str
    start: tuple[int, int] = (0, 0)
    end: tuple[int, int] = (0, 0)


class PythonCompiler:
    """A child process, started when first needed. Any number of threads may share one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._idle: threading.Timer | None = None

    def refusal(self, text: str, flags: int = 0) -> Refusal | None:
        """Why ``compile`` refuses a text; None where it takes it.

        Args:
            flags: as ``compile`` has them.
        """
        with self._lock:
            answer = self._ask(json.dumps([text, flags]).encode() + b"\n")
        if not answer:
            return Refusal("")
        found = json.loads(answer)
        return Refusal(found[0], (found[1], found[2]), (found[3], found[4])) if found else None

    def close(self) -> None:
        """End the child; the next question starts another."""
        with self._lock:
            self._end()

    def _ask(self, question: bytes) -> bytes:
        """A line of the child; empty where it gives none."""
        try:
            process = self._running()
        except OSError:
            return b""
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(SECONDS, process.kill)
        timer.start()
        try:
            process.stdin.write(question)
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:
            answer = b""
        finally:
            timer.cancel()
        if not answer.endswith(b"\n"):
            self._end()
            return b""
        return answer

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-W", "ignore", str(_CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        self._rest()
        return self._process

    def _rest(self) -> None:
        """End the child when nobody has asked it for a while."""
        if self._idle is not None:
            self._idle.cancel()
        self._idle = threading.Timer(IDLE_SECONDS, self.close)
        self._idle.daemon = True
        self._idle.start()

    def _end(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


shared = PythonCompiler()
"""The child of this process."""
atexit.register(shared.close)
