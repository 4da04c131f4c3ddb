"""Secrets that come into a workspace in five ways; ``python -m tests.lsp.histories`` takes more forms."""

from __future__ import annotations

import pytest

from .histories import HISTORIES, measure


@pytest.mark.parametrize("history", HISTORIES)
def test_no_secret_is_shown_or_kept(history: str) -> None:
    assert measure(history, count=6, seed=1) == (6, [])


def test_no_secret_is_in_what_a_crash_leaves() -> None:
    assert measure("typed", count=2, seed=1, crash=True) == (2, [])
