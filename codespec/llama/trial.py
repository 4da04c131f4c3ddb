"""The trials of models that run in child processes, since they may crash: see ``examine`` and ``probe``."""

from __future__ import annotations

from contextlib import suppress

from codespec.llama.context import Context
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
