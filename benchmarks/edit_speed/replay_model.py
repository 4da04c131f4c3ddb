"""A model file that writes a given text at the cost of a large model, whatever program decodes it.

A GPT-2 whose position embeddings name the token to come and whose layers, of any size, add nothing to them: so at every
position it says what the text says there, after every prompt, and llama.cpp's own tools write the same as codespec.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.inflate import copy_field
from codespec.extras import remedy
from codespec.protocols import CodespecError

CONTEXT = 4096
"""Tokens of the longest text, prompt included."""

_POSITIONS = "position_embd.weight"


@dataclass(frozen=True)
class Shape:
    """Of a GPT-2; the default has 1.4 billion parameters, the widths and heads of Qwen2.5's 1.5B."""

    layers: int = 28
    width: int = 1536
    ffn: int = 13440  # two matrices that are as much as the three of a gated layer of 8,960
    heads: int = 12
    kv_heads: int = 2


class ReplayModel:
    """A GGUF file, Q8_0, with the vocabulary of another one, whose text can be exchanged while nobody has it open.

    Args:
        out: where it is written, unless one of this shape and vocabulary is there.

    Raises:
        CodespecError: gguf is not installed.
    """

    def __init__(self, vocabulary: Path, out: Path, shape: Shape | None = None) -> None:
        self.path, self._shape = out, shape or Shape()
        self._gguf = _gguf()
        name = f"replay {vocabulary.name} {self._shape}"
        if not out.exists() or self._gguf.GGUFReader(out).fields["general.name"].contents() != name:
            self._write(vocabulary, name)
        tensors = {each.name: each for each in self._gguf.GGUFReader(out).tensors}
        self._offset = int(tensors[_POSITIONS].data_offset)
        self._codes = _codes(int(tensors["token_embd.weight"].shape[1]), self._shape.width)

    def say(self, text: Sequence[int]) -> None:
        """Let it write ``text``, prompt included: at each position the token after it, at the last ones the last.

        Raises:
            CodespecError: the text is too long.
        """
        if len(text) >= CONTEXT:
            raise CodespecError(f"a text of {len(text):,} tokens; at most {CONTEXT - 1:,} can be replayed")
        following = [*text[1:], *[text[-1]] * (CONTEXT - len(text) + 1)]
        with self.path.open("r+b") as file:
            file.seek(self._offset)
            file.write(self._codes[following].tobytes())

    def _write(self, vocabulary: Path, name: str) -> None:
        gguf, shape = self._gguf, self._shape
        reader = gguf.GGUFReader(vocabulary)
        tokens = len(reader.fields["tokenizer.ggml.tokens"].data)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        writer = gguf.GGUFWriter(self.path, "gpt2")
        writer.add_name(name)
        writer.add_context_length(CONTEXT)
        writer.add_embedding_length(shape.width)
        writer.add_block_count(shape.layers)
        writer.add_feed_forward_length(shape.ffn)
        writer.add_head_count(shape.heads)
        writer.add_head_count_kv(shape.kv_heads)
        writer.add_layer_norm_eps(1e-5)
        for field, value in reader.fields.items():
            if field.startswith("tokenizer."):
                copy_field(writer, field, value)
        for tensor, values in _tensors(gguf, shape, tokens):
            kind = gguf.GGMLQuantizationType.Q8_0 if values.dtype == np.uint8 else gguf.GGMLQuantizationType.F32
            writer.add_tensor(tensor, values, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def _tensors(gguf: Any, shape: Shape, tokens: int) -> list[tuple[str, npt.NDArray[Any]]]:
    """All tensors. Layers share random rows, and their outputs are zero: the work is that of any others."""
    rng, width, kv = np.random.default_rng(1), shape.width, shape.width // shape.heads * shape.kv_heads
    zeros, ones = np.zeros(width, np.float32), np.ones(width, np.float32)

    def quantized(values: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q8_0)
        return found

    def rows(count: int) -> npt.NDArray[Any]:
        return quantized((rng.standard_normal((count, width)) / np.sqrt(width)).astype(np.float32))

    attention, up = rows(width + 2 * kv), rows(shape.ffn)
    silent = quantized(np.zeros((width, width), np.float32)), quantized(np.zeros((width, shape.ffn), np.float32))
    found = [
        ("token_embd.weight", rows(tokens)),
        (_POSITIONS, np.zeros((CONTEXT, width), np.float32)),
        ("output_norm.weight", ones),
        ("output_norm.bias", zeros),
        ("output.weight", quantized(_codes(tokens, width))),
    ]
    for layer in range(shape.layers):
        block = f"blk.{layer}."
        found += [
            (block + "attn_norm.weight", ones),
            (block + "attn_norm.bias", zeros),
            (block + "attn_qkv.weight", attention),
            (block + "attn_qkv.bias", np.zeros(width + 2 * kv, np.float32)),
            (block + "attn_output.weight", silent[0]),
            (block + "attn_output.bias", zeros),
            (block + "ffn_norm.weight", ones),
            (block + "ffn_norm.bias", zeros),
            (block + "ffn_up.weight", up),
            (block + "ffn_up.bias", np.zeros(shape.ffn, np.float32)),
            (block + "ffn_down.weight", silent[1]),
            (block + "ffn_down.bias", zeros),
        ]
    return found


def _codes(tokens: int, width: int) -> npt.NDArray[np.float32]:
    """A direction for every token, nearly orthogonal to all others."""
    return np.random.default_rng(2).choice(np.array([-1.0, 1.0], np.float32), (tokens, width))


def _gguf() -> Any:
    try:
        import gguf
    except ImportError:
        raise CodespecError(f"writing models needs gguf: {remedy('train')}") from None
    return gguf
