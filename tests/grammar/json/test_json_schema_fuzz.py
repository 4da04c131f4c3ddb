"""Some schemas of ``python -m tests.fuzz schemas``: no text is taken that the validator of their draft refuses."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("jsonschema", reason="pip install jsonschema")

from tests.fuzz.schemas import try_schema

SEEDS = [*range(1, 121), 13665]  # the last one: an exclusive bound that the engine overlooks


def test_nothing_invalid_is_taken() -> None:
    outcomes: Counter[str] = Counter()
    for seed in SEEDS:
        outcome, wrong, texts = try_schema(seed)
        assert wrong == [], seed
        outcomes[outcome] += 1
        outcomes += texts
    assert outcomes["compiled"] > 0.6 * len(SEEDS)
    assert outcomes["valid, taken"] > 10 * outcomes["valid, refused"]
