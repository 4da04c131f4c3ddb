"""A context of a model as its settings have it, and the LoRA adapter that it decodes with."""

from __future__ import annotations

import ctypes
from typing import Any

from codespec.llama.adapter import Adapter
from codespec.llama.defaults import LLAMA_CHOOSES, attention, check_memory, default_threads, first_threads, kv_cache
from codespec.llama.devices import ResolvedSetting
from codespec.llama.model import Model
from codespec.llama.native_context import NativeContext
from codespec.llama.recurrent import SNAPSHOTS, RecurrentSequence
from codespec.llama.runtime import abort_callback, clear_errors, last_errors, library
from codespec.llama.sequence import LlamaSequence
from codespec.llama.threads import CpuLoad, Threads, own_cpus
from codespec.protocols import CodespecError

BATCH = 512
SHORTEST = 256
"""Tokens of a context at least: llama.cpp rounds up to a multiple of as many, but not the batch, which is to hold a
proposal."""
EXACT_CHUNK = 32
"""Tokens that are decoded at a time at most where passes are padded, see ``native_context.EXACT_MIN_ROWS``."""

# enum ggml_type
KV_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8, "bf16": 30}
FLASH_ATTENTION = {LLAMA_CHOOSES: -1, "off": 0, "on": 1}  # enum llama_flash_attn_type


