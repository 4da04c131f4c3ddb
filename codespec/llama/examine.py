"""Finds out whether llama.cpp survives a model file, once, in a child process.

llama.cpp ends the process over some errors in damaged files, in part only when it first decodes. So a file that did not
come with codespec is loaded by a child first, and the outcome is remembered until the file changes.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from contextlib import suppress
from pathlib import Path

from codespec.llama.gguf import file_parts
from codespec.llama.verdicts import Verdicts
from codespec.paths import own_python
from codespec.protocols import CodespecError

TIMEOUT_SECONDS = 120
"""A child loads no weights, unless the file is on a drive that has to be read whole."""
_KILLED = 9  # SIGKILL, where there are signals
_CHILD = "CODESPEC_EXAMINES"
_VERDICTS = Verdicts("examined.json")
_OURS = Path(__file__).parent.parent / "data"


def examine(path: Path) -> None:
    """Refuse a file that llama.cpp does not survive.

    Raises:
        CodespecError: with the remedy. A file that llama.cpp refuses with an error of its own passes.
    """
    if os.environ.get(_CHILD) or path.parent.resolve() == _OURS:
        return
    key = key_of(path)
    well = _VERDICTS.all().get(key)
    if well is None:
        well = survives(path)
        _VERDICTS.remember(key, well)
    if not well:
        raise CodespecError(f"{path}: the file is damaged: llama.cpp crashes over it; fetch it again")


def survives(path: Path, trial: str = "load_and_decode") -> bool:
    """Whether a function of ``codespec.llama.trial`` returns in a child process.

    Raises:
        CodespecError: it took too long, or was stopped from outside.
    """
    command = [*own_python(f"from codespec.llama.trial import {trial}; {trial}(sys.argv[1])"), str(path)]
    environment = {**os.environ, _CHILD: "1", "GGML_NO_BACKTRACE": "1", "CUDA_VISIBLE_DEVICES": ""}
    quiet = subprocess.DEVNULL
    try:
        done = subprocess.run(
            command, env=environment, stdin=quiet, stdout=quiet, stderr=quiet, timeout=TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise CodespecError(f"{path}: was not loaded within {TIMEOUT_SECONDS} s; is its drive that slow?") from None
    if done.returncode == -_KILLED:
        raise CodespecError(f"{path}: loading it was stopped from outside, perhaps for want of memory; try again")
    return done.returncode == 0


def key_of(path: Path) -> str:
    """A key for this model file as it is now."""
    digest = hashlib.sha256()
    for part in file_parts(path):
        with suppress(OSError):
            found = part.stat()
            digest.update(f"{part.resolve()} {found.st_size} {found.st_mtime_ns} {found.st_ino}\n".encode())
    return digest.hexdigest()
