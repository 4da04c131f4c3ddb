"""A trained model as a GGUF file: written for llama.cpp, and read again to go on training from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np
import numpy.typing as npt
import torch
from gguf.quants import dequantize, quantize
from tokenizers import Tokenizer

from codespec.models.info import LANGUAGES_KEY, inspect
from codespec.models.trimmed import TEXTS_KEY, TOKENS_KEY, VOCABULARY_KEY
from codespec.protocols import CodespecError
from codespec.train import tokenizer as special
from codespec.train.model import NORM_EPSILON, ROPE_BASE, Llama, ModelShape

if TYPE_CHECKING:
    from codespec.train.trim import TrimmedVocabulary  # which brings the corpus, and what that needs

QUANTIZATIONS = {
    "q8_0": gguf.GGMLQuantizationType.Q8_0,
    "q4_0": gguf.GGMLQuantizationType.Q4_0,
    "f16": gguf.GGMLQuantizationType.F16,
    "f32": gguf.GGMLQuantizationType.F32,
}

_OF_LACKING = {
    "tokenizer.ggml.tokens": "<|not among the draft's tokens|>",
    "tokenizer.ggml.token_type": int(gguf.TokenType.UNKNOWN),
    "tokenizer.ggml.scores": 0.0,
}
"""Metadata of the token that stands, in a trimmed vocabulary, for all that it lacks."""


def write_gguf(
    model: Llama,
    tokenizer: Tokenizer,
    path: Path,
    name: str,
    quantization: str = "q8_0",
    languages: Sequence[str] = (),
) -> None:
    """Write ``model`` with its vocabulary; an interrupted write leaves an older file whole.

    Args:
        languages: that a draft is for; ``auto`` then finds it.

    Raises:
        KeyError: an unknown quantization.
    """

    def vocabulary(writer: gguf.GGUFWriter) -> None:
        # It has seen both orders of fill-in-the-middle prompts; in this one a keystroke changes only the prompt's end.
        writer.add_string("codespec.fim.order", "spm")
        _write_vocabulary(writer, tokenizer, model.shape.vocabulary)

    _write(model, vocabulary, path, name, quantization, languages, licence="MIT")


def write_gguf_like(
    model: Llama,
    other: Path,
    path: Path,
    name: str,
    quantization: str = "q8_0",
    languages: Sequence[str] = (),
    trim: TrimmedVocabulary | None = None,
) -> None:
    """As ``write_gguf``, with the vocabulary of another GGUF file, of whatever kind that is.

    Args:
        trim: which of its tokens ``model`` has; None: all.
    """
    fields = {
        key: field
        for key, field in gguf.GGUFReader(other).fields.items()
        if key.startswith("tokenizer.ggml.") or key == "codespec.fim.order"
    }
    values = {key: field.contents() for key, field in fields.items()}
    if trim is not None:
        values = _trimmed(values, trim)

    def vocabulary(writer: gguf.GGUFWriter) -> None:
        for key, field in fields.items():
            subtype = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(key, values[key], field.types[0], subtype)
        if trim is not None:
            writer.add_key_value(TOKENS_KEY, trim.tokens.tolist(), gguf.GGUFValueType.ARRAY, gguf.GGUFValueType.UINT32)
            info = inspect(other)
            writer.add_string(VOCABULARY_KEY, info.vocabulary)
            writer.add_string(TEXTS_KEY, info.texts)

    _write(model, vocabulary, path, name, quantization, languages)


def _trimmed(values: dict[str, Any], trim: TrimmedVocabulary) -> dict[str, Any]:
    """A tokenizer's metadata with some of its tokens: it cuts no text as the whole one does, but llama.cpp loads it."""
    new = dict(values)
    for key, value in values.items():
        if key in _OF_LACKING:
            new[key] = [*(value[token] for token in trim.tokens), _OF_LACKING[key]]
        elif key.endswith("_token_id") and value < trim.vocabulary_size:
            new[key] = int(trim.own[value])
    names = set(new["tokenizer.ggml.tokens"])
    if "tokenizer.ggml.merges" in values:
        merges = values["tokenizer.ggml.merges"]
        new["tokenizer.ggml.merges"] = [
            each for each in merges if names.issuperset((*each.split(" "), each.replace(" ", "")))
        ]
    return new


