"""The training loop of an adapter for filling in."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from codespec.protocols import CodespecError
from codespec.train.filling.lora import adapt, learnt
from codespec.train.model import Llama
from codespec.train.progress_bar import ProgressBar
from codespec.train.rows import Batch
from codespec.train.train import Recipe, Run, rate_factor


@dataclass(frozen=True)
class Shape:
    """Sizes of an adapter: its rank, and how many of the last layers it changes.

    The lower layers then need no backward pass: a step takes three quarters of the time, and the file half the room.
    """

    rank: int = 16
    layers: int = 15


class FillingRun(Run):
    """An adapter in training.

    Args:
        recipe: ``minutes`` and ``adam_rate`` count.

    Raises:
        CodespecError: an adapter of another shape was trained in this folder.
    """

    def __init__(self, model: Llama, shape: Shape, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe, folder)
        torch.manual_seed(recipe.seed)
        # What stays as it is, in the type that is read fastest; what is learnt, in float32.
        self.model = model.to(self.device, torch.bfloat16 if self.use_bfloat16 else torch.float32)
        self.model.cos, self.model.sin = self.model.cos.float(), self.model.sin.float()
        adapt(self.model, shape.rank, shape.layers)
        self.model.to(self.device)
        self.learnt = learnt(self.model)
        self.optimizer = torch.optim.AdamW(self.learnt.values(), lr=recipe.adam_rate, betas=(0.9, 0.98), weight_decay=0)
        state = self.found()
        if state is not None:
            self._take_over(state)

    def _take_over(self, state: dict[str, Any]) -> None:
        if _shapes(state["learnt"]) != _shapes(self.learnt):
            raise CodespecError(f"{self.checkpoint}: another shape of adapter was trained here; choose another --out")
        with torch.no_grad():
            for name, value in self.learnt.items():
                value.copy_(state["learnt"][name])
        self.optimizer.load_state_dict(state["optimizer"])

    def save(self) -> None:
        """Write the adapter and the state of its optimizer, from which training goes on."""
        known = {name: value.detach() for name, value in self.learnt.items()}
        self.write({"learnt": known, "optimizer": self.optimizer.state_dict()})

    def losses(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Nats of each token that counts, and its weight."""
        counts = batch.weights > 0
        inputs, places, labels, weights = (
            torch.from_numpy(each).to(self.device)
            for each in (batch.inputs, batch.places[counts], batch.labels[counts], batch.weights[counts])
        )
        hidden = self.model.hidden(inputs).flatten(0, 1)[places]
        logits = hidden @ self.model.token_embd.weight.T
        return functional.cross_entropy(logits.float(), labels, reduction="none"), weights

    def step(self, batch: Batch, progress: float) -> float:
        """One step of the optimizer; the loss of the middles' tokens, in nats."""
        losses, weights = self.losses(batch)
        ((losses * weights).sum() / weights.sum()).backward()
        torch.nn.utils.clip_grad_norm_(self.learnt.values(), 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.adam_rate * rate_factor(progress, self.recipe)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.steps += 1
        self.tokens += batch.inputs.size
        return float(losses.detach()[weights == 1].mean())

    @torch.no_grad()
    def judge(self, batches: Iterable[Batch]) -> float:
        """The mean loss of the middles' tokens, in nats."""
        total, count = 0.0, 0
        for batch in batches:
            losses, weights = self.losses(batch)
            total, count = total + float(losses[weights == 1].sum()), count + int((weights == 1).sum())
        return total / max(1, count)

    def train(self, batches: Iterator[Batch], max_steps: int | None = None) -> None:
        """Train until the recipe's minutes or ``max_steps`` are spent; a log line every 20 steps."""
        budget, saved, smoothed, weight = self.recipe.minutes * 60, time.monotonic(), 0.0, 0.0
        with ProgressBar("fim", budget) as bar:
            while self.seconds < budget and (max_steps is None or self.steps < max_steps):
                began = time.monotonic()
                progress = max(self.seconds / budget, self.steps / max_steps if max_steps else 0.0)
                loss = self.step(next(batches), progress)
                smoothed, weight = 0.98 * smoothed + 0.02 * loss, 0.98 * weight + 0.02
                self.seconds += time.monotonic() - began
                bar.at(self.seconds)
                if self.steps % 20 == 0:
                    bar.note(f"loss {smoothed / weight:.3f}, {self.tokens / 1e6:.2f}M tokens")
                    self.log(loss=smoothed / weight, tokens=self.tokens, seconds=self.seconds)
                if time.monotonic() - saved > self.recipe.checkpoint_minutes * 60:
                    self.save()
                    saved = time.monotonic()
        self.save()


def _shapes(tensors: dict[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in tensors.items()}
