"""Process set-up that must happen before the llama.cpp library is loaded, and the library itself."""

from __future__ import annotations

import ctypes
import importlib.util
import logging
import os
import sys
import threading
from collections import deque
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from codespec.protocols import Aborted, Cancel, CodespecError, ContextFull

_DECODE_ABORTED = 2
_DECODE_NO_SLOT = 1

log = logging.getLogger("codespec.llama")

# libgomp's threads spin without bound by default: with one other busy process on the machine a decode of
# 1 ms takes up to 1 s. Sleeping at every barrier (OMP_WAIT_POLICY=passive) costs 10x on an idle machine.
# A bounded spin is good in both. Only the first load of libgomp in a process reads it.
SPIN_COUNT = "20000"
os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)

# Where the library aborts it would start a debugger, which takes seconds and prints arguments of functions: texts of
# documents. The library reads this when it is loaded and when it aborts.
os.environ.setdefault("GGML_NO_BACKTRACE", "1")

_COMPLAINTS = (3, 4)  # warnings and errors, enum ggml_log_level
_errors: deque[str] = deque(maxlen=20)
_references: list[Any] = []  # callbacks that native code holds
_importing = threading.RLock()
_ours: dict[str, ModuleType] = {}  # modules of llama-cpp-python that nobody else has imported


@cache
def library() -> ModuleType:
    """llama.cpp's C API (``llama_cpp.llama_cpp``), loaded on the first call; its log goes to ``codespec.llama``.

    Raises:
        ImportError: llama-cpp-python is missing or does not load.
    """
    api = _binding("llama_cpp")
    callback = api.llama_log_callback(_on_log)
    _references.append(callback)
    api.llama_log_set(callback, None)
    api.llama_backend_init()
    return api


@cache
def ggml() -> Any:
    """ggml's C API, as ``ctypes`` loads it; None where the binding does not know it."""
    try:
        folder = other_folder()
        if folder is None:
            return _binding("_ggml").libggml
        library()  # before anything else: the binding itself would load a second ggml, whose devices llama.cpp lacks
        return _binding("_ctypes_extensions").load_shared_library("ggml", folder)
    except (ImportError, AttributeError, FileNotFoundError):  # another version
        return None


def other_folder() -> Path | None:
    """The folder that the library is loaded from in the place of llama-cpp-python's own, if it is."""
    folder = os.environ.get("LLAMA_CPP_LIB_PATH")
    return Path(folder) if folder else None


def _binding(name: str) -> ModuleType:
    """A module of llama-cpp-python, without what its package imports besides: templates, caches and the types of a
    server, none of which is used here, and which take as long as everything else.

    Whoever imports that package in this process later gets all of it, as if nothing had been imported here.
    """
    package = "llama_cpp"
    with _importing:
        if package in sys.modules:
            return import_module(f"{package}.{name}")  # its user's library has to be ours
        spec = importlib.util.find_spec(package)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        sys.modules[package] = importlib.util.module_from_spec(spec)  # its __init__ does not run
        sys.modules.update(_ours)
        try:
            return import_module(f"{package}.{name}")
        finally:
            # Of a copy: other threads import meanwhile.
            own = [each for each in list(sys.modules) if each == package or each.startswith(f"{package}.")]
            found = {each: sys.modules.pop(each) for each in own}
            _ours.update({each: module for each, module in found.items() if each != package})


def _on_log(level: int, text: bytes, _data: object) -> None:
    # Called from any thread of the library, in the middle of anything: it must never raise.
    message = text.decode("utf-8", "replace").strip()
    if level in _COMPLAINTS and message:
        _errors.append(message)
    if message.strip("."):  # not the dots of a progress bar
        log.debug("%s", message)  # what matters of it reaches the user in an exception


def clear_errors() -> None:
    """Forget the library's error messages so far."""
    _errors.clear()


def last_errors() -> list[str]:
    """The library's error messages since ``clear_errors``, oldest first."""
    return list(_errors)


@cache
def abort_callback() -> Any:
    """A native ``bool (*)(void *)`` that reads a flag, for llama.cpp to call at every node of its graph.

    A Python callback would have to take the interpreter's lock in every compute thread at every node. C's
    ``strlen`` does what is needed without Python: the length of the string at the flag is 0 until its
    first byte is set.
    """
    api = library()
    libc = ctypes.CDLL(None) if os.name == "posix" else ctypes.CDLL("msvcrt")
    address = ctypes.cast(libc.strlen, ctypes.c_void_p).value
    return ctypes.cast(address or 0, api.ggml_abort_callback)


class Cancellation:
    """A flag to stop a generation with, like ``threading.Event``, that native code sees too.

    Set from any thread; a decode that runs under it stops within one node of its graph.
    """

    def __init__(self) -> None:
        self._memory = ctypes.create_string_buffer(2)

    def set(self) -> None:
        """Ask for the stop. There is no way back: a new generation takes a new flag."""
        self._memory[0] = b"\x01"

    def is_set(self) -> bool:
        """Whether the stop was asked for."""
        return self._memory[0] != b"\0"

    @property
    def address(self) -> int:
        """The memory address of the flag."""
        return ctypes.addressof(self._memory)


class Either:
    """A flag that is set where one of two is; it is asked several times in every pass."""

    def __init__(self, one: Cancel, other: Cancel | None) -> None:
        self._one, self._other = one, other

    def is_set(self) -> bool:
        """Whether one of the two is set."""
        return self._one.is_set() or (self._other is not None and self._other.is_set())


def decode_failure(status: int, length: int) -> Exception:
    """The error for a status of ``llama_decode`` other than 0, in a context of so many tokens."""
    if status == _DECODE_ABORTED:
        return Aborted()
    if status == _DECODE_NO_SLOT:
        return ContextFull(f"the context of {length:,} tokens is full; set a larger `context`")
    reason = (last_errors() or ["no reason given"])[-1][:200]
    return CodespecError(f"llama.cpp failed to decode ({status}: {reason}); run `codespec doctor`")
