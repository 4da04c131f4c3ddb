"""Targets as the teachers of drafts, in PyTorch: that of a run folder, and that in a GGUF file where this is faster
than llama.cpp. Lessons are stored and learnt several times, since a forward pass takes as long as a training step of a
draft, or longer."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil
import torch
from tokenizers import Tokenizer
from torch import Tensor

from codespec.models.info import inspect
from codespec.protocols import CodespecError
from codespec.train import data
from codespec.train.corpus import CorpusDocument
from codespec.train.gguf_file import load_llama
from codespec.train.model import Llama
from codespec.train.teacher import ROWS, Lesson, Teacher, TextTeacher, likeliest
from codespec.train.train import IGNORED, Recipe, device_and_precision, labels_of, said_by, separators_of

KEPT = 48
"""Tokens whose probabilities are kept at each position, 300 MB for a million tokens of text: a small target is less
sure than a large one, and these have 82 % of the probability."""

UNPACKED = 6
"""Bytes of a parameter while a file is read: float32, and bfloat16 made of it."""

_TOGETHER = 4  # rows

_AT_ONCE = 256  # rows of logits: 50 MB of 49,152 tokens


class TorchTeacher:
    """Makes lessons with a target in PyTorch.

    Args:
        documents: that texts are drawn from, in the shares that ``recipe`` gives to languages.
    """

    def __init__(
        self, target: Llama, tokenizer: Tokenizer, documents: Sequence[CorpusDocument], recipe: Recipe
    ) -> None:
        self._tokenizer, self._documents, self._recipe = tokenizer, documents, recipe
        self._device, self._use_bfloat16 = device_and_precision()
        self._target = target.to(self._device)
        self._separators = separators_of(tokenizer)
        self._said = said_by(self._target, recipe.compiled)

    @torch.no_grad()
    def lesson(self, number: int) -> Lesson:
        """The lesson with that number: ``ROWS`` rows, always the same ones."""
        sampler = data.RowSampler(self._documents, dict(self._recipe.weights), self._recipe.seed * 1_000_003 + number)
        tokens = data.TrainingRows(sampler, self._tokenizer, self._target.shape.context).batch(ROWS)
        said = [self._read(tokens[start : start + _TOGETHER, :-1]) for start in range(0, ROWS, _TOGETHER)]
        learnt = labels_of(torch.from_numpy(tokens), self._separators) != IGNORED
        return Lesson(
            tokens.astype(np.int32),
            learnt.numpy(),
            np.concatenate([ids.numpy().astype(np.int32) for ids, _ in said]),
            np.concatenate([shares.numpy().astype(np.float16) for _, shares in said]),
        )

    def _read(self, inputs: np.ndarray) -> tuple[Tensor, Tensor]:
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._use_bfloat16):
            shares, ids = self._said(torch.from_numpy(inputs).to(self._device)).topk(KEPT, dim=-1)
        return ids.cpu(), shares.cpu()


class TorchReader(TextTeacher):
    """As ``Teacher``, of a dense model of the llama architecture: with units for bfloat16 a CPU reads several times as
    many tokens a second in PyTorch.

    Raises:
        CodespecError: it cannot be loaded, or is of another kind.
    """

    def __init__(self, path: Path, length: int) -> None:
        super().__init__(path, length)
        self._target = load_llama(path).to(torch.bfloat16).requires_grad_(False)

    @torch.no_grad()
    def _read(self, tokens: Sequence[int]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float16]]:
        hidden = self._target.hidden(torch.tensor([tokens[:-1]]))[0]
        output = self._target.token_embd.weight.T
        said = [likeliest((part @ output).float().numpy()) for part in hidden.split(_AT_ONCE)]
        return np.concatenate([ids for ids, _ in said]), np.concatenate([shares for _, shares in said])


def reader(path: Path, length: int) -> TextTeacher:
    """The faster teacher of a target in a GGUF file; close it after use.

    Raises:
        CodespecError: it cannot be loaded.
    """
    device, use_bfloat16 = device_and_precision()
    fits = UNPACKED * inspect(path).parameters < psutil.virtual_memory().available / 2
    if device.type == "cpu" and use_bfloat16 and fits:
        with contextlib.suppress(CodespecError):
            return TorchReader(path, length)
    return Teacher(path, length)
