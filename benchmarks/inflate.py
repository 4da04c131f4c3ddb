"""``python -m benchmarks inflate``: models that cost what a large one costs, for timing.

``cost_scale`` keeps a small model's outputs, so that texts and acceptance are real; ``write`` puts random weights
of any shape around a real vocabulary, and its text is nonsense.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codespec.extras import remedy
from codespec.llama.model import check_file
from codespec.protocols import CodespecError

Progress = Callable[[float], None]
LAYERS, FFN = 36, 53_760  # 1.5 billion parameters at width 256
COST_SCALED = "codespec.cost_scaled"
QUANTIZATIONS = ("q8_0", "q4_0")


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
          progress: Progress = lambda _: None) -> Path:  # fmt: skip
    """Write a GGUF with the vocabulary of another and random weights; 1.6 GB at the default shape. Needs ``gguf``.

    Args:
        vocabulary: a GGUF of which only the tokenizer is read.
        kind: ``Q8_0``, ``Q4_0`` or ``F16``.

    Raises:
        CodespecError: gguf is not installed.
    """
    gguf = _gguf()
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
            copy_field(writer, name, value)
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


def run(target: Path, out: Path, layers: int | None, ffn: int | None, quantization: str | None,
        random_of: Path | None = None, progress: Progress = lambda _: None) -> int:  # fmt: skip
    """``python -m benchmarks inflate``: write ``out``, and say how large it is.

    Args:
        random_of: a GGUF to take only the vocabulary of; ``target`` is not read then.

    Raises:
        CodespecError: see ``cost_scale``.
    """
    check_file(random_of or target)
    out.parent.mkdir(parents=True, exist_ok=True)
    if random_of is not None:
        shape = Shape()
        shape = Shape(layers=layers or shape.layers, ffn=ffn or shape.ffn)
        write(random_of, out, shape, (quantization or "q8_0").upper(), progress=progress)
    else:
        cost_scale(target, out, layers or LAYERS, ffn or FFN, quantization, progress)
    print(f"{out}: {out.stat().st_size / 1e6:,.1f} MB")
    return 0


def cost_scale(target: Path, out: Path, layers: int = LAYERS, ffn: int = FFN, quantization: str | None = None,
               progress: Progress = lambda _: None) -> Path:  # fmt: skip
    """Write ``target`` again with the cost of a much larger model and the same outputs, up to rounding.

    Every feed-forward layer is widened by units whose down-projection is zero, and layers are added that add zero to
    the residual stream. What is added repeats the model's own rows, so that no product overflows: zero times infinity
    would be no number. The default is 1.6 GB. ``codespec.cost_scaled`` is true in its metadata, its name says so too.

    Args:
        ffn: feed-forward width of every layer, since llama.cpp takes the first one's for all.
        quantization: ``q8_0`` or ``q4_0`` quantizes the matrices anew, which changes the outputs; None keeps them.

    Raises:
        CodespecError: gguf is not installed, or the model cannot be scaled so.
    """
    gguf = _gguf()
    reader = gguf.GGUFReader(target)
    source = _Source(gguf, reader, quantization)
    if layers < source.layers or ffn < source.ffn:
        raise CodespecError(f"{target}: has {source.layers} layers of {source.ffn:,} already; ask for no less")
    temporary = out.with_name(out.name + ".tmp")  # an interrupted write leaves an older file whole
    writer = gguf.GGUFWriter(temporary, "llama")
    _scaled_metadata(gguf, writer, reader, layers, ffn, quantization)
    plans = list(_plans(source, layers))
    random = np.random.default_rng(1)
    for plan in plans:
        kind, shape = source.describe(plan, ffn)
        writer.add_tensor_info(plan.name, shape, np.dtype(np.uint8), int(np.prod(shape)), raw_dtype=kind)
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for index, plan in enumerate(plans):
            writer.write_tensor_data(source.scaled(plan, ffn, random))
            progress((index + 1) / len(plans))
        writer.close()
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)
    return out


def _scaled_metadata(gguf: Any, writer: Any, reader: Any, layers: int, ffn: int, quantization: str | None) -> None:
    changed: dict[str, Any] = {"llama.block_count": layers, "llama.feed_forward_length": ffn}
    if quantization:
        changed["general.file_type"] = int(getattr(gguf.LlamaFileType, f"MOSTLY_{quantization.upper()}"))
    for name, value in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.name", COST_SCALED):
            continue
        if name in changed:
            writer.add_uint32(name, changed[name])
        else:
            copy_field(writer, name, value)
    name = reader.fields["general.name"].contents() if "general.name" in reader.fields else "unnamed"
    writer.add_name(f"{name}, cost-scaled to {layers} layers of {ffn:,}")
    writer.add_bool(COST_SCALED, True)


class _Plan(NamedTuple):
    """A tensor to write: after which of the source's it is made, and whether it must add nothing."""

    name: str
    source: str
    silent: bool


