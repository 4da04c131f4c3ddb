"""Finds out whether llama.cpp's repacked-weight kernels work on this machine, once, in a child process.

Some builds die at the first batched matrix product: GCC 12 declares only 8 of the 64 bytes that
``_tile_loadconfig`` reads, drops the stores to the rest, and AMX then runs with a garbage
configuration. A crash cannot be caught in the process it happens in, so a child tries it, and the
verdict is remembered for this library and this CPU. A process that is started again when it ends can
do without that child, which takes as long as everything else at the first start: it leaves a note,
tries by itself, and if it does not come back the next one finds the note.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import subprocess
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from codespec.llama.runtime import other_folder
from codespec.llama.verdicts import Verdicts
from codespec.paths import machine_folder, make_private, own_python
from codespec.protocols import CodespecError

log = logging.getLogger("codespec.llama")

REMEDY = (
    "llama.cpp's fast matrix kernels crash on this CPU as built; codespec runs without them, more slowly. "
    "To rebuild: CMAKE_ARGS=\"-DCMAKE_CXX_FLAGS='-fno-tree-dse -fno-dse'\" "
    "pip install --force-reinstall --no-cache-dir --no-deps llama-cpp-python"
)
TIMEOUT_SECONDS = 60
_VERDICTS = Verdicts("probe.json")
_trying = False  # in this process
_try: Callable[[str], None] | None = None


def default_model() -> Path:
    """The smallest model at hand: the embedded draft."""
    return Path(__file__).parent.parent / "data" / "draft-python.gguf"


def fingerprint() -> str:
    """A key for this build of the library on this CPU."""
    import importlib.util

    spec = importlib.util.find_spec("llama_cpp")
    if spec is None or spec.origin is None:
        raise CodespecError("llama-cpp-python is not installed; run: pip install llama-cpp-python==0.3.36")
    folder = other_folder() or Path(spec.origin).parent / "lib"
    parts = [f"{p.name}:{p.stat().st_size}:{p.stat().st_mtime_ns}" for p in sorted(folder.glob("*")) if p.is_file()]
    parts += [platform.machine(), _cpu_description()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]


def _cpu_description() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return f"{platform.platform()} {platform.processor()}"  # where there is /proc, that starts a program
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))


@cache
def extra_buffers_work() -> bool:
    """Whether models may be loaded with repacked weights; asks a child process the first time on a machine."""
    if _trying or os.environ.get("CODESPEC_PROBE") == "child":
        return True
    model = default_model()
    if not model.exists():
        return True
    key = fingerprint()
    works = _VERDICTS.all().get(key)
    if works is None:
        works = (_try is not None and survives_here(model, key, _try)) or survives(model)
        _VERDICTS.remember(key, works)
        with suppress(OSError):
            _note(key).unlink(missing_ok=True)
    if not works:
        log.warning("%s", REMEDY)
    return works


def be_expendable(decode: Callable[[str], None]) -> None:
    """Say that this process may end over the question: whoever needs it starts another one.

    Args:
        decode: a few batches with a model file.
    """
    global _try
    _try = decode


def survives_here(model: Path, key: str, decode: Callable[[str], None]) -> bool:
    """Decode a few batches in this process, which perhaps ends over it; False where that is not to be tried: a process
    that has tried before may have ended, nobody could be told, or it was refused."""
    global _trying
    try:
        make_private(_note(key).parent)
        with _note(key).open("x"):
            pass
    except OSError:
        return False
    _trying = True
    try:
        decode(str(model))
    except CodespecError as error:
        log.debug("crash probe: %s", error)
        return False
    finally:
        _trying = False
    return True


def _note(key: str) -> Path:
    """There as long as a process tries, or where it has ended over it."""
    return machine_folder() / f"probing-{key}"


def survives(model: Path) -> bool:
    """Whether a child process that decodes a few batches with ``model`` comes back."""
    environment = {**os.environ, "CODESPEC_PROBE": "child"}
    command = [*own_python("from codespec.llama.trial import decode_batches; decode_batches(sys.argv[1])"), str(model)]
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired:
        return False
    if done.returncode != 0:
        log.debug("crash probe: exit %d, %s", done.returncode, done.stderr[-2000:].decode("utf-8", "replace"))
    return done.returncode == 0
