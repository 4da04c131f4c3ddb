"""A GGUF with a vocabulary of 256 bytes and an end token, for llama.cpp's grammar sampler."""

from __future__ import annotations

from pathlib import Path

import gguf


def smallest(path: Path, name: str = "") -> gguf.GGUFWriter:
    """A model with next to nothing in it; the vocabulary is still to come."""
    writer = gguf.GGUFWriter(path, "llama")
    if name:
        writer.add_name(name)
    writer.add_context_length(64)
    writer.add_embedding_length(8)
    writer.add_block_count(1)
    writer.add_feed_forward_length(8)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    return writer


def write(path: Path) -> Path:
    """Write it to ``path``: token ``b`` is the byte ``b``, token 256 ends."""
    writer = smallest(path)
    writer.add_vocab_size(257)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    names = [_printable(byte) for byte in range(256)]
    writer.add_token_list([*names, "<end>"])
    writer.add_token_types([gguf.TokenType.NORMAL] * 256 + [gguf.TokenType.CONTROL])
    writer.add_token_merges([f"{names[97]} {names[98]}"])
    writer.add_eos_token_id(256)
    writer.add_bos_token_id(256)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _printable(byte: int) -> str:
    """GPT-2's stand-in for a byte: itself where it prints, else a code point from 256 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    if byte in plain:
        return chr(byte)
    return chr(256 + sum(1 for other in range(byte) if other not in plain))
