"""The rows of a pass and their logits, in arrays that are kept: they are written at every pass, and ctypes is slow."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import chain
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
        api, self._vocabulary = library(), vocabulary
        integers = ctypes.c_int32 * capacity
        self._tokens: Any = integers()  # the checker of types knows slices of lists only
        self._positions: Any = integers()
        self._sequences: Any = integers()
        self._wanted: Any = (ctypes.c_int8 * capacity)()
        start, size = ctypes.addressof(self._sequences), ctypes.sizeof(ctypes.c_int32)
        self._columns: dict[str, Any] = {
            "token": self._tokens,
            "pos": self._positions,
            "n_seq_id": integers(*[1] * capacity),
            # addresses of the elements of `_sequences`
            "seq_id": (ctypes.c_void_p * capacity)(*range(start, start + size * capacity, size)),
            "logits": self._wanted,
        }
        self._batch = api.llama_batch()
        for name, kind in self._batch._fields_:
            if name in self._columns:
                setattr(self._batch, name, ctypes.cast(self._columns[name], kind))
        # Of the latest pass of one sequence: rows, tokens, logits and sequence. Most passes are like the one before.
        self._shape = (0, 0, 0, -1)
        address = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
        self._logits = ctypes.cast(api.llama_get_logits, address)
        self._views: dict[tuple[int, int], Logits] = {}

    def of_one(self, tokens: Sequence[int], rows: int, sequence_id: int, position: int, last: int) -> Any:
        """The batch of ``tokens`` at ``position`` of a sequence, filled up to ``rows``; with logits of the ``last`` of
        them."""
        count = len(tokens)
        self._tokens[:count] = tokens
        self._positions[:rows] = range(position, position + rows)
        shape = rows, count, last, sequence_id
        if shape != self._shape:
            self._shape = shape
            self._tokens[count:rows] = [0] * (rows - count)
            self._sequences[:rows] = [sequence_id] * rows
            self._wanted[:rows] = [0] * (count - last) + [1] * last + [0] * (rows - count)
            self._batch.n_tokens = rows
        return self._batch

    def of_each(self, tokens: Sequence[Sequence[int]], sequence_ids: Sequence[int], positions: Sequence[int]) -> Any:
        """The batch of tokens for each of several sequences, each from its position on, with the logits of all."""
        count = sum(map(len, tokens))
        self._shape = (0, 0, 0, -1)
        self._tokens[:count] = list(chain.from_iterable(tokens))
        places = (range(at, at + len(each)) for each, at in zip(tokens, positions, strict=True))
        self._positions[:count] = list(chain.from_iterable(places))
        owners = ([number] * len(each) for each, number in zip(tokens, sequence_ids, strict=True))
        self._sequences[:count] = list(chain.from_iterable(owners))
        self._wanted[:count] = [1] * count
        self._batch.n_tokens = count
        return self._batch

    def logits(self, context: Any, rows: int) -> Logits:
        """The logits of a native context's latest forward pass, float32 [rows, V]; valid until its next one."""
        size = self._vocabulary
        if rows == 0:
            return np.empty((0, size), np.float32)
        address = self._logits(context)
        view = self._views.get((address, rows))
        if view is None:
            floats = (ctypes.c_float * (rows * size)).from_address(address)
            view = np.frombuffer(floats, np.float32).reshape(rows, size)  # type: ignore[call-overload]
            self._views[address, rows] = view
        return view

    def clear(self) -> None:
        """Drop the reference to logits whose context is freed."""
        self._views.clear()
