"""A folder for the tests of a workspace."""

from __future__ import annotations

import pytest

from .folder_session import Session


@pytest.fixture
def session(tmp_path):
    return Session(tmp_path)
