"""The training loop of targets (next-token loss) and drafts (distilled on the target's distribution)."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional
from tqdm import tqdm

from codespec.languages import LANGUAGES
from codespec.train import data
from codespec.train import tokenizer as special
from codespec.train.corpus import CorpusDocument
from codespec.train.model import Llama, ModelShape
from codespec.train.muon import Muon

IGNORED = -100

SHARES = {each.id: each.share for each in LANGUAGES.values() if each.share}
"""Percent of the training texts of a target, by language."""

SPOKEN_FOR = 1 / 6
"""Weight, in the training texts of a general draft, of a language that has an embedded draft of its own: the general
draft serves it where that one is missing, and learns from it what languages have in common."""

DRAFT_ROWS = 2
"""Rows of a draft's training step: a small model's steps cost little, and more of them teach it more."""

WORTH_COMPILING = 5.0
"""Minutes of training from which the compiler's half a minute comes back."""


@dataclass(frozen=True)
class Recipe:
    """The settings of a training run.

    Attributes:
        minutes: time budget of the whole run, all its resumed parts together; the schedule follows it.
        compiled: through torch's compiler, which makes a step on a CPU take half as long.
        distillation: weight of the teacher's distribution against the true next token.
    """

    minutes: float = 75.0
    rows: int = 4
    compiled: bool = False
    muon_rate: float = 0.008
    adam_rate: float = 0.01
    warm_up: float = 0.02
    decay: float = 0.3
    distillation: float = 0.9
    checkpoint_minutes: float = 3.0
    seed: int = 1
    weights: tuple[tuple[str, float], ...] = tuple(SHARES.items())

    def slower(self, factor: float) -> Recipe:
        """The same recipe with both learning rates multiplied by ``factor``."""
        return replace(self, muon_rate=factor * self.muon_rate, adam_rate=factor * self.adam_rate)


def recipe_of(options: argparse.Namespace, rows: int = Recipe.rows) -> Recipe:
    """The recipe for the options of ``codespec train target|draft``; ``rows`` of a step unless they say how many."""
    recipe = Recipe(
        minutes=options.minutes,
        rows=options.rows or rows,
        compiled=options.size != "tiny" and options.minutes >= WORTH_COMPILING,
        decay=options.decay,
    )
    return recipe.slower(options.rate)


def rate_factor(progress: float, recipe: Recipe) -> float:
    """Warm-up, stable, decay: the learning rate's factor at ``progress`` in 0..1 (arXiv 2404.06395)."""
    if progress < recipe.warm_up:
        return max(progress / recipe.warm_up, 0.02)
    if progress > 1 - recipe.decay:
        return max((1 - progress) / recipe.decay, 0.0)
    return 1.0


def device_and_precision() -> tuple[torch.device, bool]:
    """The device to train on, and whether bfloat16 is faster on it."""
    if torch.cuda.is_available():
        return torch.device("cuda"), True
    # Without such instructions it is emulated, and slower.
    can = torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()
    return torch.device("cpu"), torch.backends.cpu.get_cpu_capability() == "AVX512" and can


def faster(function: Callable[..., Tensor], compiled: bool) -> Callable[..., Tensor]:
    """``function`` through torch's compiler, if that is asked for and there is a C++ compiler for it to use."""
    if not compiled or sys.platform == "win32" or shutil.which(os.environ.get("CXX", "g++")) is None:
        return function
    return torch.compile(function)


def said_by(teacher: Llama, compiled: bool) -> Callable[[Tensor], Tensor]:
    """A function from tokens [rows, length] to the teacher's distributions, float32 [rows, length, V]."""

    def said(inputs: Tensor) -> Tensor:
        out: Tensor = teacher(inputs).float().softmax(dim=-1)
        return out

    return faster(said, compiled)


