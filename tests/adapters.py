"""Models and LoRA adapters with known weights, as GGUF files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt
from gguf.quants import dequantize

from codespec.models.registry import EMBEDDED_TARGET

Weights = Mapping[str, npt.NDArray[np.float32]]


def weights_of(path: Path = EMBEDDED_TARGET) -> dict[str, npt.NDArray[np.float32]]:
    """Every tensor of a model."""
    return {each.name: dequantize(each.data, each.tensor_type) for each in gguf.GGUFReader(path).tensors}


def matrices(weights: Weights) -> list[str]:
    """The tensors that adapters mostly change."""
    return [name for name in weights if name.startswith("blk.") and "norm" not in name]


def write_model(path: Path, weights: Weights, like: Path = EMBEDDED_TARGET) -> Path:
    """A model in F32 with the metadata of another one."""
    writer = gguf.GGUFWriter(path, "llama")
    for key, field in gguf.GGUFReader(like).fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        if field.types[0] == gguf.GGUFValueType.ARRAY:
            writer.add_array(key, field.contents())
        else:
            writer.add_key_value(key, field.contents(), field.types[0])
    for name, each in weights.items():
        writer.add_tensor(name, np.ascontiguousarray(each, np.float32))
    return _written(writer, path)


def write_adapter(
    path: Path,
    weights: Weights,
    names: Sequence[str] | None = None,
    rank: int = 8,
    alpha: float = 16.0,
    seed: int = 0,
    size: float = 0.1,
) -> dict[str, npt.NDArray[np.float32]]:
    """A random adapter; the weights with what it changes merged into them."""
    random = np.random.default_rng(seed)
    pairs = {}
    merged = dict(weights)
    for name in matrices(weights) if names is None else names:
        rows, columns = weights[name].shape
        a = random.normal(0, size, (rank, columns)).astype(np.float32)
        b = random.normal(0, size, (rows, rank)).astype(np.float32)
        merged[name] = weights[name] + alpha / rank * (b @ a)
        pairs |= {f"{name}.lora_a": a, f"{name}.lora_b": b}
    write_tensors(path, pairs, {"adapter.lora.alpha": alpha})
    return merged


def write_tensors(path: Path, tensors: Mapping[str, npt.NDArray[np.generic]], about: Mapping[str, object]) -> Path:
    """Any file of the kind: ``about`` over what a LoRA adapter says; None leaves a key out."""
    said: dict[str, object] = {"general.type": "adapter", "adapter.type": "lora", "adapter.lora.alpha": 16.0, **about}
    writer = gguf.GGUFWriter(path, str(said.pop("general.architecture", "llama")))
    for key, value in said.items():
        if isinstance(value, str):
            writer.add_string(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif value is not None:
            writer.add_array(key, value)
    for name, each in tensors.items():
        writer.add_tensor(name, np.ascontiguousarray(each))
    return _written(writer, path)


def _written(writer: gguf.GGUFWriter, path: Path) -> Path:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
