"""Embeddings to begin a draft with: tokens that have the same neighbours in the texts lie together.

Most of a tiny model is its embedding, and from random numbers it takes most of a training to find out which tokens are
alike. Counting who stands beside whom says it in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from codespec.train.teacher import Lesson

DISTANCES = (1, 2)
"""Tokens apart."""

SMOOTHED = 0.75
"""Exponent of how frequent a neighbour is, which keeps rare ones from counting too much."""

_OVERSAMPLED, _ROUNDS = 32, 4  # of the randomised factorisation: arXiv 0909.4061
_NOTHING = 1e-3


def embeddings_of(lessons: Iterable[Lesson], vocabulary: int, width: int) -> Tensor:
    """The positive pointwise mutual information of neighbours, factorised, float32 [vocabulary, width]; each row as
    long as one of random numbers of unit scale.

    Source: Levy, Goldberg, Dagan, "Improving distributional similarity with lessons learned from word embeddings",
    TACL 2015.
    """
    matrix = _information(*_pairs(lessons, vocabulary), vocabulary)
    generator = torch.Generator().manual_seed(1)
    basis = torch.randn(vocabulary, min(vocabulary, width + _OVERSAMPLED), generator=generator)
    for _ in range(_ROUNDS):
        basis, _ = torch.linalg.qr(matrix @ basis)
    values, vectors = torch.linalg.eigh(basis.T @ (matrix @ basis))
    chosen = values.abs().argsort(descending=True)[:width]
    found = (basis @ vectors[:, chosen]) * values[chosen].abs().sqrt()
    embeddings = torch.randn(vocabulary, width, generator=generator)
    lengths = found.norm(dim=1, keepdim=True)
    known = lengths[:, 0] > _NOTHING  # of a token without neighbours nothing is known
    embeddings[known, : found.shape[1]] = (found * width**0.5 / lengths)[known]
    return embeddings


def _pairs(lessons: Iterable[Lesson], vocabulary: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Which tokens stand near each other, first × ``vocabulary`` + second, and how often."""
    pairs = []
    for lesson in lessons:
        tokens = lesson.tokens.astype(np.int64)
        pairs += [(tokens[:, :-apart] * vocabulary + tokens[:, apart:]).ravel() for apart in DISTANCES]
    return np.unique(np.concatenate(pairs), return_counts=True)


def _information(pairs: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], vocabulary: int) -> Tensor:
    """How much likelier two tokens are neighbours than chance has it, in nats where that is positive: symmetrical."""
    first, second = np.divmod(pairs, vocabulary)
    of_first = np.bincount(first, counts, vocabulary)
    smoothed = of_first**SMOOTHED / (of_first**SMOOTHED).sum()
    likelier = np.log(counts / (smoothed[first] * np.bincount(second, counts, vocabulary)[second]))
    kept = likelier > 0
    places = np.stack([np.r_[first[kept], second[kept]], np.r_[second[kept], first[kept]]])
    values = np.r_[likelier[kept], likelier[kept]].astype(np.float32)
    return torch.sparse_coo_tensor(
        torch.from_numpy(places), torch.from_numpy(values), (vocabulary, vocabulary), check_invariants=False
    ).coalesce()
