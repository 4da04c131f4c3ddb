"""The properties of a model file, from its metadata and vocabulary, without its weights."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from codespec.files import StrPath
from codespec.llama.model import Model
from codespec.llama.runtime import library
from codespec.models.catalogue import EDIT_NAMES
from codespec.models.fim import FimFormat, fim_format
from codespec.models.registry import text_hash, vocabulary_hash
from codespec.models.trimmed import TEXTS_KEY, VOCABULARY_KEY
from codespec.terminal import printable

LANGUAGES_KEY = "codespec.draft.languages"
"""The GGUF key of a draft's languages: names with commas between."""

LONGEST_NUMBER = 18
"""Digits of a number in metadata at most."""

LONGEST_LICENCE = 40
"""Characters: some files hold a whole licence where its name should stand."""


@dataclass(frozen=True)
class ModelInfo:
    """One GGUF file.

    Attributes:
        name: as its metadata says, else that of the file.
        architecture: llama.cpp's name for it.
        parameters: 0 where the file has a vocabulary only.
        quantization: such as ``Q8_0``; empty where it does not say.
        size: of the file, in bytes.
        context: tokens that it was trained with; 0 where it does not say.
        licence: as it names it; empty where it does not say.
        vocabulary: a hash of all tokens: equal where one model can draft for another without retokenizing; of a trimmed
            draft its target's.
        texts: a hash of the tokens that are text, equal within a family whose members add special ones; empty where a
            trimmed draft does not say.
        vocabulary_size: tokens.
        trimmed: whether it is a draft that has only some tokens of that vocabulary.
        kv_bytes: of the KV cache for each token, at 16 bits.
        languages: that a draft was trained for; empty where it does not say.
        fim: its fill-in-the-middle layout; None if it cannot fill in the middle.
    """

    path: Path
    name: str
    architecture: str
    parameters: int
    quantization: str
    size: int
    context: int
    licence: str
    vocabulary: str
    texts: str
    vocabulary_size: int
    trimmed: bool
    kv_bytes: int
    languages: tuple[str, ...]
    fim: FimFormat | None

    @property
    def vocabularies(self) -> frozenset[str]:
        """Hashes of which a draft and its target have one in common."""
        return frozenset({self.vocabulary, self.texts} - {""})

    @property
    def family(self) -> str:
        """The family of its fill-in-the-middle layout; empty without one."""
        return self.fim.family.name if self.fim is not None else ""

    @property
    def edits(self) -> bool:
        """Whether it was made for next edits: its training writes so in the metadata, or its name says it."""
        name = self.path.stem.lower().replace("_", "-")
        return self.languages == ("edit",) or any(each in name for each in EDIT_NAMES)


def inspect(path: StrPath) -> ModelInfo:
    """Read a file's metadata and vocabulary, but no weights: at most a second or two.

    Raises:
        CodespecError: the file is missing, damaged, no GGUF, or of an architecture that this llama.cpp does not know.
    """
    path = Path(path)
    with Model(path, vocabulary_only=True) as model:
        architecture = model.metadata("general.architecture") or ""
        made_for = printable(model.metadata(VOCABULARY_KEY) or "")
        return ModelInfo(
            path=path,
            name=printable(model.metadata("general.name") or path.stem),
            architecture=architecture,
            parameters=model.parameter_count,
            quantization=_quantization(model) if model.parameter_count else "",
            size=path.stat().st_size,
            context=_number(model, f"{architecture}.context_length"),
            licence=printable((model.metadata("general.license") or "").partition("\n")[0])[:LONGEST_LICENCE],
            vocabulary=made_for or vocabulary_hash(model.vocabulary),
            texts=printable(model.metadata(TEXTS_KEY) or "") or ("" if made_for else text_hash(model.vocabulary)),
            vocabulary_size=model.vocabulary.size,
            trimmed=bool(made_for),
            kv_bytes=_kv_bytes(model, architecture),
            languages=tuple(filter(None, (model.metadata(LANGUAGES_KEY) or "").split(","))),
            fim=fim_format(model),
        )


def _number(model: Model, key: str) -> int:
    """A whole number, 0 where there is none; where every layer has its own, the first one's."""
    text = (model.metadata(key) or "").strip("[]").partition(",")[0].strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER else 0


def _kv_bytes(model: Model, architecture: str) -> int:
    if model.recurrent:
        return model.kv_bytes_per_token
    heads = _number(model, f"{architecture}.attention.head_count")
    kv_heads = _number(model, f"{architecture}.attention.head_count_kv") or heads
    width = _number(model, f"{architecture}.embedding_length") // max(1, heads)
    key = _number(model, f"{architecture}.attention.key_length") or width
    value = _number(model, f"{architecture}.attention.value_length") or width
    return 2 * _number(model, f"{architecture}.block_count") * kv_heads * (key + value)


def _quantization(model: Model) -> str:
    return _quantizations().get(_number(model, "general.file_type"), "")


@functools.cache
def _quantizations() -> dict[int, str]:
    """llama.cpp's names by their numbers in GGUF files."""
    prefix = "LLAMA_FTYPE_"
    api = library()
    found = {getattr(api, name): name.removeprefix(prefix) for name in dir(api) if name.startswith(prefix)}
    return {number: name.removeprefix("MOSTLY_").removeprefix("ALL_") for number, name in found.items()}
