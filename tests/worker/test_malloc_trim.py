"""What was freed goes back to the system."""

import ctypes
import gc
import re
from pathlib import Path

import pytest

from codespec.worker.malloc_trim import EVERY_S, Trimmer, _malloc_trim, lasting

BLOCKS, SIZE = 1000, 100_000  # small enough to lie in the heap


def resident_mb():
    return int(re.findall(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[0]) / 1024


@pytest.mark.skipif(_malloc_trim() is None, reason="another C library than glibc")
def test_holes_in_the_heap_go_back_to_the_system_now_and_then():
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    blocks = [libc.malloc(SIZE) for _ in range(BLOCKS)]
    for block in blocks:
        ctypes.memset(block, 1, SIZE)
    for block in blocks[:-1]:  # the last one stays, and with it the heap's size
        libc.free(block)
    trimmer, held = Trimmer(), resident_mb()
    trimmer.trim()
    assert resident_mb() > held - 10
    trimmer._last -= EVERY_S
    trimmer.trim()
    assert resident_mb() < held - 50
    libc.free(blocks[-1])


def test_what_stays_is_not_looked_through_for_garbage():
    looks = []
    gc.callbacks.append(lambda phase, info: looks.append(phase))
    try:
        frozen = gc.get_freeze_count()
        with lasting():
            made = [[] for _ in range(10 * gc.get_threshold()[0])]
            assert not looks
        assert gc.get_freeze_count() >= frozen + len(made)
        assert gc.isenabled()
        more = [[] for _ in range(10 * gc.get_threshold()[0])]
        assert looks
        assert more
    finally:
        gc.callbacks.pop()
        gc.unfreeze()


def test_who_has_no_collector_gets_none():
    gc.disable()
    try:
        with lasting():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
