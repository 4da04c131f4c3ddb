"""One server for the tests that leave no trace in it."""

from __future__ import annotations

import pytest_asyncio

from .helpers import running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory):
    """A server whose completions show the three characters before the cursor and ``max_tokens``."""
    async with running(tmp_path_factory.mktemp("shared"), options={"language": {"toml": {"enabled": False}}}) as server:
        yield server
