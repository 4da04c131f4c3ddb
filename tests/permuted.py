"""A GGUF whose token ids are shuffled: another vocabulary, the same behaviour."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np


def write(source: Path, path: Path, seed: int = 1) -> Path:
    """Write a model like ``source``, with tied embeddings, to ``path``."""
    reader = gguf.GGUFReader(source)
    names = reader.fields["tokenizer.ggml.tokens"].contents()
    old = np.random.default_rng(seed).permutation(len(names))  # old[new id] is the id in `source`
    new = np.argsort(old)
    writer = gguf.GGUFWriter(path, "llama")
    for key, entry in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        value, kind = entry.contents(), entry.types[0]
        if key.endswith(("ggml.tokens", "ggml.token_type", "ggml.scores")):
            value = [value[i] for i in old]
        elif key.endswith("_token_id"):
            value = int(new[value])
        writer.add_key_value(key, value, kind, entry.types[-1] if kind == gguf.GGUFValueType.ARRAY else None)
    for tensor in reader.tensors:
        data = tensor.data[old] if tensor.name in ("token_embd.weight", "output.weight") else tensor.data
        writer.add_tensor(tensor.name, np.ascontiguousarray(data), raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
