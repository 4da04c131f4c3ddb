"""The byte-level BPE vocabulary that the embedded target and its drafts share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import gguf
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

END_OF_TEXT = "<|endoftext|>"
FIM_PREFIX = "<|fim_prefix|>"
FIM_SUFFIX = "<|fim_suffix|>"
FIM_MIDDLE = "<|fim_middle|>"
FIM_PAD = "<|fim_pad|>"
REPO_NAME = "<|repo_name|>"
FILE_SEPARATOR = "<|file_sep|>"
SPECIAL_TOKENS = [END_OF_TEXT, FIM_PREFIX, FIM_SUFFIX, FIM_MIDDLE, FIM_PAD, REPO_NAME, FILE_SEPARATOR]

# llama.cpp's pre-tokenizer "qwen2" (llama-vocab.cpp): the GGUF names it, so the two must stay the same.
QWEN2_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def train(texts: Iterable[str], vocabulary_size: int = 8192) -> Tokenizer:
    """A byte-level BPE tokenizer whose first ids are the special tokens."""
    tokenizer = Tokenizer(models.BPE())
    _arrange(tokenizer)
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _arrange(tokenizer: Tokenizer) -> None:
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN2_PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()


def of_gguf(path: Path) -> Tokenizer:
    """The tokenizer of a model that `codespec train` has exported."""
    fields = gguf.GGUFReader(path).fields
    tokens, merges = (list(fields[f"tokenizer.ggml.{name}"].contents()) for name in ("tokens", "merges"))
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [(*merge.split(" ", 1),) for merge in merges]))
    _arrange(tokenizer)
    tokenizer.add_special_tokens(SPECIAL_TOKENS)
    return tokenizer


def load(path: Path) -> Tokenizer:
    """The tokenizer saved at ``path``."""
    return Tokenizer.from_file(str(path))
