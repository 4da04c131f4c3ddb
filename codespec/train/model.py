"""The llama architecture in PyTorch, with the tensor layout that llama.cpp expects."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

ROPE_BASE = 10_000.0
NORM_EPSILON = 1e-5


@dataclass(frozen=True)
class ModelShape:
    """Sizes of a model. Widths are multiples of 32, as Q8_0 needs, and two of them at least: where a row is one block
    ggml's AMX kernel (``tinygemm_kernel_amx``) adds the product to what lies in memory."""

    vocabulary: int
    width: int
    layers: int
    heads: int
    kv_heads: int
    feed_forward: int
    context: int
    rope_base: float = ROPE_BASE

    @property
    def head_width(self) -> int:
        return self.width // self.heads


TARGET = ModelShape(vocabulary=8192, width=320, layers=7, heads=5, kv_heads=1, feed_forward=896, context=1024)
DRAFT = ModelShape(vocabulary=8192, width=128, layers=2, heads=4, kv_heads=2, feed_forward=256, context=1024)
TINY = ModelShape(vocabulary=512, width=96, layers=2, heads=3, kv_heads=1, feed_forward=128, context=128)
TINY_DRAFT = ModelShape(vocabulary=512, width=64, layers=1, heads=2, kv_heads=1, feed_forward=64, context=128)


class Norm(nn.Module):
    """Root mean square normalisation (arXiv 1910.07467)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, self.weight.shape, self.weight, NORM_EPSILON)


def rotary(context: int, head_width: int, base: float = ROPE_BASE) -> tuple[Tensor, Tensor]:
    """cos and sin, [context, head_width / 2]."""
    frequencies = base ** (-torch.arange(0, head_width, 2).float() / head_width)
    angles = torch.outer(torch.arange(context).float(), frequencies)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of *adjacent* pairs, the order llama.cpp's llama architecture uses; x: [B, H, T, D]."""
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)
    # A model in bfloat16 stays in it; under autocast, which casts by itself, nothing is rounded twice.
    return turned if torch.is_autocast_enabled(x.device.type) else turned.to(x.dtype)


class Block(nn.Module):
    """Attention with grouped keys and values, then a SwiGLU feed-forward."""

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.shape = shape
        kv_width = shape.kv_heads * shape.head_width
        self.attn_norm = Norm(shape.width)
        self.attn_q = nn.Linear(shape.width, shape.width, bias=False)
        self.attn_k = nn.Linear(shape.width, kv_width, bias=False)
        self.attn_v = nn.Linear(shape.width, kv_width, bias=False)
        self.attn_output = nn.Linear(shape.width, shape.width, bias=False)
        self.ffn_norm = Norm(shape.width)
        self.ffn_gate = nn.Linear(shape.width, shape.feed_forward, bias=False)
        self.ffn_up = nn.Linear(shape.width, shape.feed_forward, bias=False)
        self.ffn_down = nn.Linear(shape.feed_forward, shape.width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        rows, length, _ = x.shape
        s = self.shape
        h = self.attn_norm(x)
        q = self.attn_q(h).view(rows, length, s.heads, s.head_width).transpose(1, 2)
        k = self.attn_k(h).view(rows, length, s.kv_heads, s.head_width).transpose(1, 2)
        v = self.attn_v(h).view(rows, length, s.kv_heads, s.head_width).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        k = k.repeat_interleave(s.heads // s.kv_heads, dim=1)
        v = v.repeat_interleave(s.heads // s.kv_heads, dim=1)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn_output(attended.transpose(1, 2).reshape(rows, length, s.width))
        h = self.ffn_norm(x)
        out: Tensor = x + self.ffn_down(functional.silu(self.ffn_gate(h)) * self.ffn_up(h))
        return out


class Llama(nn.Module):
    """Token ids [B, T] to logits [B, T, V]; input and output embeddings are tied.

    Embeddings are of unit scale, so that what the blocks add does not drown them. The last normalisation is scaled
    down by ``output_scale``, or the tie would make the model repeat its input at first. A GGUF holds the product as its
    weight.
    """

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.shape = shape
        self.token_embd = nn.Embedding(shape.vocabulary, shape.width)
        self.blk = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.output_norm = Norm(shape.width)
        self.output_scale = 4 / shape.width
        cos, sin = rotary(shape.context, shape.head_width, shape.rope_base)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self._initialise()

    def _initialise(self) -> None:
        nn.init.normal_(self.token_embd.weight)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2 and "embd" not in name:
                nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5 / 2)
                if name.endswith(("attn_output.weight", "ffn_down.weight")):
                    nn.init.zeros_(parameter)  # each block starts as the identity

    def hidden(self, tokens: Tensor) -> Tensor:
        """Normalised last hidden states times ``output_scale``, [B, T, width]."""
        x = self.token_embd(tokens)
        cos, sin = self.cos[: tokens.shape[1]], self.sin[: tokens.shape[1]]
        for block in self.blk:
            x = block(x, cos, sin)
        out: Tensor = self.output_norm(x) * self.output_scale
        return out

    def forward(self, tokens: Tensor) -> Tensor:
        return self.hidden(tokens) @ self.token_embd.weight.T

    def parameter_count(self) -> int:
        """Parameters, tied ones counted once."""
        return sum(p.numel() for p in self.parameters())
