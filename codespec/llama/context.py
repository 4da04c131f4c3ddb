"""A context of a model: sequences that decode tokens, roll back, fork, and can be aborted from another thread."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from codespec.llama.adapter import Adapter
from codespec.llama.defaults import KV_TYPE, LLAMA_CHOOSES, attention, check_memory, default_threads
from codespec.llama.devices import ResolvedSetting
from codespec.llama.model import Model
from codespec.llama.rows import Rows
from codespec.llama.runtime import Cancellation, abort_callback, clear_errors, decode_failure, last_errors, library
from codespec.llama.threads import CpuLoad, Threads, own_cpus
from codespec.protocols import CodespecError, ContextFull, Logits, Target

BATCH = 512
# In exact mode every decode has at least 2 rows and fewer than 64: CPU kernels differ at 1 row and from 64 on.
EXACT_MIN_ROWS = 2
EXACT_CHUNK = 32

# enum ggml_type
KV_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8, "bf16": 30}
FLASH_ATTENTION = {LLAMA_CHOOSES: -1, "off": 0, "on": 1}  # enum llama_flash_attn_type


class Context:
    """Memory for the tokens of one or more sequences of a model.

    Not for use from two threads at a time, except ``Cancellation.set``.

    Args:
        context_length: tokens of all sequences together; 0 is what the model was trained with.
        sequences: how many sequences at most.
        spare: room for this many tokens more in all, for what forks of a sequence add each; no sequence gets longer.
            It slows every pass down a little.
        batch: tokens that are decoded at a time at most; memory for their logits is kept.
        threads: for decoding; 0 is chosen by the size of the model, see ``default_threads``, and on a CPU fewer while
            other programs keep CPUs busy, see ``Threads``.
        kv_type: of the key and value cache: ``auto`` (``f16``), ``f32``, ``bf16``, ``q8_0``, ``q4_0`` …
        flash_attention: ``on``, ``off`` or ``auto``, see ``attention``; a quantized cache needs it.
        exact: same logits whatever the tokens are batched with (CPU, about 1.5 times slower at one token).

    Raises:
        CodespecError: too little memory for a context of that length.

    Attributes:
        adapter: that it decodes with, and its ``adapter_scale``; None without.
        choices: of ``kv_type``, ``flash_attention`` and ``threads``, as they are in force.
        threads: at most.
        threads_now: of the latest pass; ``on_threads`` is called with every other number.
        follows: chooses their number for each pass; None where it stays as it is.
    """

    def __init__(
        self,
        model: Model,
        *,
        context_length: int = 0,
        sequences: int = 1,
        spare: int = 0,
        batch: int = BATCH,
        threads: int = 0,
        exact: bool = False,
        kv_type: str = "auto",
        flash_attention: str = "auto",
    ) -> None:
        self.model = model
        self.exact = exact
        self.pointer: Any = None
        self.adapter: Adapter | None = None
        self.adapter_scale = 1.0
        api = self._api = library()
        length = context_length or model.trained_context
        chosen_type = KV_TYPE if kv_type == "auto" else ResolvedSetting(kv_type)
        self.kv_type = kv_type = str(chosen_type.value)
        automatic = flash_attention == "auto"
        chosen_attention = attention(model, length, kv_type, exact) if automatic else ResolvedSetting(flash_attention)
        self.flash_attention = str(chosen_attention.value)
        chosen_threads = ResolvedSetting(threads) if threads else default_threads(model)
        self.threads = self.threads_now = int(chosen_threads.value)
        # In exact mode nothing may depend on the machine, and beside a GPU the CPU has little to do.
        follows = not threads and self.threads > 1 and not exact and not model.gpu_layers
        self.follows = Threads(self.threads, len(own_cpus()), CpuLoad().others) if follows else None
        self.on_threads: Callable[[int], None] = lambda count: None
        self.choices = {"kv_type": chosen_type, "flash_attention": chosen_attention, "threads": chosen_threads}
        check_memory(model, length + spare)
        parameters = api.llama_context_default_params()
        parameters.n_ctx = length + spare
        parameters.n_batch = parameters.n_ubatch = min(batch, length)
        parameters.n_seq_max = sequences
        parameters.kv_unified = True
        parameters.type_k = parameters.type_v = KV_TYPES[kv_type]
        parameters.flash_attn_type = FLASH_ATTENTION[self.flash_attention]
        parameters.no_perf = True
        parameters.n_threads = parameters.n_threads_batch = self.threads
        parameters.abort_callback = abort_callback()
        clear_errors()
        self.pointer = api.llama_init_from_model(model.pointer, parameters)
        if not self.pointer:
            reason = (last_errors() or ["no reason given"])[-1][:200]
            raise CodespecError(
                f"{model.path}: no context of {length:,} tokens could be made ({reason}); set a smaller `context`"
            )
        self.length: int = api.llama_n_ctx(self.pointer) - spare
        self.memory = api.llama_get_memory(self.pointer)
        self.batch_size: int = EXACT_CHUNK if exact else api.llama_n_batch(self.pointer)
        # Beside the tokens of a sequence there must be room for the rows that fill a pass up.
        self.room = self.length - (EXACT_MIN_ROWS - 1 if exact else 0)
        self.abort_data = Cancellation()
        self._install(self.abort_data)
        self._free = list(range(sequences - 1, -1, -1))
        self._rows = Rows(max(self.batch_size, EXACT_MIN_ROWS), model.vocabulary.size)

    def _install(self, cancellation: Cancellation) -> None:
        # The reference keeps the flag's memory alive as long as native code may read it.
        self.abort_data = cancellation
        self._api.llama_set_abort_callback(self.pointer, abort_callback(), ctypes.c_void_p(cancellation.address))

    def alike(
        self, length: int, sequences: int = 1, spare: int = 0, batch: int = BATCH, follow: bool = True
    ) -> Context:
        """Another context of the same model, with the same settings and a length of its own, without an adapter.

        Args:
            follow: False: always with as many threads as on an idle machine.

        Raises:
            CodespecError: too little memory.
        """
        return Context(
            self.model,
            context_length=length,
            sequences=sequences,
            spare=spare,
            batch=batch,
            threads=0 if follow and self.follows is not None else self.threads,
            exact=self.exact,
            kv_type=self.kv_type,
            flash_attention=self.flash_attention,
        )

    def use(self, adapter: Adapter | None, scale: float = 1.0) -> None:
        """Decode with a LoRA adapter of the model from now on, or without one: None, or a scale of 0.

        The KV caches of the sequences were computed with the previous adapter: roll them back.
        """
        if scale == 0:
            adapter = None
        api = self._api
        if adapter is None:
            api.llama_set_adapters_lora(self.pointer, None, 0, None)
        else:
            adapters = (api.llama_adapter_lora_p_ctypes * 1)(adapter.pointer)
            api.llama_set_adapters_lora(self.pointer, adapters, 1, (ctypes.c_float * 1)(scale))
        if self.adapter is not None:
            self.adapter.users.discard(self)
        if adapter is not None:
            adapter.users.add(self)
        self.adapter, self.adapter_scale = adapter, scale

    @property
    def adapter_key(self) -> str:
        """A key of the adapter and its scale, by which KV caches are told apart; empty without an adapter."""
        return f"{self.adapter.key} {self.adapter_scale!r}" if self.adapter is not None else ""

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

    def sequence(self) -> LlamaSequence:
        """A new, empty sequence.

        Raises:
            CodespecError: as many as the context was made for are in use.
        """
        if not self._free:
            raise CodespecError("every sequence of this context is in use; close one or make it with more")
        return LlamaSequence(self, self._free.pop())

    def release(self, sequence_id: int) -> None:
        """Drop a sequence's tokens and free its slot."""
        if self.pointer:
            self._api.llama_memory_seq_rm(self.memory, sequence_id, -1, -1)
            self._free.append(sequence_id)

    def decode_chunk(self, sequence_id: int, position: int, tokens: Sequence[int], last: int) -> Logits:
        """Decode at most ``batch_size`` tokens at ``position``; logits of the last ``last`` rows.

        Raises:
            Aborted: the flag was set; nothing of the chunk remains.
            CodespecError: the context is full (``ContextFull``), or decoding failed; nothing of the chunk remains.
        """
        count = rows = len(tokens)
        if self.exact:
            rows = max(count, EXACT_MIN_ROWS)
        batch = self._rows.of_one(tokens, rows, sequence_id, position, last)
        self._choose_threads()
        status = self._api.llama_decode(self.pointer, batch)
        if status != 0:
            self._api.llama_memory_seq_rm(self.memory, sequence_id, position, -1)
            raise decode_failure(status, self.length)
        if rows > count:
            self._api.llama_memory_seq_rm(self.memory, sequence_id, position + count, -1)
        return self._rows.logits(self.pointer, last)

    def decode_rows(self, sequences: Sequence[LlamaSequence], tokens: Sequence[int]) -> Logits:
        """Decode one token at the end of each of several sequences, at most ``batch_size``; logits float32 [n, V].

        Raises:
            Aborted, CodespecError: as ``decode_chunk``.
        """
        batch = self._rows.of_each(tokens, [each.id for each in sequences], [each.n_past for each in sequences])
        self._choose_threads()
        status = self._api.llama_decode(self.pointer, batch)
        if status != 0:
            for each in sequences:
                self._api.llama_memory_seq_rm(self.memory, each.id, each.n_past, -1)
            raise decode_failure(status, self.length)
        return self._rows.logits(self.pointer, len(tokens))

    @property
    def crowded(self) -> bool:
        """Whether other programs leave too few CPUs for all threads."""
        return self.follows is not None and self.follows.count() < self.threads

    def _choose_threads(self) -> None:
        count = self.follows.count() if self.follows is not None else self.threads_now
        if count != self.threads_now:
            self._api.llama_set_n_threads(self.pointer, count, count)
            self.threads_now = count
            self.on_threads(count)

    def close(self) -> None:
        """Free the memory; a second call does nothing."""
        if self.pointer:
            self._rows.clear()
            if self.adapter is not None:
                self.adapter.users.discard(self)
            self._api.llama_free(self.pointer)
            self.pointer = None

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LlamaSequence:
    """One sequence of a context; implements ``protocols.Target``. Made by ``Context.sequence``."""

    def __init__(self, context: Context, sequence_id: int) -> None:
        self.context = context
        self.id = sequence_id
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
        context, count = self.context, len(tokens)
        wanted = count if last is None else last
        if not 0 <= wanted <= count or not count:
            raise ValueError(f"{count} tokens to decode, logits of {wanted} wanted")
        if self._n_past + count > context.room:
            raise ContextFull(
                f"{self._n_past + count:,} tokens do not fit into a context of {context.length:,}; "
                "set a larger `context` or shorten the prompt"
            )
        if count > context.batch_size:
            return self._decode_batches(tokens, wanted)
        logits = context.decode_chunk(self.id, self._n_past, tokens, wanted)
        self._n_past += count
        return logits

    def _decode_batches(self, tokens: Sequence[int], wanted: int) -> Logits:
        begin = self._n_past
        *chunks, (start, end) = self._chunks(len(tokens), wanted)
        try:
            for chunk in chunks:
                self.decode(tokens[slice(*chunk)], 0)
            return self.decode(tokens[start:end], wanted)
        except BaseException:
            self.rollback(begin)
            raise

    def _chunks(self, count: int, wanted: int) -> Iterator[tuple[int, int]]:
        """Bounds of the batches; the last one holds every row whose logits are wanted."""
        size = self.context.batch_size
        # In exact mode the prefill is cut at fixed places of the sequence, wherever it begins.
        aligned = self.context.exact and count > size
        first = size - self._n_past % size if aligned else count % size or size
        bounds = [0, *range(first, count, size), count]
        if count - bounds[-2] < wanted:
            raise ValueError(f"logits of {wanted} tokens wanted, the last batch holds {count - bounds[-2]}")
        return pairwise(bounds)

    def rollback(self, n_past: int) -> None:
        """Forget everything after the first ``n_past`` tokens.

        Raises:
            ValueError: there are fewer.
            CodespecError: this model's memory cannot go back (recurrent architectures).
        """
        if not 0 <= n_past <= self._n_past:
            raise ValueError(f"cannot roll back to {n_past}: {self._n_past} tokens are held")
        if n_past < self._n_past:
            context = self.context
            if not context._api.llama_memory_seq_rm(context.memory, self.id, n_past, -1):
                raise CodespecError(f"{context.model.path}: its memory cannot be rolled back; choose another model")
            self._n_past = n_past

    def fork(self) -> LlamaSequence:
        """Another sequence that shares this one's tokens so far; close it after use."""
        other = self.context.sequence()
        context = self.context
        context._api.llama_memory_seq_cp(context.memory, self.id, other.id, 0, -1)
        other._n_past = self._n_past
        return other

    def decode_each(self, forks: Sequence[Target], tokens: Sequence[int]) -> Logits:
        """Append a token to each of several sequences of this context, in one pass; logits float32 [len(forks), V].

        Raises:
            ContextFull, CodespecError, Aborted: as ``decode``; every sequence is as before the call.
        """
        context = self.context
        own = [fork for fork in forks if isinstance(fork, LlamaSequence) and fork.context is context]
        if len(own) != len(forks) or not own:
            raise ValueError("these are not sequences of one context")
        if any(fork.n_past >= context.length for fork in own):
            raise ContextFull(f"the context of {context.length:,} tokens is full; set a larger `context`")
        if len(own) == 1:
            return own[0].decode(tokens)
        logits = context.decode_rows(own, tokens)
        for fork in own:
            fork._n_past += 1
        return logits

    def save(self) -> npt.NDArray[np.uint8]:
        """The KV cache of all its tokens, to be put back by ``restore``, here or in another context that is alike."""
        context = self.context
        data = _pages(context._api.llama_state_seq_get_size(context.pointer, self.id))
        written = context._api.llama_state_seq_get_data(context.pointer, _bytes(data), data.nbytes, self.id)
        return data[:written]

    def restore(self, data: npt.NDArray[np.uint8], n_past: int) -> None:
        """Replace the KV cache by one that ``save`` returned for ``n_past`` tokens.

        Raises:
            CodespecError: llama.cpp does not take it, or there is no room; the sequence is empty then.
        """
        context = self.context
        self.rollback(0)
        if not context._api.llama_state_seq_set_data(context.pointer, _bytes(data), data.nbytes, self.id):
            context._api.llama_memory_seq_rm(context.memory, self.id, -1, -1)
            raise CodespecError(f"{context.model.path}: a saved KV cache could not be restored")
        self._n_past = n_past

    def shift(self, start: int, end: int, to: int) -> None:
        """Move the KV cells of the tokens ``start..end`` to the position ``to`` before them, over the cells there.

        Their keys are rotated to the new positions; keys and values still depend on the former context, so the result
        is not what decoding would give. The tokens after ``end`` keep their positions: roll them back.
        """
        context = self.context
        context._api.llama_memory_seq_rm(context.memory, self.id, to, start)
        context._api.llama_memory_seq_add(context.memory, self.id, start, end, to - start)

    def close(self) -> None:
        """Give the sequence back to its context; a second call does nothing."""
        if self.id >= 0:
            self.context.release(self.id)
            self.id = -1


def _bytes(data: npt.NDArray[np.uint8]) -> Any:
    return data.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))


def _pages(size: int) -> npt.NDArray[np.uint8]:
    """Memory that returns to the system with the array: caches of all sizes would fragment the heap."""
    return np.frombuffer(mmap.mmap(-1, size), np.uint8) if size else np.empty(0, np.uint8)
