"""A model's own heads for multi-token prediction (MTP) as a draft (arXiv 2412.19437, section 2.2).

A head is one layer. It reads a token beside the hidden state that the model had one token earlier, and predicts the
next token; its own state serves for the tokens behind. llama.cpp runs it in a context of its own, and gives the hidden
states by functions that only its C++ interface has (``src/llama-ext.h``; how it uses them: ``common/speculative.cpp``).
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from codespec.llama.examine import key_of, survives
from codespec.llama.gguf import read_header
from codespec.llama.native_context import NativeContext
from codespec.llama.probe import fingerprint
from codespec.llama.runtime import decode_failure, library
from codespec.llama.sequence import LlamaSequence
from codespec.llama.verdicts import Verdicts
from codespec.protocols import CodespecError, Logits

_DECODE = 1  # LLAMA_PROCESS_TYPE_DECODE
_NEVER = sys.maxsize
_VERDICTS = Verdicts("heads.json")


class _Functions(NamedTuple):
    switch: Any
    rows: Any
    row: Any


@cache
def _functions() -> _Functions | None:
    """Those of the C++ interface, by the names that GCC and Clang give them; None where there are none."""
    found: Any = getattr(library(), "_lib", None)
    try:
        switch = found._Z26llama_set_embeddings_nextnP13llama_contextbb
        rows = found._Z26llama_get_embeddings_nextnP13llama_context
        row = found._Z30llama_get_embeddings_nextn_ithP13llama_contexti
    except AttributeError:
        return None
    switch.argtypes, switch.restype = [ctypes.c_void_p, ctypes.c_bool, ctypes.c_bool], None
    rows.argtypes, rows.restype = [ctypes.c_void_p], ctypes.c_void_p
    row.argtypes, row.restype = [ctypes.c_void_p, ctypes.c_int32], ctypes.c_void_p
    return _Functions(switch, rows, row)


def heads_work() -> bool:
    """Whether this llama.cpp gives what heads read."""
    return _functions() is not None and hasattr(library(), "llama_process")


def has_heads(path: Path) -> bool:
    """Whether a model has heads that predict further tokens (``llama.heads``) with which llama.cpp works."""
    try:
        if not heads_work() or not read_header(path).number("nextn_predict_layers"):
            return False
    except CodespecError:
        return False  # whoever loads it says why
    key = f"{key_of(path)} {fingerprint()}"
    works = _VERDICTS.all().get(key)
    if works is None:
        try:
            works = survives(path, "decode_with_heads")
        except CodespecError:
            return False  # the model works without them; it is tried again next time
        _VERDICTS.remember(key, works)
    return works


class HiddenStates:
    """The hidden states of the target after each token of one of its sequences, as far as they are known.

    Attributes:
        rows: float16 [tokens, width].
        known: bool [tokens].
    """

    def __init__(self, sequence: LlamaSequence) -> None:
        functions, context = _functions(), sequence.context
        assert functions is not None
        self._pointer, self._id, self._functions = context.pointer, sequence.id, functions
        width = int(library().llama_model_n_embd_out(context.model.pointer))
        self.rows = np.zeros((context.length, width), np.float16)
        self.known = np.zeros(context.length, np.bool_)
        functions.switch(self._pointer, True, False)
        context.on_decoded, context.on_restored = self._take, self._forget

    def _take(self, sequence_id: int, position: int, count: int) -> None:
        if sequence_id != self._id:
            return
        new = _floats(self._functions.rows(self._pointer), count * self.rows.shape[1])
        self.rows[position : position + count] = new.reshape(count, -1)
        self.known[position : position + count] = True
        self.known[position + count :] = False

    def _forget(self, sequence_id: int) -> None:
        if sequence_id == self._id:
            self.known[:] = False


class HeadsSequence(LlamaSequence):
    """The heads of a target as a model whose tokens are the target's, for its main sequence.

    Args:
        context: of the heads.
        hidden: states of the target.
    """

    def __init__(self, context: NativeContext, hidden: HiddenStates) -> None:
        super().__init__(context)
        functions = _functions()
        assert functions is not None
        self._hidden, self._functions = hidden, functions
        self._tokens: list[int] = []
        self._guessed = _NEVER  # tokens from there on were read beside the heads' own states
        self._own: npt.NDArray[np.float32] | None = None
        functions.switch(context.pointer, True, False)
        self._batch = library().llama_batch_ext_init(context.pointer)

    def decode(self, tokens: Sequence[int], last: int | None = None) -> Logits:
        """Append ``tokens``; the logits after the last of them, float32 [1, V].

        Raises:
            ContextFull, CodespecError, Aborted: as ``LlamaSequence.decode``, and where the state of the target that the
                last token is read beside is not known: it did not decode the token before.
        """
        self._check(len(tokens), last)
        hidden, before = self._hidden, self._n_past
        every = [*self._tokens, *tokens]
        if len(tokens) == 1 and before and not hidden.known[before - 1]:  # behind proposed tokens
            if self._own is None:
                raise CodespecError(f"{self.context.model.path}: its heads have no state to begin with")
            self._guessed = min(self._guessed, before)
            return self._read(every, before, self._own.reshape(1, -1))
        # Read again what was read beside own states, and leave out what the target read before it was asked for states.
        begin = min(before, self._guessed)
        unknown = np.flatnonzero(~hidden.known[max(0, begin - 1) : len(every) - 1])
        if len(unknown):
            begin = max(0, begin - 1) + int(unknown[-1]) + 2
            if begin >= len(every):
                raise CodespecError(f"{self.context.model.path}: its heads have no state to begin with")
        self.context.cells.remove(self.id, 0 if len(unknown) else begin)
        self._guessed = _NEVER
        first = np.zeros((1, hidden.rows.shape[1])) if not begin else hidden.rows[begin - 1 : begin]
        states = np.concatenate([first, hidden.rows[begin : len(every) - 1]]).astype(np.float32)
        return self._read(every, begin, states)

    def _read(self, every: list[int], begin: int, states: npt.NDArray[np.float32]) -> Logits:
        size = self.context.batch_size
        self._tokens, self._n_past, self._own = every[:begin], begin, None
        for start in range(begin, len(every), size):
            part = every[start : start + size]
            self._process(part, start, states[start - begin :])
            self._tokens += part
            self._n_past = len(self._tokens)
        row, api, context = len(part) - 1, library(), self.context
        self._own = _floats(self._functions.row(context.pointer, row), states.shape[1]).copy()
        logits = ctypes.cast(api.llama_get_logits_ith(context.pointer, row), ctypes.c_void_p)
        return _floats(logits.value, context.model.vocabulary.size).reshape(1, -1)

    def _process(self, tokens: Sequence[int], start: int, states: npt.NDArray[np.float32]) -> None:
        api, batch, width = library(), self._batch, states.shape[1]
        api.llama_batch_ext_clear(batch)
        for row, token in enumerate(tokens):
            index = api.llama_batch_ext_add_token(batch, self.id, token)
            position = ctypes.c_int32(start + row)
            api.llama_batch_ext_set_pos(batch, index, ctypes.byref(position))
            state = states[row].ctypes.data_as(ctypes.POINTER(ctypes.c_float))
            api.llama_batch_ext_set_embd_token(batch, index, api.llama_embd(state, 1, width))
        api.llama_batch_ext_set_output_logits(batch, len(tokens) - 1, True)
        status = api.llama_process(self.context.pointer, _DECODE, batch)
        if status != 0:
            self.context.cells.remove(self.id, start)
            raise decode_failure(status, self.context.length)

    def _go_back(self, n_past: int) -> None:
        self.context.cells.remove(self.id, n_past)
        del self._tokens[n_past:]
        self._own = None
        if n_past <= self._guessed:
            self._guessed = _NEVER

    def close(self) -> None:
        """As ``LlamaSequence.close``."""
        if self._batch:
            library().llama_batch_ext_free(self._batch)
            self._batch = None
        super().close()


def _floats(address: int | None, count: int) -> npt.NDArray[np.float32]:
    if not address:
        raise CodespecError("llama.cpp has no hidden states")
    floats = (ctypes.c_float * count).from_address(address)
    return np.frombuffer(floats, np.float32)  # type: ignore[call-overload,no-any-return]
