"""The loss of a draft against a target's likeliest tokens, a few rows of logits at a time.

Logits of all rows at once are most of a step's memory, and on a CPU most of its time goes into moving them. Here each
chunk's gradient is made while its logits are in the cache, as in "Cut Your Losses" (arXiv 2411.09009), whose kernels
are for GPUs.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from codespec.train.train import faster

CHUNK = 256
"""Rows of logits at a time: 8 MB of 16,384 tokens in bfloat16."""


class DistilledLoss:
    """``weight`` × cross entropy with the teacher's likeliest tokens and the rest as one, plus 1 - ``weight`` × cross
    entropy with the text: in nats per token that is to be learnt.

    Args:
        precision: of the logits and of products with them.
        compiled: through torch's compiler.
    """

    def __init__(self, weight: float, precision: torch.dtype, compiled: bool) -> None:
        self.weight, self.precision = weight, precision
        self.log_total = faster(_log_total, compiled)
        self.to_gradient = faster(_to_gradient, compiled)

    def __call__(
        self, hidden: Tensor, embeddings: Tensor, labels: Tensor, learnt: Tensor, ids: Tensor, shares: Tensor
    ) -> Tensor:
        """The loss, with gradients for ``hidden`` and ``embeddings``, whose product is the logits.

        Args:
            hidden: [rows, width].
            embeddings: [V, width].
            labels: the text's own next tokens, [rows].
            learnt, ids, shares: as in ``Lesson``, the rows end to end.
        """
        loss: Tensor = _Distilled.apply(hidden, embeddings, labels, learnt, ids, shares, self)
        return loss

    def chunk(
        self, logits: Tensor, labels: Tensor, learnt: Tensor, ids: Tensor, shares: Tensor, rows: Tensor
    ) -> Tensor:
        """The loss of one chunk; turns its ``logits`` into the gradient of the loss by them."""
        log_total = self.log_total(logits)
        picked = logits.gather(-1, ids).float() - log_total
        hard = logits.gather(-1, labels).float() - log_total
        given = shares > 0  # a token that a trimmed draft lacks has no share
        likely = picked.exp() * given
        together = likely.sum(-1, keepdim=True).clamp(max=1 - 1e-6)
        taught = shares.sum(-1, keepdim=True)
        rest = (1 - taught).clamp(min=0)
        soft = -(shares * picked).sum(-1, keepdim=True) - rest * torch.log1p(-together)
        loss = (self.weight * soft - (1 - self.weight) * hard) * learnt / rows
        odds, scale = rest / (1 - together), learnt / rows
        self.to_gradient(logits, log_total, (self.weight * (taught - odds * together) + 1 - self.weight) * scale)
        at_picked = self.weight * (odds * likely - shares) * given * scale
        at_label = (self.weight - 1) * scale
        row = torch.arange(len(logits), device=logits.device)[:, None]
        change = torch.cat([at_picked, at_label], 1).to(logits.dtype)
        logits.index_put_((row, torch.cat([ids, labels], 1)), change, accumulate=True)
        return loss.sum()


def _log_total(logits: Tensor) -> Tensor:
    return logits.float().logsumexp(-1, keepdim=True)


def _to_gradient(logits: Tensor, log_total: Tensor, scale: Tensor) -> None:
    logits.copy_((logits.float() - log_total).exp() * scale)


class _Distilled(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        embeddings: Tensor,
        labels: Tensor,
        learnt: Tensor,
        ids: Tensor,
        shares: Tensor,
        loss: DistilledLoss,
    ) -> Tensor:
        states, output = hidden.to(loss.precision), embeddings.to(loss.precision)
        turned = output.T.contiguous()
        by_hidden, by_embeddings = torch.empty_like(hidden), torch.zeros_like(embeddings)
        rows = learnt.sum().clamp(min=1)
        total = torch.zeros((), device=hidden.device)
        room = torch.empty(min(CHUNK, len(states)), len(output), dtype=loss.precision, device=hidden.device)
        for start in range(0, len(states), CHUNK):
            part = slice(start, min(start + CHUNK, len(states)))
            logits = torch.mm(states[part], turned, out=room[: part.stop - start])
            total += loss.chunk(logits, labels[part, None], learnt[part, None], ids[part], shares[part], rows)
            by_hidden[part] = logits @ output
            by_embeddings += logits.T @ states[part]
        ctx.save_for_backward(by_hidden, by_embeddings)
        return total

    @staticmethod
    @once_differentiable  # type: ignore[misc, unused-ignore, untyped-decorator]
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        by_hidden, by_embeddings = ctx.saved_tensors
        return scale * by_hidden, scale * by_embeddings, None, None, None, None, None