def optimizers(model: Llama, recipe: Recipe, bfloat16: bool) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the blocks, AdamW for embeddings and norms (github.com/KellerJordan/Muon)."""
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embd" not in n]
    others = [p for n, p in model.named_parameters() if p.ndim != 2 or "embd" in n]
    return [
        Muon(matrices, lr=recipe.muon_rate, dtype=torch.bfloat16 if bfloat16 else torch.float32),
        torch.optim.AdamW(others, lr=recipe.adam_rate, betas=(0.9, 0.95), weight_decay=0.0),
    ]


def separators_of(tokenizer: Tokenizer) -> tuple[int, ...]:
    """The ids of the tokens that samples begin with."""
    return tuple(tokenizer.token_to_id(t) for t in (special.FILE_SEPARATOR, special.REPO_NAME, special.FIM_PREFIX))


def labels_of(batch: Tensor, separators: tuple[int, ...]) -> Tensor:
    """The next token of each but the last; ``IGNORED`` where a new sample starts, which is chance."""
    labels = batch[:, 1:].clone()
    for token in separators:
        labels[labels == token] = IGNORED
    return labels


def loss_of(logits: Tensor, labels: Tensor, teacher: Tensor | None, weight: float) -> Tensor:
    """Cross entropy with the next token, mixed with that against the teacher's distribution; nats per token."""
    hard = functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=IGNORED)
    if teacher is None:
        return hard
    kept = (labels != IGNORED).unsqueeze(-1)
    log_probs = functional.log_softmax(logits.float(), dim=-1)
    soft = -(teacher * log_probs * kept).sum() / kept.sum()
    return weight * soft + (1 - weight) * hard


