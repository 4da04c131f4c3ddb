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

from codespec.llama.native_context import NativeContext
from codespec.llama.sequence import LlamaSequence
from codespec.protocols import CodespecError, Logits, Target

SNAPSHOTS = 8
"""States of the last tokens of a batch that a context is asked to keep beside the present one, each as large."""
CHECKPOINTS, CHECKPOINT_BYTES = 16, 256 << 20
"""Checkpoints that a sequence keeps at most, and their bytes; two it keeps whatever their size."""
SAVED = 3
"""Checkpoints that are saved with a sequence. Each takes tens of megabytes on a large model."""
AGAIN = 8
"""Tokens that are decoded again beside others at most: so many rows more cost little."""
TAIL = 8
"""Tokens at the end of a long text that are a batch of their own, so that a checkpoint lies close to its end."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The states of all recurrent layers after the first ``n_past`` tokens; ``data`` is uint8 [bytes]."""

    n_past: int
    data: npt.NDArray[np.uint8]


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
        self._in_snapshot = False

    def decode(self, tokens: Sequence[int], last: int | None = None) -> Logits:
        """As ``LlamaSequence.decode``."""
        # What is verified has all its logits, and what is written otherwise follows what was written.
        self._reading = last is not None and (self._went_back or len(tokens) > 1)
        self._went_back = False
        return super().decode(tokens, last)

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
        self._went_back = True
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
        kept.append(Checkpoint(done, self.context.cells.save_states(self.id)))
        most = max(2, min(CHECKPOINTS, CHECKPOINT_BYTES // max(1, kept[-1].data.nbytes)))
        if len(kept) > most:
            # The further back, the further apart.
            places = [0, *(each.n_past for each in kept)]
            gaps = [(places[at + 1] - places[at - 1]) / (done - places[at] + 1) for at in range(1, len(kept))]
            del kept[gaps.index(min(gaps))]

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

    def decode_each(self, forks: Sequence[Target], tokens: Sequence[int]) -> Logits:
        """As ``LlamaSequence.decode_each``, but in a pass for each.

        In one pass AMX computes the matrices of recurrent layers for the first sequence alone (llama.cpp of
        llama-cpp-python 0.3.36).
        """
        before = [fork.n_past for fork in forks]
        try:
            return np.concatenate([fork.decode([token]).copy() for fork, token in zip(forks, tokens, strict=True)])
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
            Checkpoint(place, data[start:end].copy())
            for place, (start, end) in zip(pairs[::2], pairwise(ends), strict=True)
        ]
        self._tokens = tokens
        self._done = self._begin = n_past

    def shift(self, start: int, end: int, to: int) -> None:
        """Not possible: the states depend on all tokens so far.

        Raises:
            CodespecError: always.
        """
        raise CodespecError(f"{self.context.model.path}: text that has moved cannot be moved in its memory")


def _bytes(numbers: Sequence[int]) -> npt.NDArray[np.uint8]:
    return np.array(numbers, np.int64).view(np.uint8)


def _numbers(data: npt.NDArray[np.uint8]) -> list[int]:
    return [int(each) for each in data.copy().view(np.int64)]
