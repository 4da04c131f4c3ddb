"""A sequence of a context: it decodes tokens, rolls back, forks, and is saved and restored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from codespec.llama.native_context import NativeContext
from codespec.protocols import CodespecError, ContextFull, Logits, Target


class LlamaSequence:
    """One sequence of a context; implements ``protocols.Target``. Made by ``Context.sequence``.

    Raises:
        CodespecError: as many as the context was made for are in use.
    """

    def __init__(self, context: NativeContext) -> None:
        self.context = context
        self.id = context.take()
        self._n_past = 0

    @property
    def n_past(self) -> int:
        """How many tokens have been decoded and kept."""
        return self._n_past

    def decode(self, tokens: Sequence[int], last: int | None = None) -> Logits:
        """Append ``tokens``; logits float32 [last or len(tokens), V], valid until the context's next decode.

        More tokens than one batch holds are decoded batch by batch; ``last`` may then be at most one batch.

        Raises:
            ContextFull: no room for ``tokens``; the sequence is as before the call.
            CodespecError: decoding failed; the sequence is as before the call.
            Aborted: the context's cancellation was set; the sequence is as before the call.
        """
        wanted = self._check(len(tokens), last)
        *chunks, (start, end) = self._chunks(len(tokens), wanted)
        if not chunks:
            return self._decode_chunk(tokens, wanted)
        begin = self._n_past
        try:
            for chunk in chunks:
                self._decode_chunk(tokens[slice(*chunk)], 0)
            return self._decode_chunk(tokens[start:end], wanted)
        except BaseException:
            self.rollback(begin)
            raise

    def _check(self, count: int, last: int | None) -> int:
        """How many logits are wanted of ``count`` tokens, for which there is room."""
        wanted = count if last is None else last
        if not 0 <= wanted <= count or not count:
            raise ValueError(f"{count} tokens to decode, logits of {wanted} wanted")
        if self._n_past + count > self.context.room:
            raise ContextFull(
                f"{self._n_past + count:,} tokens do not fit into a context of {self.context.length:,}; "
                "set a larger `context` or shorten the prompt"
            )
        return wanted

    def _decode_chunk(self, tokens: Sequence[int], wanted: int) -> Logits:
        """``decode``, of one batch."""
        logits = self.context.decode_chunk(self.id, self._n_past, tokens, wanted)
        self._n_past += len(tokens)
        return logits

    def _chunks(self, count: int, wanted: int) -> Iterator[tuple[int, int]]:
        """Bounds of the batches, at least one; the last holds every row whose logits are wanted."""
        size = self.context.batch_size
        # Where passes are padded the prefill is cut at fixed places of the sequence, wherever it begins.
        aligned = self.context.padded and count > size
        first = size - self._n_past % size if aligned else count % size or size
        bounds = [0, *range(first, count, size), count]
        if count - bounds[-2] < wanted:
            raise ValueError(f"logits of {wanted} tokens wanted, the last batch holds {count - bounds[-2]}")
        return pairwise(bounds)

    def rollback(self, n_past: int) -> None:
        """Forget everything after the first ``n_past`` tokens.

        Raises:
            ValueError: there are fewer.
            CodespecError: the memory of this model cannot go back there; the sequence is as before the call.
        """
        if not 0 <= n_past <= self._n_past:
            raise ValueError(f"cannot roll back to {n_past}: {self._n_past} tokens are held")
        if n_past < self._n_past:
            self._go_back(n_past)
            self._n_past = n_past

    def _go_back(self, n_past: int) -> None:
        if not self.context.cells.remove(self.id, n_past):
            raise CodespecError(f"{self.context.model.path}: its memory cannot be rolled back; choose another model")

    def fork(self) -> LlamaSequence:
        """Another sequence that shares this one's tokens so far; close it after use."""
        other = LlamaSequence(self.context)
        self.context.cells.share(self.id, other.id)
        other._n_past = self._n_past
        return other

    def decode_each(self, forks: Sequence[Target], tokens: Sequence[Sequence[int]]) -> Logits:
        """Append tokens to each of several sequences of this context, in one pass; logits float32 [all tokens, V].

        Raises:
            ContextFull, CodespecError, Aborted: as ``decode``; every sequence is as before the call.
        """
        context = self.context
        own = [fork for fork in forks if isinstance(fork, LlamaSequence) and fork.context is context]
        if len(own) != len(forks) or not own:
            raise ValueError("these are not sequences of one context")
        if any(fork.n_past + len(each) > context.length for fork, each in zip(own, tokens, strict=True)):
            raise ContextFull(f"the context of {context.length:,} tokens is full; set a larger `context`")
        if len(own) == 1:
            return own[0].decode(tokens[0])
        logits = context.decode_rows([fork.id for fork in own], [fork.n_past for fork in own], tokens)
        for fork, each in zip(own, tokens, strict=True):
            fork._n_past += len(each)
        return logits

    def save(self) -> npt.NDArray[np.uint8]:
        """The KV cache of all its tokens, to be put back by ``restore``, here or in another context that is alike."""
        return self.context.cells.save(self.id)

    def restore(self, data: npt.NDArray[np.uint8], n_past: int) -> None:
        """Replace the KV cache by one that ``save`` returned for ``n_past`` tokens.

        Raises:
            CodespecError: llama.cpp does not take it, or there is no room; the sequence is empty then.
        """
        self.rollback(0)
        if not self.context.cells.restore(self.id, data):
            raise CodespecError(f"{self.context.model.path}: a saved KV cache could not be restored")
        self.context.on_restored(self.id)
        self._n_past = n_past

    def close(self) -> None:
        """Give the sequence back to its context; a second call does nothing."""
        if self.id >= 0:
            self.context.release(self.id)
            self.id = -1
