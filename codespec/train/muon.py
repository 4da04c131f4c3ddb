"""Muon: momentum orthogonalised by Newton-Schulz iteration, for the matrices inside the blocks.

Source: Keller Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024).
``torch.optim.Muon`` iterates in bfloat16 always, which on a CPU without bfloat16 units takes
ten times as long as the rest of the training step; this one uses the precision that is fast.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

# Coefficients of the quintic iteration, from the same source.
A, B, C = 3.4445, -4.7750, 2.0315
STEPS = 5


def orthogonalize(matrices: Tensor) -> Tensor:
    """The nearest semi-orthogonal matrix of each, approximately; [N, rows, columns] to the same."""
    transpose = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if transpose else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(STEPS):
        gram = x @ x.mT
        x = A * x + (B * gram + C * gram @ gram) @ x
    return x.mT if transpose else x


class Muon(torch.optim.Optimizer):
    """Nesterov momentum, orthogonalised; matrices of one shape are done in one batch."""

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float,
        momentum: float = 0.95,
        weight_decay: float = 0.1,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self._dtype = dtype

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        """Update every parameter that has a gradient."""
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[tuple[Tensor, Tensor]]] = {}
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["momentum"] = torch.zeros_like(parameter)
                state["momentum"].lerp_(parameter.grad, 1 - group["momentum"])
                update = parameter.grad.lerp(state["momentum"], group["momentum"])
                by_shape.setdefault(parameter.shape, []).append((parameter, update))
            for shape, pairs in by_shape.items():
                updates = orthogonalize(torch.stack([u for _, u in pairs]).to(self._dtype))
                scale = max(1.0, shape[0] / shape[1]) ** 0.5
                for (parameter, _), update in zip(pairs, updates, strict=True):
                    parameter.mul_(1 - group["lr"] * group["weight_decay"])
                    parameter.add_(update.to(parameter.dtype), alpha=-group["lr"] * scale)
