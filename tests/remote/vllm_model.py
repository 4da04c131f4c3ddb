"""Writes a GGUF model as vLLM reads models: float32 safetensors and tokenizer.json. Run with vLLM's own Python."""

import json
import sys
from pathlib import Path

import gguf
import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from transformers import AutoModelForCausalLM

QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How texts are cut before tokens are merged: llama.cpp's ``qwen2``."""


def write(source, folder):
    folder.mkdir(parents=True, exist_ok=True)
    fields = {name: field.contents() for name, field in gguf.GGUFReader(source).fields.items() if name[:5] != "GGUF."}
    write_tokenizer(fields, folder)
    model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
    # It is float32 by now, but the library remembers where it came from, and refuses to save it.
    weights = {name: tensor.contiguous() for name, tensor in model.state_dict().items() if name != "lm_head.weight"}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    model.config.save_pretrained(folder)
    settings = json.loads((folder / "config.json").read_text())
    settings.pop("quantization_config", None)
    (folder / "config.json").write_text(json.dumps(settings, indent=1))


def write_tokenizer(fields, folder):
    assert fields["tokenizer.ggml.pre"] == "qwen2", fields["tokenizer.ggml.pre"]
    tokens, kinds = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    merges = [tuple(each.split(" ")) for each in fields["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(BPE({token: index for index, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN2), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    control = [token for token, kind in zip(tokens, kinds, strict=True) if kind == gguf.TokenType.CONTROL]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    tokenizer.save(str(folder / "tokenizer.json"))
    end = tokens[fields["tokenizer.ggml.eos_token_id"]]
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end, "model_max_length": 1 << 20}
    (folder / "tokenizer_config.json").write_text(json.dumps(about, indent=1))


if __name__ == "__main__":
    write(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
