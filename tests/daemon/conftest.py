"""Model processes: one of a test's own, and one for the tests that leave it alone."""

from __future__ import annotations

import pytest

from tests.daemon.windows import own_process


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
