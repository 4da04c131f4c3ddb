"""Process set-up that must happen before the llama.cpp library is loaded, and the library itself."""

from __future__ import annotations

import os
from types import ModuleType

# libgomp's threads spin without bound by default: with one other busy process on the machine a decode of
# 1 ms takes up to 1 s. Sleeping at every barrier (OMP_WAIT_POLICY=passive) costs 10x on an idle machine.
# A bounded spin is good in both. Only the first load of libgomp in a process reads it.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")


def library() -> ModuleType:
    """llama.cpp's C API (``llama_cpp.llama_cpp``), loaded on the first call."""
    from llama_cpp import llama_cpp

    return llama_cpp
