"""Examples as tokens, and batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Row:
    """An example: the tokens, how many of them are the prompt, and a weight for each of the others."""

    tokens: npt.NDArray[np.integer[Any]]
    prompt: int
    weights: npt.NDArray[np.number[Any]]


@dataclass(frozen=True)
class Batch:
    """Padded rows.

    Attributes:
        inputs: int64 [rows, length].
        places: of the positions whose next token counts, in the flattened inputs.
        labels: int64, the next tokens; ``weights`` float32.
    """

    inputs: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float32]


def batch_of(rows: Sequence[Row]) -> Batch:
    """Rows side by side, shorter ones with zeros behind them, which nothing looks at."""
    length = max(len(row.tokens) for row in rows) - 1
    inputs = np.zeros((len(rows), length), np.int64)
    places, labels, weights = [], [], []
    for index, row in enumerate(rows):
        inputs[index, : len(row.tokens) - 1] = row.tokens[:-1]
        places.append(index * length + np.arange(row.prompt - 1, len(row.tokens) - 1))
        labels.append(row.tokens[row.prompt :].astype(np.int64))
        weights.append(row.weights.astype(np.float32))
    return Batch(inputs, np.concatenate(places), np.concatenate(labels), np.concatenate(weights))
