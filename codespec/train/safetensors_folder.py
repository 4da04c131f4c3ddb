"""A trained model as vLLM, SGLang and transformers load it: safetensors, ``config.json``, ``tokenizer.json``."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from codespec.train import tokenizer as special
from codespec.train.gguf_file import QUANTIZATIONS
from codespec.train.model import NORM_EPSILON, ROPE_BASE, Llama, ModelShape

_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
}
"""llama.cpp's names of tensors, and those of transformers' ``LlamaForCausalLM``."""


def write_safetensors(model: Llama, tokenizer: Tokenizer, folder: Path, quantization: str = "q8_0") -> None:
    """Write ``model`` with its vocabulary; an interrupted write leaves an older folder whole.

    The weights are float32, rounded as those of the GGUF file, so that both are one model; there is no ``lm_head``: it
    is tied to the embeddings.

    Args:
        quantization: of the GGUF file.

    Raises:
        KeyError: an unknown quantization.
        OSError: the folder cannot be written.
    """
    kind = QUANTIZATIONS[quantization]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=folder.name) as name:
        new = Path(name) / "new"
        new.mkdir()
        save_file(_weights(model, kind), new / "model.safetensors", metadata={"format": "pt"})
        _write_json(new / "config.json", _config(model.shape, tokenizer))
        # Written for its owner alone; who serves it may be somebody else.
        (new / "model.safetensors").chmod((new / "config.json").stat().st_mode & 0o777)
        _write_json(new / "tokenizer_config.json", _tokenizer_config(model.shape))
        _marked(tokenizer).save(str(new / "tokenizer.json"))
        if folder.exists():
            folder.replace(Path(name) / "old")
        new.replace(folder)


def _weights(model: Llama, kind: GGMLQuantizationType) -> dict[str, Tensor]:
    found = {}
    for key, value in model.state_dict().items():
        data = value.float().cpu()
        if key == "output_norm.weight":
            data = data * model.output_scale
        if data.ndim > 1 and kind != GGMLQuantizationType.F32:
            data = torch.from_numpy(np.array(dequantize(quantize(data.numpy(), kind), kind), np.float32))
        if key.endswith(("attn_q.weight", "attn_k.weight")):
            data = _halved(data, model.shape.head_width)
        found[_named(key)] = data.contiguous()
    return found


def _named(key: str) -> str:
    """The name of a tensor: ``blk.3.attn_q.weight -> model.layers.3.self_attn.q_proj.weight``."""
    *block, name, kind = key.split(".")
    layer = f"model.layers.{block[1]}." if block else ""
    return f"{layer}{_NAMES[name]}.{kind}"


def _halved(weight: Tensor, head_width: int) -> Tensor:
    """Rows of each head in another order: rotary embedding turns adjacent rows here, rows half a head apart there."""
    pairs = weight.view(-1, head_width // 2, 2, weight.shape[1])
    return pairs.transpose(1, 2).reshape(weight.shape)


def _config(shape: ModelShape, tokenizer: Tokenizer) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.width,
        "intermediate_size": shape.feed_forward,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_width,
        "hidden_act": "silu",
        "max_position_embeddings": shape.context,
        "rms_norm_eps": NORM_EPSILON,
        "rope_theta": ROPE_BASE,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": tokenizer.token_to_id(special.END_OF_TEXT),
        "pad_token_id": tokenizer.token_to_id(special.FIM_PAD),
        "torch_dtype": "float32",
    }


def _tokenizer_config(shape: ModelShape) -> dict[str, Any]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": special.END_OF_TEXT,
        "pad_token": special.FIM_PAD,
        "additional_special_tokens": special.SPECIAL_TOKENS,
        "model_max_length": shape.context,
        "clean_up_tokenization_spaces": False,
        "codespec.fim.order": "spm",
    }


def _marked(tokenizer: Tokenizer) -> Tokenizer:
    """A copy whose markers are special, whatever the run folder's is like."""
    copy = Tokenizer.from_str(tokenizer.to_str())
    copy.add_special_tokens(special.SPECIAL_TOKENS)
    return copy


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", "utf-8")