def _plans(source: _Source, layers: int) -> Iterator[_Plan]:
    """The source's tensors, and layers after its own that are like them but silent."""
    for name in source.tensors:
        yield _Plan(name, name, False)
    for layer in range(source.layers, layers):
        block = f"blk.{layer % source.layers}."
        for name in source.tensors:
            if name.startswith(block):
                part = name.removeprefix(block)
                silent = part.startswith(("attn_output.", "ffn_down."))
                yield _Plan(f"blk.{layer}.{part}", name, silent)


class _Source:
    """The tensors of a llama model as rows of bytes, which serves every quantization alike."""

    def __init__(self, gguf: Any, reader: Any, quantization: str | None) -> None:
        self._gguf = gguf
        architecture = reader.fields["general.architecture"].contents()
        self.tensors = {tensor.name: tensor for tensor in reader.tensors}
        if architecture != "llama" or "blk.0.ffn_gate.weight" not in self.tensors:
            raise CodespecError(
                f"only dense models of architecture 'llama' can be scaled; this one is {architecture!r}"
            )
        self.layers = int(reader.fields["llama.block_count"].contents())
        self.ffn = int(self.tensors["blk.0.ffn_gate.weight"].shape[1])
        self._kind = getattr(gguf.GGMLQuantizationType, quantization.upper()) if quantization else None

    def kind(self, name: str) -> Any:
        """The ``GGMLQuantizationType`` to write a tensor in."""
        tensor = self.tensors[name]
        return self._kind if self._kind is not None and len(tensor.shape) > 1 else tensor.tensor_type

    def rows(self, name: str) -> Any:
        """Bytes [rows, bytes of a row]; a vector is one row."""
        tensor = self.tensors[name]
        data = tensor.data
        if self.kind(name) != tensor.tensor_type:
            values = self._gguf.quants.dequantize(data, tensor.tensor_type)
            data = self._gguf.quants.quantize(values, self.kind(name))
        data = np.ascontiguousarray(data)
        return data.view(np.uint8).reshape(len(data) if data.ndim > 1 else 1, -1)

    def describe(self, plan: _Plan, ffn: int) -> tuple[Any, tuple[int, ...]]:
        """Kind and shape in bytes, outermost first, of what ``scaled`` gives."""
        tensor, kind = self.tensors[plan.source], self.kind(plan.source)
        block, size = self._gguf.GGML_QUANT_SIZES[kind]
        columns, *outer = (int(n) for n in tensor.shape)
        if _part(plan) in ("ffn_gate.weight", "ffn_up.weight"):
            outer = [ffn]
        if _part(plan) in ("ffn_down.weight", "ffn_gate.bias", "ffn_up.bias"):
            columns = ffn
        if columns % block:
            raise CodespecError(f"{plan.name}: {columns:,} columns are no multiple of {block}, as {kind.name} needs")
        return kind, (*outer, columns // block * size)

    def scaled(self, plan: _Plan, ffn: int, random: np.random.Generator) -> Any:
        """The bytes of a tensor. All bytes zero are zero weights in every kind: the scale of each block is 0."""
        _, shape = self.describe(plan, ffn)
        if plan.silent:
            return np.zeros(shape, np.uint8)
        rows = self.rows(plan.source)
        if _part(plan) in ("ffn_gate.weight", "ffn_up.weight"):
            return np.concatenate([rows, _repeat_rows(random, rows, ffn - len(rows))])
        missing = shape[-1] - rows.shape[-1]
        return np.pad(rows, ((0, 0), (0, missing))).reshape(shape)


def _part(plan: _Plan) -> str:
    """The name within a layer: ``ffn_down.weight``."""
    return plan.name.split(".", 2)[-1]


def _gguf() -> Any:
    try:
        import gguf
    except ImportError:
        raise CodespecError(f"writing models needs gguf: {remedy('train')}") from None
    return gguf


def copy_field(writer: Any, name: str, value: Any) -> None:
    gguf = _gguf()
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
    return _repeat_rows(random, gguf.quants.quantize(block, kind), size[0])


def _repeat_rows(random: np.random.Generator, stored: Any, count: int) -> Any:
    """``count`` of the rows of ``stored``, in random order, each about equally often."""
    times = max(1, -(-count // len(stored)))
    order = np.concatenate([random.permutation(len(stored)) for _ in range(times)])[:count]
    return np.ascontiguousarray(stored[order])
