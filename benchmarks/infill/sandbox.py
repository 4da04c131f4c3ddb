"""Runs the tests of filled tasks, in a child process with limits."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.infill.task import Task

SECONDS, CPU_SECONDS = 10.0, 5
"""Of a test, by the clock and of the processor."""
MEMORY = 1 << 30
"""Bytes of address space."""
FILE_SIZE = 1 << 20

# Limits are set by the child itself: code between fork and exec of a process with threads may hang.
_START = """
import faulthandler, resource, runpy, sys
for limit, value in ((resource.RLIMIT_CPU, {cpu}), (resource.RLIMIT_AS, {memory}), (resource.RLIMIT_FSIZE, {file}),
                     (resource.RLIMIT_CORE, 0)):
    resource.setrlimit(limit, (value, value))
sys.path[:0] = {path!r}
runpy.run_path(sys.argv[1], run_name="__main__")
"""
_WITHOUT_NETWORK = ("unshare", "--net", "--map-root-user")


def passes(task: Task, text: str) -> bool:
    """Whether the task's test passes with ``text`` in the gap. Python alone; the child has an empty folder, and no
    network where the system lets a user take it away."""
    call = f"\ncheck({task.entry_point})\n" if task.entry_point else ""
    return runs(f"{task.prompt}{text}{task.suffix}\n{task.test}\n{call}")


def runs(program: str) -> bool:
    """Whether a Python program ends with success, within the limits."""
    with tempfile.TemporaryDirectory(prefix="codespec-infill-") as name:
        folder = Path(name).resolve()
        script = folder / "program.py"
        script.write_text(program, "utf-8")
        start = _START.format(cpu=CPU_SECONDS, memory=MEMORY, file=FILE_SIZE, path=[])
        line = [*_prefix(), sys.executable, "-I", "-B", "-c", start, str(script)]
        environment = {"HOME": name, "TMPDIR": name, "PATH": os.environ.get("PATH", ""), "OPENBLAS_NUM_THREADS": "1"}
        child = subprocess.Popen(
            line,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return child.wait(SECONDS) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    """With all that it started."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


@functools.cache
def _prefix() -> tuple[str, ...]:
    """What takes the network away; nothing where that is not allowed."""
    if shutil.which(_WITHOUT_NETWORK[0]) is None:
        return ()
    tried = subprocess.run([*_WITHOUT_NETWORK, "true"], capture_output=True, check=False)
    return _WITHOUT_NETWORK if tried.returncode == 0 else ()
