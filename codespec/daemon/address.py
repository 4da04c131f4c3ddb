"""The endpoint of a user's model process: a socket that only this user can reach."""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import codespec
from codespec.llama.runtime import SPIN_COUNT
from codespec.paths import cache_folder, keep_private, runtime_folder, short_folder

PROTOCOL = 4
"""The version of the protocol in ``wire``."""

_SHAPING = ("CODESPEC_", "GGML_", "LLAMA_", "CUDA_", "HIP_", "OMP_", "GOMP_", "XDG_")
"""Prefixes of environment variables on which a model process or the place of its files depends."""

_LONGEST = 100  # bytes of a socket's path; the system's limit is 104 or 108


@dataclass(frozen=True)
class Endpoint:
    """The address and the files of one model process.

    Attributes:
        name: unique among the model processes of a user.
        address: of the socket, or on Windows of the named pipe.
        key: a file with the secret that both sides must know.
        lock: a file that the process locks as long as it lives.
        log: the file of its standard error.
    """

    name: str
    address: str
    key: Path
    lock: Path
    log: Path


def endpoint() -> Endpoint:
    """The endpoint for this user, this Python, this codespec and this environment: others have their own process.

    Raises:
        OSError: there is no folder that only this user can see.
    """
    folder = runtime_folder()
    name = f"model-{_digest()}"
    address = folder / f"{name}.sock"
    if len(os.fsencode(address)) > _LONGEST:
        keep_private(short_folder())
        address = short_folder() / f"{name}.sock"
    return Endpoint(
        name,
        rf"\\.\pipe\codespec-{name}" if sys.platform == "win32" else str(address),
        folder / f"{name}.key",
        folder / f"{name}.lock",
        log_file(),
    )


def log_file() -> Path:
    """The file of model processes' standard error; its folder need not exist."""
    return cache_folder() / "model-process.log"


def version() -> str:
    """The version of codespec."""
    from importlib import metadata  # slow to import, and no server needs it before it is asked

    try:
        return metadata.version("codespec")
    except metadata.PackageNotFoundError:  # run from a checkout
        return "0"


def _digest() -> str:
    shaping = {name: value for name, value in os.environ.items() if name.startswith(_SHAPING)}
    if shaping.get("GOMP_SPINCOUNT") == SPIN_COUNT:  # as every process has it, once it has imported what sets it
        del shaping["GOMP_SPINCOUNT"]
    told = [PROTOCOL, sys.executable, sys.version, *_source(), sorted(shaping.items())]
    return hashlib.sha256(repr(told).encode("utf-8", "surrogateescape")).hexdigest()[:16]


@cache
def _source() -> tuple[str, int]:
    """Path and time of codespec's code: after an upgrade, a process with the old code has another endpoint."""
    folder = Path(codespec.__file__).parent
    return str(folder), max(path.stat().st_mtime_ns for path in folder.rglob("*.py") if path.is_file())
