"""One server for the tests that leave no trace in it, and model processes."""

from __future__ import annotations

import pytest
import pytest_asyncio

from .helpers import running
from .windows import own_process


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory):
    """A server whose completions show the three characters before the cursor and ``max_tokens``."""
    async with running(tmp_path_factory.mktemp("shared"), options={"language": {"toml": {"enabled": False}}}) as server:
        yield server


@pytest.fixture
def here(tmp_path):
    """A model process of this test's own, which ends with its last window."""
    with own_process(tmp_path, idle_s=0) as where:
        yield where


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A model process for all tests that leave it alone."""
    with own_process(tmp_path_factory.mktemp("kept"), idle_s=600) as where:
        yield where
