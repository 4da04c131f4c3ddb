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

from codespec.models.info import ModelInfo
from codespec.train.distilled import DistilledLoss
from codespec.train.gguf_file import load_gguf, with_tokens
from codespec.train.model import DRAFT, TINY_DRAFT, Llama
from codespec.train.neighbours import embeddings_of
from codespec.train.progress_bar import ProgressBar
from codespec.train.teacher import Lesson
from codespec.train.train import DRAFT_ROWS, Learner, Recipe, faster, rate_factor, recipe_of
from codespec.train.trim import TrimmedVocabulary, trim_of

COUNTED = 200
"""Lessons in which neighbours are counted: 6.5M tokens."""

NEW = 2.0
"""Factor on AdamW's learning rate of a new draft, which is nearly all embedding."""

GOING_ON = 0.1
"""Factor on the learning rates of a draft that goes on from another."""


class Student(Learner):
    """A draft that learns from lessons.

    Args:
        trim: which of the target's tokens it has; None: all.
    """

    def __init__(self, model: Llama, recipe: Recipe, out: Path, trim: TrimmedVocabulary | None = None) -> None:
        self.trim = trim
        super().__init__(model, recipe, out)
        self._hidden = faster(self.model.hidden, recipe.compiled)
        precision = torch.bfloat16 if self.use_bfloat16 else torch.float32
        self._loss = DistilledLoss(recipe.distillation, precision, recipe.compiled)

    def go_on(self) -> None:
        """Learn on from what is known: that is not to be forgotten, and nothing but the target counts."""
        self.recipe = going_on(self.recipe)
        self._loss.weight = self.recipe.distillation

    def train(self, lessons: Sequence[Path], until: float, max_steps: int | None) -> None:
        """Learn until the time ``until`` (of ``monotonic``), or for ``max_steps``."""
        began, before = time.monotonic(), self.seconds
        total = max(1.0, until - began)
        saved, smoothed, weight = began, 0.0, 0.0
        with ProgressBar("the draft learns", total) as bar:
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

    def know_neighbours(self, paths: Sequence[Path]) -> None:
        """Begin with embeddings in which tokens that the texts use alike are alike."""
        read = map(Lesson.load, paths[:COUNTED])
        lessons = read if self.trim is None else map(self.trim.lesson, read)
        shape, weight = self.model.shape, self.model.token_embd.weight
        weight.data.copy_(embeddings_of(lessons, shape.vocabulary, shape.width))

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
            hidden = self._hidden(tokens[:, :-1])
        loss = self._loss(
            hidden.flatten(0, 1),
            self.model.token_embd.weight,
            tokens[:, 1:].flatten(),
            torch.from_numpy(lesson.learnt[rows]).to(self.device).flatten(),
            torch.from_numpy(lesson.ids[rows].astype(np.int64)).to(self.device).flatten(0, 1),
            torch.from_numpy(lesson.shares[rows].astype(np.float32)).to(self.device).flatten(0, 1),
        )
        return self.descend(loss, factor, len(rows) * (tokens.shape[1] - 1))


def going_on(recipe: Recipe) -> Recipe:
    """What a draft that knows something learns by: slowly, and from the target alone. One that learns a few texts by
    heart knows them better than the target, and is refused."""
    return replace(recipe.slower(GOING_ON), distillation=1.0)


def begin(
    options: argparse.Namespace, target: ModelInfo, out: Path, start: Path | None, trim: TrimmedVocabulary | None = None
) -> Student:
    """A draft for ``target``, new or going on from ``start``, with the tokens of ``trim``; None: with all."""
    recipe = recipe_of(options, DRAFT_ROWS)
    torch.manual_seed(recipe.seed)
    if start is not None:
        recipe = going_on(recipe)
        model = load_gguf(start)
        if trim is not None and trim_of(start, trim.vocabulary_size) is None:
            model = with_tokens(model, trim.tokens)
    else:
        shape = TINY_DRAFT if options.size == "tiny" else DRAFT
        context = min(shape.context, target.context or shape.context)
        size = target.vocabulary_size if trim is None else trim.size
        model = Llama(replace(shape, vocabulary=size, context=context))
        recipe = replace(recipe, adam_rate=NEW * recipe.adam_rate)
    return Student(model, recipe, out, trim)
