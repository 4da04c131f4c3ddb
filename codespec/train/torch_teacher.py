"""The target of a run folder as the teacher of drafts, in PyTorch. Its lessons are stored and learnt several times,
since its forward pass takes as long as a training step of a draft."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from codespec.train import data
from codespec.train.corpus import CorpusDocument
from codespec.train.model import Llama
from codespec.train.teacher import ROWS, Lesson
from codespec.train.train import IGNORED, Recipe, device_and_precision, labels_of, said_by, separators_of

KEPT = 48
"""Tokens whose probabilities are kept at each position, 300 MB for a million tokens of text: a small target is less
sure than a large one, and these have 82 % of the probability."""

_TOGETHER = 4  # rows


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
