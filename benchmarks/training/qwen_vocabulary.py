"""The vocabulary of Qwen2.5-Coder without its weights (``python -m`` this module ``ggml-vocab-qwen2.gguf OUT``).

llama.cpp ships that of Qwen2, where padding stands in place of the tokens that came later. Their names and ids are
those of ``tokenizer_config.json`` of Qwen/Qwen2.5-Coder-0.5B to 32B.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gguf

FIRST = 151_646
ADDED = (
    "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>",
    "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>", "<tool_call>",
    "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>",
    "<|file_sep|>",
)  # fmt: skip


def write(source: Path, out: Path, name: str = "qwen2.5-coder") -> None:
    """Write ``source`` with the tokens' names and types in place.

    Raises:
        ValueError: something else stands there.
    """
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(out, "qwen2")
    for key, field in reader.fields.items():
        value = field.contents()
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        if key == "general.name":
            value = name
        elif key == "tokenizer.ggml.tokens":
            if not all(each.startswith("[PAD") for each in value[FIRST : FIRST + len(ADDED)]):
                raise ValueError(f"{source}: no padding from token {FIRST:,} on")
            value[FIRST : FIRST + len(ADDED)] = ADDED
        elif key == "tokenizer.ggml.token_type":
            value[FIRST : FIRST + len(ADDED)] = [int(gguf.TokenType.CONTROL)] * len(ADDED)
        subtype = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, value, field.types[0], subtype)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    write(options.source, options.out)
