"""Whether a model's passes of one row and of many compute the same, so that a draft cannot change the text.

Two kernels of llama.cpp depend on how many rows a pass has (ggml-cpu, ``ops.cpp`` and ``sgemm.cpp``): without flash
attention a single row goes another way than several; with it a single row after 512 tokens is split among threads, and
64 rows and more are computed in tiles. The last two are left out where keys and values are of different types, or of
another than ``f16`` and ``f32``. Then the matrices decide, and those are tried: AMX's kernels differ, say.
"""

from __future__ import annotations

import numpy as np

from codespec.llama.context import Context
from codespec.llama.defaults import EXACT_KV
from codespec.llama.examine import key_of
from codespec.llama.model import Model
from codespec.llama.probe import fingerprint
from codespec.llama.verdicts import Verdicts

_VERDICTS = Verdicts("agreement.json")

BEFORE, COMPARED, MANY = 8, 4, 72
"""Tokens: before those that are compared, of these, and of a pass of many rows."""


def rows_agree(model: Model) -> bool:
    """Whether logits are the same to the last bit, alone and among others; found out once for a file on a machine."""
    key = f"{key_of(model.path)} {fingerprint()}"
    known = _VERDICTS.all().get(key)
    if known is None:
        known = _agree(model)
        _VERDICTS.remember(key, known)
    return known


def _agree(model: Model) -> bool:
    size = model.vocabulary.size
    tokens = [7919 * place % size for place in range(BEFORE + MANY)]
    compared = tokens[BEFORE : BEFORE + COMPARED]
    # With other numbers of threads, too: decoding uses fewer of them while other programs need the CPUs.
    with Context(model, context_length=256, threads=1, kv_type=EXACT_KV, flash_attention="on") as context:
        context.decode_chunk(0, 0, tokens[:BEFORE], 1)
        alone = [np.array(context.decode_chunk(0, BEFORE + at, [each], 1)) for at, each in enumerate(compared)]
    with Context(model, context_length=256, kv_type=EXACT_KV, flash_attention="on") as context:
        for rows in (1, 2, COMPARED, MANY):
            sequence = context.sequence()
            sequence.decode(tokens[:BEFORE], 1)
            some = np.array(sequence.decode(tokens[BEFORE : BEFORE + rows]))[:COMPARED]
            sequence.close()
            if not np.array_equal(np.concatenate(alone)[: len(some)], some):
                return False
    return True