def _write(
    model: Llama,
    vocabulary: Callable[[gguf.GGUFWriter], None],
    path: Path,
    name: str,
    quantization: str,
    languages: Sequence[str],
    licence: str = "",
) -> None:
    kind = QUANTIZATIONS[quantization]
    temporary = path.with_suffix(".tmp")
    writer = gguf.GGUFWriter(str(temporary), "llama")
    _write_metadata(writer, model, name, kind)
    if licence:
        writer.add_license(licence)
    vocabulary(writer)
    if languages:
        writer.add_string(LANGUAGES_KEY, ",".join(languages))
    for key, value in model.state_dict().items():
        data = value.float().cpu().numpy()
        if key == "output_norm.weight":
            data = data * np.float32(model.output_scale)
        if data.ndim == 1 or kind == gguf.GGMLQuantizationType.F32:
            writer.add_tensor(key, data)
        else:
            writer.add_tensor(key, quantize(data, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    temporary.replace(path)


def _write_metadata(writer: gguf.GGUFWriter, model: Llama, name: str, kind: gguf.GGMLQuantizationType) -> None:
    shape = model.shape
    writer.add_name(name)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_layer_norm_rms_eps(NORM_EPSILON)
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_rope_dimension_count(shape.head_width)
    writer.add_vocab_size(shape.vocabulary)
    writer.add_file_type(
        {
            gguf.GGMLQuantizationType.Q8_0: gguf.LlamaFileType.MOSTLY_Q8_0,
            gguf.GGMLQuantizationType.Q4_0: gguf.LlamaFileType.MOSTLY_Q4_0,
            gguf.GGMLQuantizationType.F16: gguf.LlamaFileType.MOSTLY_F16,
            gguf.GGMLQuantizationType.F32: gguf.LlamaFileType.ALL_F32,
        }[kind]
    )


def _write_vocabulary(writer: gguf.GGUFWriter, tokenizer: Tokenizer, size: int) -> None:
    bpe = json.loads(tokenizer.to_str())["model"]
    tokens: list[str] = [f"<|unused_{i}|>" for i in range(size)]
    kinds = np.full(size, int(gguf.TokenType.UNUSED))
    for token, index in bpe["vocab"].items():
        tokens[index] = token
        kinds[index] = int(gguf.TokenType.CONTROL if token in special.SPECIAL_TOKENS else gguf.TokenType.NORMAL)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds.tolist())
    writer.add_token_merges([" ".join(pair) for pair in bpe["merges"]])
    end = tokenizer.token_to_id(special.END_OF_TEXT)
    writer.add_eos_token_id(end)
    writer.add_eot_token_id(end)
    writer.add_pad_token_id(tokenizer.token_to_id(special.FIM_PAD))
    writer.add_add_bos_token(False)
    for key, token in (
        ("pre", special.FIM_PREFIX),
        ("suf", special.FIM_SUFFIX),
        ("mid", special.FIM_MIDDLE),
        ("pad", special.FIM_PAD),
        ("rep", special.REPO_NAME),
        ("sep", special.FILE_SEPARATOR),
    ):
        writer.add_uint32(f"tokenizer.ggml.fim_{key}_token_id", tokenizer.token_to_id(token))


def load_gguf(path: Path) -> Llama:
    """A model that ``codespec train`` has exported, as exactly as its quantization kept it.

    Raises:
        CodespecError: it is of another kind.
    """
    try:
        model = load_llama(path)
    except CodespecError as error:
        raise CodespecError(
            f"{path}: no model of `codespec train`; training can continue from those only ({error})"
        ) from error
    if model.shape.rope_base != ROPE_BASE:
        raise CodespecError(f"{path}: no model of `codespec train`; training can continue from those only")
    return model


def load_llama(path: Path) -> Llama:
    """A dense model of the llama architecture whose output is its embedding, from whatever quantization.

    Raises:
        CodespecError: it is of another kind.
    """
    reader = gguf.GGUFReader(path)

    def value(key: str) -> float:
        field = reader.fields.get(f"llama.{key}")
        if field is None:
            raise CodespecError(
                f"{path}: it has no llama.{key}, and only models of the Llama architecture can be trained"
            )
        return float(field.contents())

    architecture = reader.fields["general.architecture"].contents()
    if architecture != "llama" or any(tensor.name == "output.weight" for tensor in reader.tensors):
        raise CodespecError(f"{path}: a model of the llama architecture whose output is its embedding is needed")
    if abs(value("attention.layer_norm_rms_epsilon") - NORM_EPSILON) > NORM_EPSILON / 100:
        raise CodespecError(f"{path}: its norms are computed with another epsilon than {NORM_EPSILON:g}")
    shape = ModelShape(
        vocabulary=len(reader.fields["tokenizer.ggml.tokens"].data),
        width=int(value("embedding_length")),
        layers=int(value("block_count")),
        heads=int(value("attention.head_count")),
        kv_heads=int(value("attention.head_count_kv")),
        feed_forward=int(value("feed_forward_length")),
        context=int(value("context_length")),
        rope_base=value("rope.freq_base"),
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
        raise CodespecError(f"{path}: its tensors are other than llama's ({str(error).splitlines()[0]})") from error
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
