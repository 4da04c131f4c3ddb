"""A model's weights in eight bits instead of four, where this machine reads prompts quicker so.

llama.cpp multiplies by many rows at a time with weights that it has repacked. It repacks neither Q4_1 nor Q5_1. The
same weights as Q8_0 take up half as much memory again, and lose next to nothing by it (docs/benchmarks.md).
"""

from __future__ import annotations

import ctypes
import itertools
import os
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter

from codespec.llama.gguf import read_header
from codespec.models.checksums import Report
from codespec.protocols import CodespecError

LARGEST = 500e6
"""Bytes of a file that is tried: a larger model is read at the speed of the memory, and its user chose the size."""
WORTH = 1.15
"""Times as fast as the file that came."""
READ_OF, PASSES_THAT_VERIFY, SINGLE_PASSES = 0.25, 2, 8
"""A request while somebody types: this part of the prompt is new, and so many passes write a line."""
ROUNDS = 3
READ, VERIFIED = 256, 8
"""Tokens of a prompt, and of a pass that verifies."""
_TRYING = "comparing with 8 bits"
_SLOW = {3, 7}  # Q4_1 and Q5_1 of enum ggml_type
_Q8_0 = 7  # of enum llama_ftype


def quicker(path: Path, made: Path, report: Report) -> bool:
    """Whether ``made`` now holds the model at ``path`` in a form that this machine reads quicker; it exists only then.

    Takes some seconds for 100 MB. Where anything fails the answer is no.
    """
    try:
        if path.stat().st_size > LARGEST or not _is_slow(path):
            return False
        steps = itertools.count()

        def tell() -> None:
            report(_TRYING, next(steps), ROUNDS + 2)

        tell()
        if _requantize(path, made) and _pays(_times(path, made, tell)):
            return True
    except (CodespecError, OSError, ImportError, ValueError):
        pass
    made.unlink(missing_ok=True)
    return False


def _is_slow(path: Path) -> bool:
    """Whether most of a file's bytes are of a kind that is not repacked."""
    sizes: Counter[int] = Counter()
    for tensor in read_header(path).tensors.values():
        sizes[tensor.kind] += tensor.size
    return sizes.most_common(1)[0][0] in _SLOW if sizes else False


def _requantize(path: Path, made: Path) -> bool:
    from codespec.llama.runtime import library

    api = library()
    wanted = api.llama_model_quantize_default_params()
    wanted.ftype, wanted.allow_requantize = _Q8_0, True
    return bool(api.llama_model_quantize(os.fsencode(path), os.fsencode(made), ctypes.byref(wanted)) == 0)


def _times(path: Path, made: Path, tell: Callable[[], None]) -> list[tuple[float, float, float]]:
    """For each model the medians of the seconds that reading, verifying and a single token take, measured by turns;
    ``tell`` is called before each."""
    from codespec.llama.context import Context
    from codespec.llama.model import Model

    with ExitStack() as held:
        models = [held.enter_context(Model(path)) for path in (path, made)]
        contexts = [held.enter_context(Context(model, context_length=2 * READ)) for model in models]
        sequences = [context.sequence() for context in contexts]
        taken: list[list[tuple[float, float, float]]] = [[] for _ in models]
        for _ in range(ROUNDS):
            tell()
            for sequence, found in zip(sequences, taken, strict=True):
                began = perf_counter()
                sequence.decode(range(1, READ + 1), last=1)
                read = perf_counter()
                sequence.decode(range(1, VERIFIED + 1))
                verified = perf_counter()
                sequence.decode([1])
                found.append((read - began, verified - read, perf_counter() - verified))
                sequence.rollback(0)
        tell()
        return [tuple(map(median, zip(*each, strict=True))) for each in taken]


def _pays(times: list[tuple[float, float, float]]) -> bool:
    before, now = (READ_OF * each[0] + PASSES_THAT_VERIFY * each[1] + SINGLE_PASSES * each[2] for each in times)
    return before >= WORTH * now
