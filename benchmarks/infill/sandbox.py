"""Runs the tests of filled tasks, in a child process with limits."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.infill.task import Task
from codespec.protocols import CodespecError

SECONDS, CPU_SECONDS = 10.0, 5
"""Of a test, by the clock and of the processor."""
MEMORY = 1 << 30
"""Bytes of address space."""
FILE_SIZE = 1 << 20

# Limits are set by the child itself: code between fork and exec of a process with threads may hang.
_START = """
import contextlib, resource, runpy, sys
for limit, value in ((resource.RLIMIT_CPU, {cpu}), (resource.RLIMIT_AS, {memory}), (resource.RLIMIT_FSIZE, {file}),
                     (resource.RLIMIT_CORE, 0)):
    with contextlib.suppress(ValueError):  # macOS has no limit of the address space
        resource.setrlimit(limit, (value, value))
runpy.run_path(sys.argv[1], run_name="__main__")
"""
_APART = ("unshare", "--map-root-user", "--net", "--pid", "--fork", "--kill-child")


def passes(task: Task, text: str, alone: bool = False) -> bool:
    """Whether the task's test passes with ``text`` in the gap. Python alone; the child has an empty folder, and neither
    network nor other processes where the system lets a user take them away.

    Args:
        alone: without the packages that are installed.
    """
    call = f"\ncheck({task.entry_point})\n" if task.entry_point else ""
    return runs(f"{task.prompt}{text}{task.suffix}\n{task.test}\n{call}", alone)


def runs(program: str, alone: bool = False, seconds: float = SECONDS) -> bool:
    """Whether a Python program ends with success, within the limits.

    Raises:
        CodespecError: on Windows, which has none of them.
    """
    if sys.platform == "win32":
        raise CodespecError("tests of tasks run on Linux and macOS alone; leave them out of the set")
    with tempfile.TemporaryDirectory(prefix="codespec-infill-") as name:
        folder = Path(name).resolve()
        script = folder / "program.py"
        script.write_text(program, "utf-8")
        start = _START.format(cpu=CPU_SECONDS, memory=MEMORY, file=FILE_SIZE)
        line = [*_prefix(), sys.executable, "-I", "-B", *(["-S"] if alone else []), "-c", start, str(script)]
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
            return child.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    """With all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


@functools.cache
def _prefix() -> tuple[str, ...]:
    """What takes the network and other processes away; nothing where that is not allowed."""
    if shutil.which(_APART[0]) is None:
        return ()
    tried = subprocess.run([*_APART, "true"], capture_output=True, check=False)
    return _APART if tried.returncode == 0 else ()
