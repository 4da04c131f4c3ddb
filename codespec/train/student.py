"""A draft that is distilled from the stored lessons of a target."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from codespec.child_progress import LEARNS
from codespec.models.info import ModelInfo
from codespec.train import loss_plot
from codespec.train.gguf_file import load_gguf, with_tokens
from codespec.train.model import DRAFT, TINY_DRAFT, Llama
from codespec.train.progress_bar import ProgressBar
from codespec.train.teacher import Lesson
from codespec.train.train import Learner, Recipe, faster, rate_factor, recipe_of
from codespec.train.trim import TrimmedVocabulary, trim_of

GOING_ON = 0.1
"""Factor on the learning rates of a draft that goes on from another."""


def distilled(logits: Tensor, labels: Tensor, learnt: Tensor, ids: Tensor, shares: Tensor, weight: float) -> Tensor:
    """The loss in nats per token: ``weight`` × cross entropy with the teacher's likeliest tokens and the rest as one,
    plus 1 - ``weight`` × cross entropy with the text.

    Args:
        logits: [rows, length, V].
        labels: the text's own next tokens, [rows, length].
        learnt, ids, shares: as in ``Lesson``.
    """
    log_probs = functional.log_softmax(logits.float(), dim=-1)
    picked = log_probs.gather(-1, ids)
    rest = (1 - shares.sum(-1)).clamp(min=0)
    likely = (picked.exp() * (shares > 0)).sum(-1)  # a token that a trimmed draft lacks has no share
    others = torch.log1p(-likely.clamp(max=1 - 1e-6))
    soft = -(shares * picked).sum(-1) - rest * others
    hard = -log_probs.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return ((weight * soft + (1 - weight) * hard) * learnt).sum() / learnt.sum()


class Student(Learner):
    """A draft that learns from lessons.

    Args:
        trim: which of the target's tokens it has; None: all.
    """

    def __init__(self, model: Llama, recipe: Recipe, out: Path, trim: TrimmedVocabulary | None = None) -> None:
        self.trim = trim
        super().__init__(model, recipe, out)

        def loss(tokens: Tensor, learnt: Tensor, ids: Tensor, shares: Tensor) -> Tensor:
            return distilled(self.model(tokens[:, :-1]), tokens[:, 1:], learnt, ids, shares, recipe.distillation)

        self._loss = faster(loss, recipe.compiled)

    def train(self, lessons: Sequence[Path], until: float, max_steps: int | None) -> None:
        """Learn until the time ``until`` (of ``monotonic``), or for ``max_steps``."""
        loss_plot.announce(self.folder)
        began, before = time.monotonic(), self.seconds
        total = max(1.0, until - began)
        saved, smoothed, weight = began, 0.0, 0.0
        with ProgressBar(LEARNS, total) as bar:
            for lesson, rows in self._batches(lessons):
                now = time.monotonic()
                progress = max((now - began) / total, self.steps / max_steps if max_steps else 0.0)
                if progress >= 1:
                    break
                factor = rate_factor(progress, self.recipe)
                loss = self._step(lesson, rows, factor)
                smoothed, weight = 0.98 * smoothed + 0.02 * loss, 0.98 * weight + 0.02
                self.seconds = before + time.monotonic() - began
                bar.at(time.monotonic() - began)
                if self.steps % 20 == 0:
                    bar.note(f"loss {smoothed / weight:.3f}, {self.tokens / 1e6:.2f}M tokens")
                    self.log(loss=smoothed / weight, rate=factor, tokens=self.tokens, seconds=self.seconds)
                if now - saved > self.recipe.checkpoint_minutes * 60:
                    self.save()
                    saved = now
        self.save()

    def _batches(self, paths: Sequence[Path]) -> Iterator[tuple[Lesson, list[int]]]:
        """Endless: some rows of a lesson, in an order of its own each time."""
        chooser = random.Random(self.steps)
        size = self.recipe.rows
        while True:
            for path in chooser.sample(list(paths), len(paths)):
                lesson = Lesson.load(path)
                if self.trim is not None:
                    lesson = self.trim.lesson(lesson)
                order = chooser.sample(range(len(lesson.tokens)), len(lesson.tokens))
                # What is left of a lesson is another time's, but for one of fewer rows than a step.
                for start in range(0, max(1, len(order) - size + 1), size):
                    yield lesson, order[start : start + size]

    def _step(self, lesson: Lesson, rows: list[int], factor: float) -> float:
        tokens = torch.from_numpy(lesson.tokens[rows].astype(np.int64)).to(self.device)
        with self.autocast():
            loss = self._loss(
                tokens,
                torch.from_numpy(lesson.learnt[rows]).to(self.device),
                torch.from_numpy(lesson.ids[rows].astype(np.int64)).to(self.device),
                torch.from_numpy(lesson.shares[rows].astype(np.float32)).to(self.device),
            )
        return self.descend(loss, factor, len(rows) * (tokens.shape[1] - 1))


def begin(
    options: argparse.Namespace, target: ModelInfo, out: Path, start: Path | None, trim: TrimmedVocabulary | None = None
) -> Student:
    """A draft for ``target``, new or going on from ``start``, with the tokens of ``trim``; None: with all."""
    recipe = recipe_of(options)
    torch.manual_seed(recipe.seed)
    if start is not None:
        # What is learnt already is not to be forgotten; and nothing but the target counts: a draft that learns a
        # few texts by heart knows them better than the target, and is refused.
        recipe = replace(recipe.slower(GOING_ON), distillation=1.0)
        model = load_gguf(start)
        if trim is not None and trim_of(start, trim.vocabulary_size) is None:
            model = with_tokens(model, trim.tokens)
    else:
        shape = TINY_DRAFT if options.size == "tiny" else DRAFT
        context = min(shape.context, target.context or shape.context)
        size = target.vocabulary_size if trim is None else trim.size
        model = Llama(replace(shape, vocabulary=size, context=context))
    return Student(model, recipe, out, trim)
