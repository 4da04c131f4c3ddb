"""A ``llama_context``: it decodes batches of tokens for sequences that it knows by number."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from codespec.llama.kv_cells import KvCells
from codespec.llama.model import Model
from codespec.llama.rows import Rows
from codespec.llama.runtime import Cancellation, abort_callback, decode_failure, library
from codespec.llama.threads import Threads
from codespec.protocols import CodespecError, Logits

# Filled up, every decode has at least 2 rows: many CPU kernels differ at 1 row. Padded, it also has fewer than 64.
EXACT_MIN_ROWS = 2


class NativeContext:
    """Decodes tokens with so many threads as other programs leave CPUs for, until another thread asks for the stop.

    Not for use from two threads at a time, except ``Cancellation.set``.

    Args:
        pointer: of the ``llama_context``, this object's own from now on.
        length: tokens of all sequences together.
        sequences: how many sequences at most.
        batch_size: tokens that are decoded at a time at most.
        threads: at most.
        first_threads: of passes over a few tokens at first.
        follows: chooses their number for each forward pass; None where it stays as it is.
        exact: whether logits are the same whatever the tokens are batched with.
        padded: ``fills_up``, and the prefill is cut at fixed places.
        streams: arrays that the KV cells lie in: one for all sequences, or one for each.

    Attributes:
        fills_up: at least ``EXACT_MIN_ROWS`` rows are decoded at a time.
        cells: the KV cells of all sequences.
        snapshots: how many tokens the states of recurrent layers can go back in the last batch.
        room: tokens that a sequence may have.
        threads_now: of the latest forward pass.
        on_threads: called when passes over a few tokens take another number of threads from now on.
        on_decoded: called with the sequence, the position and the number of tokens of each pass of one sequence.
        on_restored: called with a sequence whose cells were put back.
    """

    def __init__(
        self,
        model: Model,
        pointer: Any,
        *,
        length: int,
        sequences: int,
        batch_size: int,
        threads: int,
        first_threads: int,
        follows: Threads | None,
        exact: bool,
        padded: bool,
        streams: int,
    ) -> None:
        self._api = library()
        self.model, self.pointer, self.length, self.exact, self.padded = model, pointer, length, exact, padded
        self.fills_up = padded
        self.batch_size = batch_size
        # Beside the tokens of a sequence there must be room for the rows that fill a pass up.
        self.room = length - (EXACT_MIN_ROWS - 1 if exact else 0)
        self.cells = KvCells(pointer, streams)
        self.snapshots = int(self._api.llama_n_rs_seq(pointer))
        self.threads, self.first_threads = threads, first_threads
        self.threads_now = self._usual_threads = first_threads
        self.follows = follows
        self.on_threads: Callable[[int], None] = lambda count: None
        self.on_decoded: Callable[[int, int, int], None] = lambda sequence_id, position, count: None
        self.on_restored: Callable[[int], None] = lambda sequence_id: None
        self.abort_data = Cancellation()
        self._install(self.abort_data)
        self._free = list(range(sequences - 1, -1, -1))
        self._rows = Rows(max(batch_size, EXACT_MIN_ROWS), model.vocabulary.size)

    def _install(self, cancellation: Cancellation) -> None:
        # The reference keeps the flag's memory alive as long as native code may read it.
        self.abort_data = cancellation
        self._api.llama_set_abort_callback(self.pointer, abort_callback(), ctypes.c_void_p(cancellation.address))

    @contextmanager
    def cancellable(self, cancellation: Cancellation) -> Iterator[None]:
        """Decodes inside the block raise ``Aborted`` soon after ``cancellation`` is set."""
        self._install(cancellation)
        try:
            yield
        finally:
            if self.pointer:
                self._install(Cancellation())

    @contextmanager
    def whole_steps(self) -> Iterator[None]:
        """Decodes inside the block are not aborted; the first one after it is, if its cancellation was set."""
        cancellation = self.abort_data
        self._install(Cancellation())
        try:
            yield
        finally:
            if self.pointer:
                self._install(cancellation)

    def take(self) -> int:
        """The number of a new, empty sequence; ``release`` gives it back.

        Raises:
            CodespecError: as many as the context was made for are in use.
        """
        if not self._free:
            raise CodespecError("every sequence of this context is in use; close one or make it with more")
        return self._free.pop()

    def release(self, sequence_id: int) -> None:
        """Drop a sequence's tokens and free its slot."""
        if self.pointer:
            self.cells.remove(sequence_id)
            self._free.append(sequence_id)

    def decode_chunk(self, sequence_id: int, position: int, tokens: Sequence[int], last: int) -> Logits:
        """Decode at most ``batch_size`` tokens at ``position``; logits of the last ``last`` rows.

        Raises:
            Aborted: the flag was set; nothing of the chunk remains.
            CodespecError: the context is full (``ContextFull``), or decoding failed; nothing of the chunk remains.
        """
        count = rows = len(tokens)
        if self.fills_up:
            rows = max(count, EXACT_MIN_ROWS)
        batch = self._rows.of_one(tokens, rows, sequence_id, position, last)
        status = self._decode(batch, rows)
        if status != 0:
            self.cells.remove(sequence_id, position)
            raise decode_failure(status, self.length)
        if rows > count:
            self.cells.remove(sequence_id, position + count)
        self.on_decoded(sequence_id, position, count)
        return self._rows.logits(self.pointer, last)

    def decode_rows(
        self, sequence_ids: Sequence[int], positions: Sequence[int], tokens: Sequence[Sequence[int]]
    ) -> Logits:
        """Decode tokens from a position on of each of several sequences, ``batch_size`` together at most; logits of
        all, float32 [n, V].

        Raises:
            Aborted, CodespecError: as ``decode_chunk``.
        """
        batch = self._rows.of_each(tokens, sequence_ids, positions)
        rows = sum(map(len, tokens))
        status = self._decode(batch, rows)
        if status != 0:
            for sequence_id, position in zip(sequence_ids, positions, strict=True):
                self.cells.remove(sequence_id, position)
            raise decode_failure(status, self.length)
        return self._rows.logits(self.pointer, rows)

    @property
    def crowded(self) -> bool:
        """Whether other programs leave too few CPUs for all threads."""
        return self.follows is not None and self.follows.left() < self.threads

    def _decode(self, batch: Any, rows: int) -> int:
        """llama.cpp's status of a pass with as many threads as are best now."""
        if self.follows is None:
            return int(self._api.llama_decode(self.pointer, batch))
        count = self.follows.count(rows)
        if count != self.threads_now:
            self._api.llama_set_n_threads(self.pointer, count, count)
            self.threads_now = count
        if self.follows.usual != self._usual_threads:
            self._usual_threads = self.follows.usual
            self.on_threads(self._usual_threads)
        began = perf_counter()
        status = int(self._api.llama_decode(self.pointer, batch))
        if status == 0:
            self.follows.took(rows, count, perf_counter() - began)
        return status

    def close(self) -> None:
        """Free the memory; a second call does nothing."""
        if self.pointer:
            self._rows.clear()
            self._api.llama_free(self.pointer)
            self.pointer = None
