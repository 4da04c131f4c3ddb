"""What a process that crashes writes, starts and leaves behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits and signals as Linux has them")

ABORT = """
import ctypes, pathlib
from codespec.llama.runtime import library
folder = pathlib.Path(library().__file__).parent
base = next(each for name in ("libggml-base.so*", "libggml.so*") for each in sorted(folder.rglob(name)))
ctypes.CDLL(str(base)).ggml_abort(b"here.c", 1, b"on purpose")
"""


def test_no_debugger_is_started_where_the_library_aborts(tmp_path: Path) -> None:
    for name in ("gdb", "lldb"):
        debugger = tmp_path / name
        debugger.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/started\n')
        debugger.chmod(0o755)
    places = {key: value for key, value in os.environ.items() if not key.startswith("GGML")}
    places["PATH"] = f"{tmp_path}:{places['PATH']}"
    done = subprocess.run([sys.executable, "-c", ABORT], env=places, capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGABRT, done.stderr
    assert "on purpose" in done.stderr
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("arguments", [["serve", "--in-process"], ["model-process"]])
def test_no_core_dump_holds_documents(tmp_path: Path, arguments: list[str]) -> None:
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if hard == 0:
        pytest.skip("no process here may write one")
    places = {
        "HOME": str(tmp_path),
        "CODESPEC_RUNTIME": str(tmp_path / "run"),
        "CODESPEC_CACHE": str(tmp_path / "cache"),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "codespec", *arguments],
        env={**os.environ, **places},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)),
    )
    try:
        end = time.monotonic() + 120
        while _core_limit(process.pid) != "0" and time.monotonic() < end:
            time.sleep(0.05)
        assert process.poll() is None
        assert _core_limit(process.pid) == "0"
    finally:
        process.kill()
        process.communicate()


LOGS = """
import logging, sys, threading
from codespec.crash import log_to
from codespec.errors import CodespecError
log_to(sys.stderr, "%(levelname)s %(message)s", logging.INFO)
log = logging.getLogger("codespec.x")
def fail(error):
    try:
        try:
            {"a": 1}["text of a document"]
        except KeyError as cause:
            raise error("more of it") from cause
    except Exception:
        log.exception("a request failed")
fail(ValueError)
fail(OSError)
fail(CodespecError)
threading.Thread(target=lambda: int("text of a document")).start()
"""


def test_logs_say_where_something_failed_and_quote_no_text() -> None:
    done = subprocess.run([sys.executable, "-c", LOGS], capture_output=True, text=True, timeout=60)
    assert "text of a document" not in done.stderr.replace('["text of a document"]', "")
    assert done.stderr.count("ERROR a request failed\nTraceback") == 3
    assert done.stderr.count("KeyError\n\nafterwards:") == 3
    assert done.stderr.count("more of it") == 2  # of OSError and CodespecError
    assert "OSError: more of it" in done.stderr
    assert "a thread has failed" in done.stderr
    assert done.stderr.rstrip().endswith("ValueError")


def _core_limit(process: int) -> str:
    """The soft limit, in bytes."""
    lines = Path(f"/proc/{process}/limits").read_text().splitlines()
    return next(line for line in lines if line.startswith("Max core file size")).split()[4]
