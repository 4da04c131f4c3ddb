"""The rows of a pass and their logits, in arrays: they are written at every pass, and ctypes is slow."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from codespec.llama.runtime import library
from codespec.protocols import Logits


class Rows:
    """A ``llama_batch`` of up to ``capacity`` rows.

    Args:
        vocabulary: its size.
    """

    def __init__(self, capacity: int, vocabulary: int) -> None:
        self._api, self._vocabulary = library(), vocabulary
        self._tokens, self._positions, self._sequences = (np.zeros(capacity, np.int32) for _ in range(3))
        self._wanted = np.zeros(capacity, np.int8)
        self._steps = np.arange(capacity, dtype=np.int32)
        each = self._sequences.ctypes.data + self._sequences.itemsize * np.arange(capacity, dtype=np.uintp)
        self._columns: dict[str, Any] = {
            "token": self._tokens,
            "pos": self._positions,
            "n_seq_id": np.ones(capacity, np.int32),
            "seq_id": each,  # addresses of the elements of `_sequences`
            "logits": self._wanted,
        }
        self._batch = self._api.llama_batch()
        for name, kind in self._batch._fields_:
            if name in self._columns:
                setattr(self._batch, name, self._columns[name].ctypes.data_as(kind))
        self._views: dict[tuple[int, int], Logits] = {}

    def of_one(self, tokens: Sequence[int], rows: int, sequence_id: int, position: int, last: int) -> Any:
        """The batch of ``tokens`` at ``position`` of a sequence, filled up to ``rows``; with logits of the ``last`` of
        them."""
        count = len(tokens)
        self._tokens[:count] = tokens
        self._tokens[count:rows] = 0
        np.add(self._steps[:rows], position, out=self._positions[:rows])
        self._sequences[:rows] = sequence_id
        self._wanted[:rows] = 0
        self._wanted[count - last : count] = 1
        self._batch.n_tokens = rows
        return self._batch

    def of_each(self, tokens: Sequence[int], sequence_ids: Sequence[int], positions: Sequence[int]) -> Any:
        """The batch of one token for each of several sequences, with the logits of all."""
        count = len(tokens)
        self._tokens[:count] = tokens
        self._positions[:count] = positions
        self._sequences[:count] = sequence_ids
        self._wanted[:count] = 1
        self._batch.n_tokens = count
        return self._batch

    def logits(self, context: Any, rows: int) -> Logits:
        """The logits of a native context's latest forward pass, float32 [rows, V]; valid until its next one."""
        size = self._vocabulary
        if rows == 0:
            return np.empty((0, size), np.float32)
        address = ctypes.addressof(self._api.llama_get_logits(context).contents)
        view = self._views.get((address, rows))
        if view is None:
            floats = (ctypes.c_float * (rows * size)).from_address(address)
            view = np.frombuffer(floats, np.float32).reshape(rows, size)  # type: ignore[call-overload]
            self._views[address, rows] = view
        return view

    def clear(self) -> None:
        """Drop the reference to logits whose context is freed."""
        self._views.clear()
