"""A sequence of a model with recurrent layers, whose state goes forward only: Mamba, gated delta nets, convolutions.

There are two exact ways back. Some contexts keep the states after the last tokens of a batch (snapshots). Everywhere
else a copy of the states from before, a checkpoint, is put back, and the tokens behind it are decoded again, in one
pass with those that come next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from codespec.llama.kv_cells import KvCells
from codespec.llama.native_context import NativeContext
from codespec.llama.sequence import LlamaSequence
from codespec.protocols import Logits, Target

SNAPSHOTS = 8
"""States of the last tokens of a batch that a context is asked to keep beside the present one, each as large."""
CHECKPOINTS, CHECKPOINT_BYTES = 16, 192 << 20
"""Checkpoints that a sequence keeps at most, and their bytes; two it keeps whatever their size."""
SAVED = 3
"""Checkpoints that are saved with a sequence. Each takes tens of megabytes on a large model."""
AGAIN = 8
"""Tokens that are decoded again beside others at most: so many rows more cost little."""
LONGEST = 33
"""Tokens of a pass over a proposal at most."""
TAIL = 8
"""Tokens at the end of a long text that are a batch of their own, so that a checkpoint lies close to its end."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The states of all recurrent layers after the first ``n_past`` tokens; ``data`` is uint8 [bytes].

    Forks share it; with the last of them its memory goes back to ``cells``.
    """

    n_past: int
    data: npt.NDArray[np.uint8]
    cells: KvCells
    written: bool = False  # made while a text was written, not at the end of what was read

    def __del__(self) -> None:
        self.cells.spare(self.data)


class RecurrentSequence(LlamaSequence):
    """One sequence of a context whose model has recurrent layers. Made by ``Context.sequence``.

    Wherever it goes back to, it is as if it had never been ahead.

    Raises:
        CodespecError: as many as the context was made for are in use.
    """

    def __init__(self, context: NativeContext) -> None:
        super().__init__(context)
        self._tokens: list[int] = []
        self._done = 0
        """Tokens that the states have seen; the others are decoded with what comes next."""
        self._begin = 0
        """Snapshots reach back to it, exclusive."""
        self._checkpoints: list[Checkpoint] = []
        self._reading = self._has_read = self._went_back = False
        self._read_to = 0  # the end of what was read last
        self._in_snapshot = False

    def decode(self, tokens: Sequence[int], last: int | None = None) -> Logits:
        """As ``LlamaSequence.decode``."""
        # What is verified has all its logits, and what is written otherwise follows what was written.
        self._reading = last is not None and (self._went_back or last < len(tokens))
        self._went_back = False
        logits = super().decode(tokens, last)
        if self._reading:
            self._read_to = self._n_past
        return logits

    def _chunks(self, count: int, wanted: int) -> Iterator[tuple[int, int]]:
        bounds = list(super()._chunks(count, wanted))
        start, end = bounds[-1]
        if wanted <= TAIL and end - start > 2 * TAIL:
            bounds[-1:] = [(start, end - TAIL), (end - TAIL, end)]
        return iter(bounds)

    def _decode_chunk(self, tokens: Sequence[int], wanted: int) -> Logits:
        waiting = self._tokens[self._done :]
        if waiting and (len(waiting) > AGAIN or len(waiting) + len(tokens) > self.context.batch_size):
            self._settle()
            waiting = []
        uncertain = len(tokens) > 1 and not self.context.snapshots
        self._keep_states(self._reading or self._has_read or uncertain)
        self._has_read = self._reading
        rows = [*waiting, *tokens] if waiting else tokens
        logits = self._advance(rows, wanted)
        self._tokens.extend(tokens)
        self._n_past = self._done
        return logits

    def _settle(self) -> None:
        """Decode what is to be decoded again.

        Raises:
            CodespecError, Aborted: as ``decode``; the sequence is as before the call.
        """
        while self._done < self._n_past:
            self._keep_states(True)
            self._advance(self._tokens[self._done : self._done + self.context.batch_size], 0)

    def _advance(self, tokens: Sequence[int], wanted: int) -> Logits:
        begin = self._done
        try:
            logits = self.context.decode_chunk(self.id, begin, tokens, wanted)
        except BaseException:
            self._put_back(begin)  # the states may have seen some of the tokens
            raise
        self._begin, self._done = begin, begin + len(tokens)
        self._in_snapshot = False
        return logits

    def _go_back(self, n_past: int) -> None:
        # Else a proposal was rejected.
        self._went_back = n_past <= self._read_to or self._n_past - n_past > LONGEST
        self._read_to = min(self._read_to, n_past)
        del self._tokens[n_past:]
        if n_past >= self._done:
            return
        near = n_past > self._begin and self._done - n_past <= self.context.snapshots
        if near and self.context.cells.remove(self.id, n_past):
            self._done = self._begin = n_past  # snapshots serve once
            self._in_snapshot = True
            self._checkpoints = [each for each in self._checkpoints if each.n_past <= n_past]
        else:
            self._put_back(n_past)

    def _put_back(self, most: int) -> None:
        """Have the states of the last checkpoint that is not beyond ``most`` tokens."""
        self._in_snapshot = False
        self._checkpoints = [each for each in self._checkpoints if each.n_past <= most]
        cells = self.context.cells
        while self._checkpoints:
            last = self._checkpoints[-1]
            if cells.restore_states(self.id, last.data) and cells.remove(self.id, last.n_past):
                self._done = self._begin = last.n_past
                return
            self._checkpoints.pop()
        cells.remove(self.id)
        self._done = self._begin = 0

    def _keep_states(self, here: bool) -> None:
        """Make a checkpoint where the states are, or (not ``here``) only if the last one is far behind."""
        done, kept = self._done, self._checkpoints
        last = kept[-1].n_past if kept else 0
        if done == last or (not here and done - last < AGAIN):
            return
        cells = self.context.cells
        kept.append(Checkpoint(done, cells.save_states(self.id), cells, not (self._reading or self._has_read)))
        most = max(2, min(CHECKPOINTS, CHECKPOINT_BYTES // max(1, kept[-1].data.nbytes)))
        # Most texts are not taken: the end of the prompt must not give way to places in them.
        if sum(each.written for each in kept) > most // 2:
            self._drop_one(written=True)
        elif len(kept) > most:
            self._drop_one(written=False)

    def _drop_one(self, written: bool) -> None:
        """Drop a checkpoint but the last ones: the further back, the further apart."""
        kept = self._checkpoints
        places = [0, *(each.n_past for each in kept)]
        gaps = [(places[at + 2] - places[at]) / (places[-1] - places[at + 1] + 1) for at in range(len(kept) - 1)]
        found = [at for at in range(len(gaps)) if kept[at].written is written]
        if not written:
            del found[-2:]  # the end of the prompt, and the place just before it
        del kept[min(found or range(len(gaps)), key=gaps.__getitem__)]

    def fork(self) -> RecurrentSequence:
        """Another sequence that shares this one's tokens so far; close it after use."""
        self._settle()
        if self._in_snapshot:  # of which a fork would have the states of the whole batch
            self._keep_states(True)
            self._put_back(self._done)
            self._settle()
        other = RecurrentSequence(self.context)
        self.context.cells.share(self.id, other.id)
        other._tokens, other._checkpoints = self._tokens.copy(), self._checkpoints.copy()
        other._n_past = other._done = self._done
        # Of what two sequences share neither may be moved back.
        self._begin = other._begin = self._done
        return other

    def decode_each(self, forks: Sequence[Target], tokens: Sequence[Sequence[int]]) -> Logits:
        """As ``LlamaSequence.decode_each``, but in a pass for each.

        In one pass AMX computes the matrices of recurrent layers for the first sequence alone (llama.cpp of
        llama-cpp-python 0.3.36).
        """
        before = [fork.n_past for fork in forks]
        try:
            return np.concatenate([fork.decode(each).copy() for fork, each in zip(forks, tokens, strict=True)])
        except BaseException:
            for fork, n_past in zip(forks, before, strict=True):
                fork.rollback(n_past)
            raise

    def save(self) -> npt.NDArray[np.uint8]:
        """As ``LlamaSequence.save``, with the tokens and the last checkpoints."""
        self._settle()
        cells = super().save()
        kept = self._checkpoints[-SAVED:]
        numbers = [len(cells), *(number for each in kept for number in (each.n_past, len(each.data)))]
        parts = [cells, *(each.data for each in kept), _bytes(numbers), _bytes(self._tokens)]
        return np.concatenate([*parts, _bytes([len(kept), len(self._tokens)])])

    def restore(self, data: npt.NDArray[np.uint8], n_past: int) -> None:
        """As ``LlamaSequence.restore``."""
        kept, count = _numbers(data[-16:])
        rest, tokens = data[: -16 - 8 * count], _numbers(data[-16 - 8 * count : -16])
        size, *pairs = _numbers(rest[-8 * (1 + 2 * kept) :])
        super().restore(data[:size], n_past)
        ends = list(accumulate([size, *pairs[1::2]]))
        self._checkpoints = [
            Checkpoint(place, data[start:end].copy(), self.context.cells)
            for place, (start, end) in zip(pairs[::2], pairwise(ends), strict=True)
        ]
        self._tokens = tokens
        self._done = self._begin = n_past


def _bytes(numbers: Sequence[int]) -> npt.NDArray[np.uint8]:
    return np.array(numbers, np.int64).view(np.uint8)


def _numbers(data: npt.NDArray[np.uint8]) -> list[int]:
    return [int(each) for each in data.copy().view(np.int64)]
