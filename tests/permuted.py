"""GGUFs with another vocabulary and the same behaviour: ids shuffled, padding at the end, or only some tokens."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from codespec.models.info import inspect
from codespec.models.trimmed import TEXTS_KEY, TOKENS_KEY, VOCABULARY_KEY


def write(source: Path, path: Path, seed: int = 1) -> Path:
    """Write a model like ``source``, with tied embeddings, to ``path``."""
    count = len(gguf.GGUFReader(source).fields["tokenizer.ggml.tokens"].contents())
    return _write(source, path, np.random.default_rng(seed).permutation(count))


def write_padded(source: Path, path: Path, padding: int) -> Path:
    """The same with ``padding`` unused tokens at the end, as likely as the last ones that are used."""
    count = len(gguf.GGUFReader(source).fields["tokenizer.ggml.tokens"].contents())
    return _write(source, path, np.concatenate([np.arange(count), np.arange(count - padding, count)]), padding)


def write_trimmed(source: Path, path: Path, tokens: np.ndarray) -> Path:
    """A draft trimmed to these tokens, ascending; it reads any other one as it would token 0."""
    info = inspect(source)
    made_for = {VOCABULARY_KEY: info.vocabulary, TEXTS_KEY: info.texts}
    return _write(source, path, np.append(tokens, 0), 1, {TOKENS_KEY: tokens.tolist(), **made_for})


def write_relative(source: Path, path: Path, added: int) -> Path:
    """A member of the same family: its control tokens have other names, and there are ``added`` more."""
    fields = gguf.GGUFReader(source).fields
    count = len(fields["tokenizer.ggml.tokens"].contents())
    control = np.flatnonzero(np.array(fields["tokenizer.ggml.token_type"].contents()) == gguf.TokenType.CONTROL)
    old = np.concatenate([np.arange(count), np.full(added, control[0])])
    named = {each: f"<|relative {each}|>" for each in [*control[1:].tolist(), *range(count, count + added)]}
    return _write(source, path, old, named=named)


def _write(
    source: Path,
    path: Path,
    old: np.ndarray,
    padding: int = 0,
    metadata: dict[str, list[int] | str] | None = None,
    named: dict[int, str] | None = None,
) -> Path:
    """Token ``i`` is ``old[i]`` in ``source``, the last ``padding`` ones unused."""
    reader = gguf.GGUFReader(source)
    used = len(old) - padding
    new = {token: i for i, token in enumerate(old[:used].tolist())}
    writer = gguf.GGUFWriter(path, "llama")
    for key, entry in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        value, kind = entry.contents(), entry.types[0]
        if key.endswith(("ggml.tokens", "ggml.token_type", "ggml.scores")):
            value = [value[i] for i in old]
            for i in range(used, len(old)):
                value[i] = f"[PAD{i}]" if key.endswith("tokens") else int(gguf.TokenType.UNUSED)
            for i, name in (named or {}).items():
                value[i] = name if key.endswith("tokens") else value[i]
        elif key.endswith("vocab_size"):
            value = len(old)
        elif key.endswith("_token_id"):
            value = new[value]
        writer.add_key_value(key, value, kind, entry.types[-1] if kind == gguf.GGUFValueType.ARRAY else None)
    for key, value in (metadata or {}).items():
        writer.add_array(key, value) if isinstance(value, list) else writer.add_string(key, value)
    for tensor in reader.tensors:
        data = tensor.data[old] if tensor.name in ("token_embd.weight", "output.weight") else tensor.data
        writer.add_tensor(tensor.name, np.ascontiguousarray(data), raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
