"""The trials of models that run in child processes, since they may crash: see ``examine`` and ``probe``."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from codespec.llama.context import Context
from codespec.llama.heads import HeadsSequence, HiddenStates
from codespec.llama.model import Model
from codespec.protocols import CodespecError

MEMORY = 4 << 30
"""Bytes that loading may take besides the weights: the sizes in a bad file may be anything."""
BATCHES = (1, 2, 16, 32)


def load_and_decode(path: str) -> None:
    """Load a file without its weights being repacked, and decode a token; within bounded memory."""
    _limit_memory()
    with (
        suppress(CodespecError),
        Model(path, plain_buffers=True) as model,
        Context(model, context_length=64) as context,
    ):
        context.sequence().decode([0])


def decode_with_heads(path: str) -> None:
    """Have a model's own heads predict a token, and another one behind it.

    Raises:
        CodespecError: they cannot.
    """
    with (
        Model(path, plain_buffers=True, heads=True) as model,
        Context(model, context_length=64) as context,
        context.alike(64, heads=True) as own,
    ):
        sequence = context.sequence()
        heads = HeadsSequence(own, HiddenStates(sequence))
        sequence.decode([0, 1, 2])
        for tokens in ([0, 1, 2, 3], [4]):
            if not np.isfinite(heads.decode(tokens, 1)).all():
                raise CodespecError(f"{path}: its heads compute no numbers")
        heads.close()


def _limit_memory() -> None:
    with suppress(ImportError, OSError, ValueError):  # none on Windows
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, hard))


def decode_batches(path: str) -> None:
    """Decode a few batches with a model."""
    with Model(path) as model, Context(model, context_length=128) as context:
        sequence = context.sequence()
        for count in BATCHES:
            sequence.decode([token % model.vocabulary.size for token in range(count)])
