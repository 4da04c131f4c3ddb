"""LoRA (Hu et al., arXiv 2106.09685) on the matrices of a model's upper layers, and its GGUF file."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import torch
from torch import Tensor, nn

from codespec.models.fitted import FITTED_KEY, PREFIX_KEY, SUFFIX_KEY, fingerprint
from codespec.train.filling.examples import Markers
from codespec.train.model import Llama

SCALE = 2.0
"""alpha / rank."""


class Adapted(nn.Module):
    """A frozen matrix and what is learnt beside it, in float32 whatever the matrix is in."""

    def __init__(self, matrix: nn.Linear, rank: int) -> None:
        super().__init__()
        self.matrix = matrix
        self.a = nn.Parameter(torch.randn(rank, matrix.in_features) * matrix.in_features**-0.5)
        self.b = nn.Parameter(torch.zeros(matrix.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.matrix(x) + (x @ self.a.T.to(x.dtype)) @ (SCALE * self.b).T.to(x.dtype)
        return out


def adapt(model: Llama, rank: int, layers: int) -> None:
    """Freeze a model and put adapters beside all matrices of its last ``layers`` blocks."""
    model.requires_grad_(False)
    for block in list(model.blk)[-layers:]:
        for name, child in list(block.named_children()):
            if isinstance(child, nn.Linear):
                setattr(block, name, Adapted(child, rank))


def learnt(model: Llama) -> dict[str, Tensor]:
    """What was learnt, by the names of llama.cpp: ``blk.0.attn_q.weight.lora_a`` and so on."""
    found = {}
    for name, module in model.named_modules():
        if isinstance(module, Adapted):
            found[f"{name}.weight.lora_a"], found[f"{name}.weight.lora_b"] = module.a, module.b
    return found


def write_adapter(model: Llama, target: Path, path: Path, markers: Markers, name: str) -> None:
    """Write the adapter; an interrupted write leaves an older file whole. It is told from others by what it fits."""
    temporary = path.with_suffix(".tmp")
    fields = gguf.GGUFReader(target).fields
    writer = gguf.GGUFWriter(str(temporary), str(fields["general.architecture"].contents()))
    writer.add_type("adapter")
    writer.add_name(name)
    if "general.license" in fields:
        writer.add_license(str(fields["general.license"].contents()))
    writer.add_string("adapter.type", "lora")
    tensors = learnt(model)
    rank = next(iter(tensors.values())).shape[0]
    writer.add_float32("adapter.lora.alpha", SCALE * rank)
    writer.add_string(FITTED_KEY, fingerprint(target))
    writer.add_uint32(PREFIX_KEY, markers.prefix)
    writer.add_uint32(SUFFIX_KEY, markers.suffix)
    for key, value in tensors.items():
        writer.add_tensor(key, value.detach().float().cpu().numpy().astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    temporary.replace(path)
