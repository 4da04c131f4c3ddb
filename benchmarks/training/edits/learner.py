"""The training loop of the next-edit model: one thread in each process, gradients averaged between them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as processes
from torch import Tensor
from torch.nn import functional
from tqdm import tqdm

from benchmarks.training.edits.rows import Batches
from codespec.train.model import Llama
from codespec.train.rows import Batch
from codespec.train.train import Learner, Recipe, rate_factor

BATCH = 2048
"""Tokens of a step, in each process."""


class EditLearner(Learner):
    """A model that learns to write windows again as they should be.

    Args:
        rank, world: which process this is, and of how many. Only the first writes checkpoints.
    """

    def __init__(self, model: Llama, recipe: Recipe, folder: Path, rank: int = 0, world: int = 1) -> None:
        super().__init__(model, recipe, folder)
        self.rank, self.world = rank, world

    def loss(self, batch: Batch) -> Tensor:
        """Weighted cross entropy of the tokens that the model has to write, in nats."""
        inputs, places = torch.from_numpy(batch.inputs), torch.from_numpy(batch.places)
        labels, weights = torch.from_numpy(batch.labels), torch.from_numpy(batch.weights)
        with self.autocast():
            hidden = self.model.hidden(inputs.to(self.device)).flatten(0, 1)[places.to(self.device)]
            logits = hidden @ self.model.token_embd.weight.T
        losses = functional.cross_entropy(logits.float(), labels.to(self.device), reduction="none")
        weights = weights.to(self.device)
        return (losses * weights).sum() / weights.sum()

    def train(self, batches: Iterator[Batch], max_steps: int | None = None) -> None:
        """Train until the recipe's minutes or ``max_steps`` are spent; a log line every 20 steps, and at the end."""
        budget, began, spent = self.recipe.minutes * 60, time.monotonic(), self.seconds
        saved, smoothed, weight = began, 0.0, 0.0
        with tqdm(total=round(budget), initial=round(spent), unit="s", desc="edit", disable=self.rank > 0) as bar:
            while True:
                self.seconds = spent + time.monotonic() - began
                progress = max(self.seconds / budget, self.steps / max_steps if max_steps else 0.0)
                loss, progress = self._step(next(batches), progress)
                if progress >= 1:
                    break
                smoothed, weight = 0.98 * smoothed + 0.02 * loss, 0.98 * weight + 0.02
                bar.update(round(self.seconds) - bar.n)
                if self.rank == 0 and self.steps % 20 == 0:
                    bar.set_postfix_str(f"loss {smoothed / weight:.3f}, {self.tokens / 1e6:.2f}M tokens")
                    self.log(loss=smoothed / weight, tokens=self.tokens, seconds=self.seconds)
                if self.rank == 0 and time.monotonic() - saved > self.recipe.checkpoint_minutes * 60:
                    self.save()
                    saved = time.monotonic()
        if self.rank == 0:
            self.log(loss=smoothed / (weight or 1.0), tokens=self.tokens, seconds=self.seconds)
            self.save()

    def _step(self, batch: Batch, progress: float) -> tuple[float, float]:
        """The loss, and how much of the budget is spent: all of it, and nothing is learnt."""
        loss = self.loss(batch)
        loss.backward()
        progress = self._average(progress)
        if progress < 1:
            self._rates(rate_factor(progress, self.recipe))
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            for optimizer in self.optimizers:
                optimizer.step()
            self.steps += 1
            self.tokens += batch.inputs.size * self.world
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        return float(loss.item()), progress

    def _rates(self, factor: float) -> None:
        for optimizer, rate in zip(self.optimizers, (self.recipe.muon_rate, self.recipe.adam_rate), strict=True):
            for group in optimizer.param_groups:
                group["lr"] = factor * rate

    def _average(self, progress: float) -> float:
        """One exchange of all gradients; the clock of the first process counts for all, and is returned."""
        if self.world == 1:
            return progress
        parameters = [each for each in self.model.parameters() if each.grad is not None]
        clock = torch.tensor([progress if self.rank == 0 else 0.0])
        flat = torch.cat([*(each.grad.flatten() for each in parameters if each.grad is not None), clock])
        processes.all_reduce(flat)
        progress = float(flat[-1])
        flat /= self.world
        at = 0
        for each in parameters:
            each.grad = flat[at : at + each.numel()].view_as(each)
            at += each.numel()
        return progress


def join(rank: int, world: int, meeting: Path) -> None:
    """Meet the other processes at a file that does not exist yet."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    if world > 1:
        processes.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)


def batches(folder: Path, rank: int, world: int, seed: int) -> Iterator[Batch]:
    """The batches of one process."""
    return iter(Batches(folder, BATCH, seed * 1_000 + rank, rank, world))
