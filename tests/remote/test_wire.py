"""Secrets stay here; ``python -m tests.remote.wire`` takes more forms."""

from __future__ import annotations

import pytest

pytest.importorskip("httpx")

from tests.lsp.histories import HISTORIES
from tests.remote.wire import measure


@pytest.mark.parametrize("history", HISTORIES)
def test_no_secret_leaves_the_machine(history: str) -> None:
    assert measure(history, count=6, seed=2) == (6, [])
