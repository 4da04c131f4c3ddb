"""Extra heads on a frozen target, which guess from one hidden state the tokens after the next.

Two kinds: ``medusa`` sees the hidden state alone (Cai et al., arXiv 2401.10774), ``hydra`` also the tokens
between it and the one to guess (Ankner et al., arXiv 2402.05109). They are an experiment: ``codespec train heads``
trains both and compares them with the draft, see ``heads_report``; nothing uses them to complete.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional
from tqdm import tqdm

from codespec.train import data
from codespec.train.corpus import Document
from codespec.train.model import Llama
from codespec.train.train import Recipe, rate_factor

Kind = Literal["medusa", "hydra"]
KINDS: tuple[Kind, ...] = ("medusa", "hydra")
SEGMENT = 128
"""Positions of each row that are learnt from; the target reads the whole row, which is cheaper."""


class Heads(nn.Module):
    """Head ``d`` of ``count`` turns the hidden state that predicts token ``i`` into one that predicts ``i + d``.

    Each is a residual SiLU block over the hidden state and, of kind ``hydra``, the embeddings of tokens
    ``i … i + d - 1``. All go through the target's output embeddings, and begin as the target's own prediction.
    """

    def __init__(self, kind: Kind, width: int, count: int) -> None:
        super().__init__()
        self.kind: Kind = kind
        self.count = count
        inputs = [width * (1 + d if kind == "hydra" else 1) for d in range(1, count + 1)]
        self.into = nn.ModuleList(nn.Linear(size, 2 * width, bias=False) for size in inputs)
        self.out = nn.ModuleList(nn.Linear(2 * width, width, bias=False) for _ in inputs)
        for layer in self.out:
            nn.init.zeros_(layer.weight)

    def forward(self, depth: int, hidden: Tensor, between: Sequence[Tensor]) -> Tensor:
        """Hidden state for ``depth`` (from 1): [..., width] from [..., width] and as many embeddings as ``depth``.

        All of unit scale, the result too: times ``Llama.output_scale`` it goes through the tied embeddings.
        """
        seen = torch.cat([hidden, *between[:depth]], dim=-1) if self.kind == "hydra" else hidden
        out: Tensor = hidden + self.out[depth - 1](functional.silu(self.into[depth - 1](seen)))
        return out


class HeadsRun:
    """Heads of every kind in training on one target.

    Args:
        folder: where the log goes.
    """

    def __init__(self, target: Llama, tokenizer: Tokenizer, count: int, recipe: Recipe, folder: Path) -> None:
        torch.manual_seed(recipe.seed)
        self.target, self.tokenizer, self.recipe, self.folder = target, tokenizer, recipe, folder
        self.heads = nn.ModuleDict({kind: Heads(kind, target.shape.width, count) for kind in KINDS})
        self.count = count
        self.segment = min(SEGMENT, target.shape.context // 2)
        self.optimizer = torch.optim.AdamW(self.heads.parameters(), lr=recipe.adam_rate, weight_decay=0.0)
        self.steps = 0
        self.overlaps: dict[str, float] = {}  # with the target's distribution, 1 is equal
        folder.mkdir(parents=True, exist_ok=True)

    def kinds(self) -> dict[str, Heads]:
        """The heads of each kind."""
        return {kind: heads for kind, heads in self.heads.items() if isinstance(heads, Heads)}

    def step(self, batch: Tensor, start: int, factor: float) -> None:
        """One step on int64 [rows, context + 1], learning from ``segment`` positions from ``start`` on."""
        target, segment = self.target, self.segment
        output = target.token_embd.weight
        with torch.no_grad():
            scaled = target.hidden(batch[:, :-1])
            embedded = target.token_embd(batch[:, start : start + self.count + segment])
            teacher = (scaled[:, start + 1 : start + self.count + segment] @ output.T).softmax(dim=-1)
        hidden = scaled[:, start : start + segment] / target.output_scale
        for group in self.optimizer.param_groups:
            group["lr"] = factor * self.recipe.adam_rate
        for depth in range(1, self.count + 1):
            between = [embedded[:, d : d + segment] for d in range(1, depth + 1)]
            expected = teacher[:, depth - 1 : depth - 1 + segment]
            for kind, heads in self.heads.items():
                state = heads(depth, hidden, between)
                with torch.no_grad():
                    # The gradient of the cross entropy by hand: the vocabulary's rows are most of the work.
                    error = (state * target.output_scale @ output.T).softmax(dim=-1)
                    self._note(f"{kind}-{depth}", torch.minimum(error, expected).sum(dim=-1).mean().item())
                    error -= expected
                    gradient = error @ output * (target.output_scale / (segment * len(batch)))
                state.backward(gradient)
        torch.nn.utils.clip_grad_norm_(self.heads.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.steps += 1

    def _note(self, name: str, overlap: float) -> None:
        self.overlaps[name] = 0.95 * self.overlaps.get(name, overlap) + 0.05 * overlap

    def train(self, documents: list[Document], language: str, max_steps: int | None = None) -> None:
        """Train until the time budget or ``max_steps`` is spent."""
        recipe, context = self.recipe, self.target.shape.context
        rows = data.Rows(data.Sampler(documents, {language: 1.0}, recipe.seed), self.tokenizer, context)
        starts = torch.Generator().manual_seed(recipe.seed)
        began = time.monotonic()
        with tqdm(total=round(recipe.minutes * 60), unit="s", desc=self.folder.name, mininterval=10) as bar:
            while (elapsed := time.monotonic() - began) < recipe.minutes * 60:
                if max_steps is not None and self.steps >= max_steps:
                    break
                progress = max(elapsed / (recipe.minutes * 60), self.steps / max_steps if max_steps else 0.0)
                start = int(torch.randint(0, context - self.segment - self.count, (1,), generator=starts))
                batch = torch.from_numpy(rows.batch(recipe.rows))
                self.step(batch, start, rate_factor(progress, recipe))
                bar.update(round(elapsed) - bar.n)
                if self.steps % 20 == 0:
                    self._log()

    def _log(self) -> None:
        entry: dict[str, Any] = {"steps": self.steps, **{k: round(v, 4) for k, v in self.overlaps.items()}}
        with (self.folder / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