class Run:
    """What every training has: a folder with its checkpoint and log, and how far it is.

    Args:
        folder: a checkpoint found there is continued.

    Attributes:
        seconds, steps, tokens: spent and seen so far, in all parts of the run.
    """

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self.recipe, self.folder = recipe, folder
        self.device, self.use_bfloat16 = device_and_precision()
        self.seconds, self.steps, self.tokens = 0.0, 0, 0
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint.pt"

    def found(self) -> dict[str, Any] | None:
        """What the checkpoint holds besides how far the run is, which is taken over; None where there is none."""
        if not self.checkpoint.exists():
            return None
        state: dict[str, Any] = torch.load(self.checkpoint, map_location=self.device, weights_only=True)
        self.seconds, self.steps, self.tokens = state["seconds"], state["steps"], state["tokens"]
        return state

    def write(self, state: dict[str, Any]) -> None:
        """Write the checkpoint; an interrupted write leaves the old one whole."""
        temporary = self.checkpoint.with_suffix(".tmp")
        torch.save({**state, "seconds": self.seconds, "steps": self.steps, "tokens": self.tokens}, temporary)
        temporary.replace(self.checkpoint)

    def log(self, **entry: float) -> None:
        """Add a line to ``log.jsonl``."""
        entry = {name: round(value, 4) for name, value in entry.items()}
        with (self.folder / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


class Learner(Run):
    """A model in training, with everything that a resumed run needs.

    Raises:
        ValueError: a model of another shape was trained in this folder.
    """

    def __init__(self, model: Llama, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe, folder)
        self.model = model.to(self.device)
        self.optimizers = optimizers(self.model, recipe, self.use_bfloat16)
        state = self.found()
        if state is None:
            return
        if ModelShape(**state["shape"]) != self.model.shape:
            raise ValueError(f"{self.checkpoint}: another shape of model was trained here; choose another --out")
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)

    def save(self) -> None:
        """Write the checkpoint, and draw the loss."""
        self.write(
            {
                "shape": asdict(self.model.shape),
                "model": self.model.state_dict(),
                "optimizers": [o.state_dict() for o in self.optimizers],
            }
        )

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        """The context to call the model in: bfloat16 where that is faster."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.use_bfloat16)

    def descend(self, loss: Tensor, factor: float, tokens: int) -> float:
        """Take one optimizer step at ``factor`` of the learning rates, over ``tokens`` tokens; returns the loss."""
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = factor * (self.recipe.muon_rate if isinstance(optimizer, Muon) else self.recipe.adam_rate)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self.steps += 1
        self.tokens += tokens
        return float(loss.item())


class TrainingRun(Learner):
    """A model that learns from texts.

    Args:
        teacher: the target to distil from, or None to learn from the text alone.
    """

    def __init__(
        self, shape: ModelShape, recipe: Recipe, tokenizer: Tokenizer, folder: Path, teacher: Llama | None = None
    ) -> None:
        self.shape, self.tokenizer = shape, tokenizer
        torch.manual_seed(recipe.seed)
        super().__init__(Llama(shape), recipe, folder)
        self._taught = said_by(teacher.to(self.device), recipe.compiled) if teacher is not None else None

        def loss(inputs: Tensor, labels: Tensor, taught: Tensor | None) -> Tensor:
            return loss_of(self.model(inputs), labels, taught, recipe.distillation)

        self._loss = faster(loss, recipe.compiled)
        self.separators = separators_of(tokenizer)

    def step(self, batch: Tensor, factor: float) -> float:
        """One optimizer step on int64 [rows, context + 1]; the loss in nats per token."""
        inputs, labels = batch[:, :-1], labels_of(batch, self.separators)
        with self.autocast():
            teacher = None
            if self._taught is not None:
                with torch.no_grad():
                    teacher = self._taught(inputs)
            loss = self._loss(inputs, labels, teacher)
        return self.descend(loss, factor, inputs.numel())

    def train(self, documents: list[CorpusDocument], max_steps: int | None = None) -> None:
        """Train until the time budget or ``max_steps`` is spent; a log line every 20 steps."""
        recipe = self.recipe
        rows = data.TrainingRows(
            data.RowSampler(documents, dict(recipe.weights), recipe.seed * 1_000_003 + self.steps),
            self.tokenizer,
            self.shape.context,
        )
        budget = recipe.minutes * 60
        since_save, smoothed, weight = time.monotonic(), 0.0, 0.0
        with tqdm(total=round(budget), initial=round(self.seconds), unit="s", desc=self.folder.name) as bar:
            while self.seconds < budget and (max_steps is None or self.steps < max_steps):
                began = time.monotonic()
                progress = self.seconds / budget
                if max_steps is not None:
                    progress = max(progress, self.steps / max_steps)
                batch = torch.from_numpy(rows.batch(recipe.rows)).to(self.device)
                factor = rate_factor(progress, recipe)
                loss = self.step(batch, factor)
                smoothed, weight = 0.98 * smoothed + 0.02 * loss, 0.98 * weight + 0.02
                elapsed = time.monotonic() - began
                self.seconds += elapsed
                bar.update(round(self.seconds) - bar.n)
                if self.steps % 20 == 0:
                    speed = recipe.rows * self.shape.context / elapsed
                    bar.set_postfix_str(
                        f"loss {smoothed / weight:.3f}, {self.tokens / 1e6:.2f}M tokens, {speed:,.0f}/s"
                    )
                    self.log(loss=smoothed / weight, rate=factor, tokens=self.tokens, seconds=self.seconds)
                if time.monotonic() - since_save > recipe.checkpoint_minutes * 60:
                    self.save()
                    since_save = time.monotonic()
        self.save()


@torch.no_grad()
def bits_per_byte(model: Llama, tokenizer: Tokenizer, documents: list[CorpusDocument]) -> float:
    """Bits per byte of UTF-8 over the first context of each document, left to right, without its path."""
    device = next(model.parameters()).device
    nats = 0.0
    size = 0
    start = tokenizer.token_to_id(special.FILE_SEPARATOR)
    for document in documents:
        ids = tokenizer.encode(document.text[: model.shape.context * 8]).ids[: model.shape.context - 1]
        tokens = torch.tensor([[start, *ids]], device=device)
        logits = model(tokens[:, :-1]).float()
        nats += functional.cross_entropy(logits[0], tokens[0, 1:], reduction="sum").item()
        size += len(tokenizer.decode(ids).encode())
    return nats / math.log(2) / size
