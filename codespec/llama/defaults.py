"""The defaults of a context's settings, and a check that there is memory for it."""

from __future__ import annotations

import ctypes
import os
import sys

from codespec.llama.devices import ResolvedSetting
from codespec.llama.model import Model
from codespec.llama.threads import own_cpus
from codespec.protocols import CodespecError

LLAMA_CHOOSES = "llama"
EXACT_KV = "f16/bf16"
"""The KV cache with which no kernel depends on the number of rows, see ``agreement``."""
ONE_THREAD_BELOW = 50_000_000
LONGEST_WITHOUT_FLASH = 16_384


def kv_cache(exact: bool) -> ResolvedSetting:
    """The value of ``kv_type = "auto"``."""
    if exact:
        return ResolvedSetting(EXACT_KV, "with it no kernel depends on the number of rows")
    return ResolvedSetting("f16", "llama.cpp's own default, which works with and without flash attention")


def attention(model: Model, length: int, kv_type: str, exact: bool) -> ResolvedSetting:
    """The value of ``flash_attention = "auto"``: ``off`` where that is faster, else llama.cpp's own choice.

    On a CPU llama.cpp's flash attention goes through the cache once for each row of a short pass: 16 tokens after
    1,500 others take 33 ms with it and 12 without (8M parameters, AVX2; a 1.5B model after 1,000: 678 and 555 ms).
    Without it a very long context takes much memory, and ``exact`` decoding relies on its numerics.
    """
    if model.gpu_layers:
        return ResolvedSetting(LLAMA_CHOOSES, "layers are on a GPU")
    if exact:
        return ResolvedSetting("on", "exact decoding relies on its numerics")
    if kv_type not in ("f16", "f32"):
        return ResolvedSetting(LLAMA_CHOOSES, f"a KV cache of {kv_type} may need it")
    if length > LONGEST_WITHOUT_FLASH:
        return ResolvedSetting(LLAMA_CHOOSES, f"without it more than {LONGEST_WITHOUT_FLASH:,} tokens take much memory")
    return ResolvedSetting("off", "short passes are faster without it on a CPU")


def default_threads(model: Model, follows: bool) -> ResolvedSetting:
    """Threads at most: the CPUs this process may use, at most 8.

    Args:
        follows: whether passes take fewer where that is faster; else a small model gets one.
    """
    most = max(1, min(8, len(own_cpus())))
    if not follows and _small(model):
        return ResolvedSetting(1, "the model is small: more gain little, and lose much on a busy machine")
    return ResolvedSetting(most, "as many as there are CPUs, 8 at most")


def first_threads(model: Model, most: int) -> int:
    """Threads of the first passes over a few tokens: one in a small model, else all.

    At 8M parameters a second thread gains at most a factor of 1.5. Where a busy machine keeps one of two threads
    waiting at each of 250 barriers it costs a factor of 70 (1.6 ms and 110 ms a token, measured).
    """
    return 1 if _small(model) else most


def draft_threads(model: Model) -> int:
    """Threads of a draft model: one of a small one, else 0, which is ``default_threads``.

    A second one saves a quarter of a pass of 0.3 ms. But it waits for the next pass without sleeping; where two CPUs
    are one core, the code between two passes then takes twice as long.
    """
    return 1 if _small(model) else 0


def _small(model: Model) -> bool:
    return model.parameter_count < ONE_THREAD_BELOW


def check_memory(model: Model, length: int) -> None:
    """Refuse a context that the machine's memory cannot hold, before the system kills the process over it.

    Raises:
        CodespecError: with the figures.
    """
    total = memory()
    if not total:
        return  # not known on this system: llama.cpp's own failure is reported instead
    total += model.servers.free
    need = model.size + model.kv_bytes_per_token * length
    if need > total:
        owner = "the machine and its RPC servers have" if model.servers.free else "the machine has"
        raise CodespecError(
            f"{model.path}: {need / 2**30:,.1f} GiB are needed for a context of {length:,} tokens and {owner} "
            f"{total / 2**30:,.1f}; set a smaller `context` or choose a smaller model"
        )


def memory() -> int:
    """Bytes of the machine's memory; 0 where the system does not say."""
    if sys.platform == "win32":
        return _windows_memory()
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0


def _windows_memory() -> int:
    class Status(ctypes.Structure):
        """MEMORYSTATUSEX of the Windows API."""

        _fields_ = (
            ("length", ctypes.c_uint32),
            ("load", ctypes.c_uint32),
            ("total", ctypes.c_uint64),
            ("others", ctypes.c_uint64 * 6),
        )

    status = Status(length=ctypes.sizeof(Status))
    kernel = getattr(ctypes, "windll").kernel32  # noqa: B009  # absent elsewhere, where mypy looks
    return int(status.total) if kernel.GlobalMemoryStatusEx(ctypes.byref(status)) else 0
