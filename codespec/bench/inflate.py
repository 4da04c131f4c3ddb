"""A model of any size with random weights and a real vocabulary: what a real one costs, and nonsense for text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from codespec.protocols import CodespecError


@dataclass(frozen=True)
class Shape:
    """Of a Qwen2 model; the default is that of 1.5 billion parameters."""

    layers: int = 28
    width: int = 1536
    ffn: int = 8960
    heads: int = 12
    kv_heads: int = 2
    context: int = 4096

    @property
    def kv_width(self) -> int:
        return self.width // self.heads * self.kv_heads


def write(vocabulary: Path, out: Path, shape: Shape | None = None, kind: str = "Q8_0", seed: int = 1,
          progress: Callable[[float], None] = lambda _: None) -> Path:  # fmt: skip
    """Write a GGUF with the vocabulary of another and random weights; 1.6 GB at the default shape. Needs ``gguf``.

    Args:
        vocabulary: a GGUF of which only the tokenizer is read.
        kind: ``Q8_0``, ``Q4_0`` or ``F16``.

    Raises:
        CodespecError: gguf is not installed.
    """
    try:
        import gguf
    except ImportError:
        raise CodespecError("writing models needs gguf: pip install 'codespec[train]'") from None
    shape = shape or Shape()
    reader = gguf.GGUFReader(vocabulary)
    tokens = len(reader.fields["tokenizer.ggml.tokens"].data)
    writer = gguf.GGUFWriter(out, "qwen2")
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.ffn)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    for name, value in reader.fields.items():
        if name.startswith("tokenizer."):
            _copy_field(writer, name, value)
    tensors = _tensors(shape, tokens)
    quantized = getattr(gguf.GGMLQuantizationType, kind)
    for name, size in tensors:
        stored = _weights(gguf, np.random.default_rng(seed), (1, *size[1:]) if len(size) > 1 else size, quantized)
        rows = size[0] if len(size) > 1 else 1
        kind_ = quantized if len(size) > 1 else gguf.GGMLQuantizationType.F32
        writer.add_tensor_info(
            name, (*size[:1], *stored.shape[1:]), stored.dtype, stored.nbytes * rows, raw_dtype=kind_
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    random = np.random.default_rng(seed)
    for index, (_, size) in enumerate(tensors):
        writer.write_tensor_data(_weights(gguf, random, size, quantized))
        progress((index + 1) / len(tensors))
    writer.close()
    return out


def _copy_field(writer: Any, name: str, value: Any) -> None:
    import gguf

    kind = value.types[0]
    inner = value.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
    writer.add_key_value(name, value.contents(), kind, sub_type=inner)


def _tensors(shape: Shape, tokens: int) -> list[tuple[str, tuple[int, ...]]]:
    """Names and sizes, outermost dimension first; input and output embedding are one."""
    width, kv = shape.width, shape.kv_width
    found: list[tuple[str, tuple[int, ...]]] = [
        ("token_embd.weight", (tokens, width)),
        ("output_norm.weight", (width,)),
    ]
    for layer in range(shape.layers):
        block = f"blk.{layer}."
        found += [
            (block + "attn_norm.weight", (width,)),
            (block + "attn_q.weight", (width, width)),
            (block + "attn_q.bias", (width,)),
            (block + "attn_k.weight", (kv, width)),
            (block + "attn_k.bias", (kv,)),
            (block + "attn_v.weight", (kv, width)),
            (block + "attn_v.bias", (kv,)),
            (block + "attn_output.weight", (width, width)),
            (block + "ffn_norm.weight", (width,)),
            (block + "ffn_gate.weight", (shape.ffn, width)),
            (block + "ffn_up.weight", (shape.ffn, width)),
            (block + "ffn_down.weight", (width, shape.ffn)),
        ]
    return found


def _weights(gguf: Any, random: np.random.Generator, size: tuple[int, ...], kind: Any) -> Any:
    if len(size) == 1:
        return np.ones(size, np.float32)
    # One random block of rows, repeated: a thousandth of the time, and the same work for the processor.
    rows = min(size[0], 256)
    block = (random.standard_normal((rows, size[1])) / np.sqrt(size[1])).astype(np.float32)
    stored = gguf.quants.quantize(block, kind)
    times = -(-size[0] // rows)
    order = np.concatenate([random.permutation(rows) for _ in range(times)])[: size[0]]
    return np.ascontiguousarray(stored[order])
