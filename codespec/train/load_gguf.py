"""A GGUF file's weights in PyTorch, to go on training from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt
import torch
from gguf.quants import dequantize

from codespec.protocols import CodespecError
from codespec.train.model import NORM_EPSILON, ROPE_BASE, Llama, ModelShape


def load_gguf(path: Path) -> Llama:
    """A model that ``codespec train`` has exported, as exactly as its quantization kept it.

    Raises:
        CodespecError: it is of another kind.
    """
    reader = gguf.GGUFReader(path)

    def value(key: str) -> float:
        field = reader.fields.get(key)
        if field is None:
            raise CodespecError(f"{path}: no model of `codespec train`: it has no {key}")
        return float(field.contents())

    architecture = reader.fields["general.architecture"].contents()
    odd = architecture != "llama" or any(tensor.name == "output.weight" for tensor in reader.tensors)
    odd = odd or value("llama.rope.freq_base") != ROPE_BASE
    if odd or abs(value("llama.attention.layer_norm_rms_epsilon") - NORM_EPSILON) > NORM_EPSILON / 100:
        raise CodespecError(f"{path}: no model of `codespec train`, which alone can go on from here")
    shape = ModelShape(
        vocabulary=len(reader.fields["tokenizer.ggml.tokens"].data),
        width=int(value("llama.embedding_length")),
        layers=int(value("llama.block_count")),
        heads=int(value("llama.attention.head_count")),
        kv_heads=int(value("llama.attention.head_count_kv")),
        feed_forward=int(value("llama.feed_forward_length")),
        context=int(value("llama.context_length")),
    )
    model = Llama(shape)
    weights = {
        tensor.name: torch.from_numpy(np.array(dequantize(tensor.data, tensor.tensor_type), np.float32))
        for tensor in reader.tensors
    }
    weights["output_norm.weight"] /= model.output_scale  # the export multiplies by it
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise CodespecError(f"{path}: no model of `codespec train` ({str(error).splitlines()[0]})") from error
    return model


def with_tokens(model: Llama, tokens: npt.NDArray[np.int64]) -> Llama:
    """The same model with these of its tokens, ascending, and one more that is the mean of the others."""
    smaller = Llama(replace(model.shape, vocabulary=len(tokens) + 1))
    weights = dict(model.state_dict())
    embeddings = weights["token_embd.weight"]
    others = torch.ones(len(embeddings), dtype=torch.bool)
    others[tokens] = False
    weights["token_embd.weight"] = torch.cat([embeddings[tokens], embeddings[others].mean(0, keepdim=True)])
    smaller.load_state_dict(weights)
    return smaller