class Context(NativeContext):
    """Memory for the tokens of one or more sequences of a model.

    Not for use from two threads at a time, except ``Cancellation.set``.

    Args:
        context_length: tokens of all sequences together, or of each, where they are ``apart``; 0 is what the model was
            trained with.
        sequences: how many sequences at most.
        spare: room for this many tokens more in all, for what forks of a sequence add each; no sequence gets longer.
            It slows every pass down a little.
        apart: whether each sequence has cells of its own. Then a pass looks at those of its sequences alone, which
            takes half the time where the others hold much; they cannot be forked.
        batch: tokens that are decoded at a time at most; memory for their logits is kept.
        threads: for decoding; 0 is chosen by the size of the model, see ``default_threads``, and on a CPU fewer while
            other programs keep CPUs busy, see ``Threads``.
        kv_type: of the key and value cache: ``auto`` (``f16``), ``f32``, ``bf16``, ``q8_0``, ``q4_0`` …, or of each:
            ``f16/bf16``.
        flash_attention: ``on``, ``off`` or ``auto``, see ``attention``; a quantized cache needs it.
        exact: same logits whatever the tokens are batched with (CPU). Passes are ``padded`` where nothing cheaper
            does it: see ``agreement`` for where it is not needed.
        padded: every pass has at least two rows, and 32 at most: twice as slow at one token.
        heads: for the model's own heads alone (``llama.heads``).

    Raises:
        CodespecError: too little memory for a context of that length.

    Attributes:
        adapter: that it decodes with, and its ``adapter_scale``; None without.
        choices: of ``kv_type``, ``flash_attention`` and ``threads``, as they are in force.
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
        padded: bool = False,
        kv_type: str = "auto",
        flash_attention: str = "auto",
        heads: bool = False,
        apart: bool = False,
    ) -> None:
        self.heads, self._apart = heads, apart
        length = max(SHORTEST, context_length or model.trained_context)
        check_memory(model, length * (sequences if apart else 1) + spare)
        chosen_type = kv_cache(exact and not padded) if kv_type == "auto" else ResolvedSetting(kv_type)
        self.kv_type = str(chosen_type.value)
        automatic = flash_attention == "auto"
        chosen_attention = (
            attention(model, length, self.kv_type, exact) if automatic else ResolvedSetting(flash_attention)
        )
        self.flash_attention = str(chosen_attention.value)
        # Where passes are padded nothing may depend on the machine; beside a GPU the CPU has little to do.
        follows = not threads and not padded and not model.gpu_layers
        chosen_threads = ResolvedSetting(threads) if threads else default_threads(model, follows)
        self.choices = {"kv_type": chosen_type, "flash_attention": chosen_attention, "threads": chosen_threads}
        self.adapter: Adapter | None = None
        self.adapter_scale = 1.0
        most = int(chosen_threads.value)
        first = first_threads(model, most) if follows else most
        pointer = self._new(model, length, sequences, spare, batch, first)
        super().__init__(
            model,
            pointer,
            length=library().llama_n_ctx_seq(pointer) if apart else library().llama_n_ctx(pointer) - spare,
            sequences=sequences,
            batch_size=EXACT_CHUNK if padded else library().llama_n_batch(pointer),
            threads=most,
            first_threads=first,
            follows=Threads(most, len(own_cpus()), CpuLoad().others, first) if follows else None,
            exact=exact,
            padded=padded,
            streams=sequences if apart else 1,
        )

    def _new(self, model: Model, length: int, sequences: int, spare: int, batch: int, threads: int) -> Any:
        """The address of a new ``llama_context``."""
        api = library()
        parameters = api.llama_context_default_params()
        parameters.n_ctx = length * (sequences if self._apart else 1) + spare
        parameters.n_batch = parameters.n_ubatch = min(batch, length)
        parameters.n_seq_max = sequences
        parameters.kv_unified = not self._apart
        keys, _, values = self.kv_type.partition("/")
        parameters.type_k, parameters.type_v = KV_TYPES[keys], KV_TYPES[values or keys]
        parameters.flash_attn_type = FLASH_ATTENTION[self.flash_attention]
        if self.heads:
            parameters.ctx_type = api.LLAMA_CONTEXT_TYPE_MTP
        elif model.recurrent:
            parameters.n_rs_seq = SNAPSHOTS
        parameters.no_perf = True
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.abort_callback = abort_callback()
        clear_errors()
        pointer = api.llama_init_from_model(model.pointer, parameters)
        if not pointer:
            reason = (last_errors() or ["no reason given"])[-1][:200]
            raise CodespecError(
                f"{model.path}: no context of {length:,} tokens could be made ({reason}); set a smaller `context`, "
                'or `flash_attention` of "auto"'
            )
        return pointer

    def alike(
        self,
        length: int,
        sequences: int = 1,
        spare: int = 0,
        batch: int = BATCH,
        follow: bool = True,
        heads: bool = False,
        apart: bool = False,
    ) -> Context:
        """Another context of the same model, with the same settings and a length of its own, without an adapter.

        Args:
            follow: False: always with ``first_threads``.
            heads: for the model's own heads.
            apart: whether each sequence has cells of its own.

        Raises:
            CodespecError: too little memory.
        """
        return Context(
            self.model,
            context_length=length,
            sequences=sequences,
            spare=spare,
            batch=batch,
            threads=0 if follow and self.follows is not None else self.first_threads,
            exact=self.exact,
            padded=self.padded,
            kv_type=self.kv_type,
            flash_attention=self.flash_attention,
            heads=heads,
            apart=apart,
        )

    def use(self, adapter: Adapter | None, scale: float = 1.0) -> None:
        """Decode with a LoRA adapter of the model from now on, or without one: None, or a scale of 0.

        The KV caches of the sequences were computed with the previous adapter: roll them back.

        Raises:
            CodespecError: passes would have to be filled up, which recurrent layers do not forget.
        """
        if scale == 0:
            adapter = None
        if adapter is not None and self.exact and self.model.recurrent:
            raise CodespecError(
                f"{self.model.path}: with an adapter this model cannot be exact (recurrent layers); leave out `exact` "
                "or `target_lora`"
            )
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
        # An adapter's matrices are of another type than the model's: their kernels were not tried, and f16's differ.
        self.fills_up = self.padded or (self.exact and adapter is not None)

    @property
    def adapter_key(self) -> str:
        """A key of the adapter and its scale, by which KV caches are told apart; empty without an adapter."""
        return f"{self.adapter.key} {self.adapter_scale!r}" if self.adapter is not None else ""

    def sequence(self) -> LlamaSequence:
        """A new, empty sequence.

        Raises:
            CodespecError: as many as the context was made for are in use.
        """
        return RecurrentSequence(self) if self.model.recurrent else LlamaSequence(self)

    def close(self) -> None:
        """Free the memory; a second call does nothing."""
        if self.pointer:
            if self.adapter is not None:
                self.adapter.users.discard(self)
            super().close()

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
