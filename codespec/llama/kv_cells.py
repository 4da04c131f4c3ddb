"""The KV cells of a llama.cpp context: the keys and values of the tokens of its sequences."""

from __future__ import annotations

import ctypes
import mmap
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from codespec.llama.runtime import library
from codespec.protocols import CodespecError

PARTIAL_ONLY = 1  # LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY
SMALL = 4 << 20
"""Bytes of a cache below which its memory is the heap's."""
_HEAD, _COUNT = 8, 4
"""Bytes of what saved cells begin with, and of a number of streams or cells behind it."""
SPARES = 4
"""Copies of states whose memory is kept for the next ones."""


class KvCells:
    """The cells of all sequences of a native context, each sequence by its number; positions count from 0.

    Args:
        pointer: of the ``llama_context``.
        streams: arrays that the cells lie in: one for all sequences, or one for each.
    """

    def __init__(self, pointer: Any, streams: int = 1) -> None:
        self._api, self._pointer, self._streams = library(), pointer, streams
        self._memory = self._api.llama_get_memory(pointer)
        self._spare: list[npt.NDArray[np.uint8]] = []

    def remove(self, sequence_id: int, start: int = -1, end: int = -1) -> bool:
        """Drop the tokens ``start..end`` of a sequence, -1 for its ends; False where the architecture cannot."""
        return bool(self._api.llama_memory_seq_rm(self._memory, sequence_id, start, end))

    def share(self, source: int, target: int) -> None:
        """Give the sequence ``target`` all tokens of ``source``, in the same cells."""
        self._api.llama_memory_seq_cp(self._memory, source, target, 0, -1)

    def save(self, sequence_id: int) -> npt.NDArray[np.uint8]:
        """A copy of the cells of a sequence, for ``restore``, in this context or another one; uint8 [bytes]."""
        data = _pages(self._api.llama_state_seq_get_size(self._pointer, sequence_id))
        written = self._api.llama_state_seq_get_data(self._pointer, _bytes(data), data.nbytes, sequence_id)
        data = data[:written]
        if self._streams > 1:
            # llama.cpp writes a head, the number of streams, and for each the cells of the sequence: those of others
            # have none.
            head, after = data[:_HEAD].copy(), _COUNT * (self._streams - 1 - sequence_id)
            data = data[_COUNT * sequence_id : written - after]
            data[:_HEAD] = head
            data[_HEAD : _HEAD + _COUNT] = _count(1)
        return data

    def restore(self, sequence_id: int, data: npt.NDArray[np.uint8]) -> bool:
        """Fill an empty sequence with what ``save`` returned; False, and it stays empty, where there is no room or
        llama.cpp does not take the data."""
        if self._streams > 1:
            others = np.zeros(_COUNT * (self._streams - 1), np.uint8)
            data = np.concatenate([data[:_HEAD], _count(self._streams), data[_HEAD + _COUNT :], others])
        if self._api.llama_state_seq_set_data(self._pointer, _bytes(data), data.nbytes, sequence_id):
            return True
        self.remove(sequence_id)
        return False

    def save_states(self, sequence_id: int) -> npt.NDArray[np.uint8]:
        """A copy of a sequence's states in recurrent layers alone; uint8 [bytes]. ``spare`` takes it back."""
        api, context = self._api, self._pointer
        size = api.llama_state_seq_get_size_ext(context, sequence_id, PARTIAL_ONLY)
        data = self._spare.pop() if self._spare else _pages(size)
        if data.nbytes != size:
            data = _pages(size)
        if api.llama_state_seq_get_data_ext(context, _bytes(data), size, sequence_id, PARTIAL_ONLY) != size:
            raise CodespecError("llama.cpp does not copy the states of recurrent layers whole")
        return data

    def spare(self, data: npt.NDArray[np.uint8]) -> None:
        """Let the next copy of states have the memory of one that nobody needs any more: new pages take two to twenty
        times as long as the copy."""
        if len(self._spare) < SPARES:
            self._spare.append(data)

    def restore_states(self, sequence_id: int, data: npt.NDArray[np.uint8]) -> bool:
        """Put back what ``save_states`` returned. The attention layers still hold the tokens behind it: remove them."""
        size = data.nbytes
        return bool(
            self._api.llama_state_seq_set_data_ext(self._pointer, _bytes(data), size, sequence_id, PARTIAL_ONLY)
        )


def _count(number: int) -> npt.NDArray[np.uint8]:
    return np.array([number], np.uint32).view(np.uint8)


def _bytes(data: npt.NDArray[np.uint8]) -> Any:
    return data.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))


def _pages(size: int) -> npt.NDArray[np.uint8]:
    """Memory for a cache. That of a large one returns to the system with the array: caches of all sizes would fragment
    the heap. A small one takes memory that is there already: new pages would take longer than the copy."""
    if size < SMALL:
        return np.empty(size, np.uint8)
    if sys.platform == "win32":
        return np.frombuffer(mmap.mmap(-1, size), np.uint8)
    # All pages at once where the system can: to fault them in one by one takes longer than to copy the cells.
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_POPULATE", 0)
    return np.frombuffer(mmap.mmap(-1, size, flags=flags), np.uint8)
