"""What tests of the loop share: a target, a draft that is often right, and how a text is put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from codespec.draft.model import ModelDraft
from codespec.protocols import Round, Sampling
from tests.fakes import Table, TableTarget

END = frozenset({0})
SAMPLED = Sampling(temperature=0.9, seed=11, top_k=20, logit_bias={0: -np.inf})


@pytest.fixture
def table() -> Table:
    return Table(30, seed=3)


def joined(rounds: Iterator[Round] | Sequence[Round]) -> tuple[list[int], str | None]:
    rounds = list(rounds)
    assert all(r.finish_reason is None for r in rounds[:-1])
    return [t for r in rounds for t in r.tokens], rounds[-1].finish_reason


def model_draft(table: Table, noise: float = 0.3, **options: Any) -> ModelDraft:
    return ModelDraft(TableTarget(Table(table.vocabulary, 9, base=table, noise=noise), **options), END)
