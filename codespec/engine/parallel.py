"""Sequences that several texts for one prompt are decoded in, side by side."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from codespec.llama.context import Context
from codespec.llama.runtime import Cancellation
from codespec.llama.sequence import LlamaSequence

TOGETHER = 3
"""Texts that are decoded in one batch at most."""
SPARE = 512
"""KV cells for the second and further texts together."""
BATCH = 32


class ParallelSequences:
    """A context for the parallel sequences, made when it is first needed.

    They are not in the target's own context, where the room for them would slow every forward pass.

    Args:
        target: the target's context.
    """

    def __init__(self, target: Context) -> None:
        self._target = target
        self._made: Context | None = None

    def cancellable(self, cancellation: Cancellation) -> AbstractContextManager[None]:
        """As ``Context.cancellable``."""
        return self._context().cancellable(cancellation)

    def of(self, sequence: LlamaSequence) -> Callable[[], LlamaSequence]:
        """A function that makes copies of ``sequence``, of the target, as it is when the first one is made."""
        first: list[LlamaSequence] = []

        def fork() -> LlamaSequence:
            if first:
                return first[0].fork()
            made = self._context().sequence()
            try:
                made.restore(sequence.save(), sequence.n_past)
            except BaseException:
                made.close()
                raise
            first.append(made)
            return made

        return fork

    def close(self) -> None:
        """Free the memory; a second call does nothing."""
        if self._made is not None:
            self._made.close()
            self._made = None

    def _context(self) -> Context:
        if self._made is None:
            self._made = self._target.alike(self._target.length, TOGETHER, SPARE, BATCH)
        if self._made.adapter_key != self._target.adapter_key:
            self._made.use(self._target.adapter, self._target.adapter_scale)
        return self._made
