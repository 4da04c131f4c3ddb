"""What every test of the Neovim plugin needs."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from tests.editors.common import ROOT
from tests.editors.neovim_editor import MISSING, kinds

NO_NATIVE = "missing: a Neovim of 0.12 or newer, for its own inline completion (tests/editors/debian)"


def parameters() -> Sequence[object]:
    """Every Neovim that is there, and a visible skip for what is not."""
    if MISSING:
        return [pytest.param(None, id="missing")]
    found = kinds()
    known = [pytest.param(each, id=each.name) for each in found]
    if not any(each.native for each in found):
        known.append(pytest.param(None, id="native", marks=pytest.mark.skip(reason=NO_NATIVE)))
    return known


@pytest.fixture(params=parameters())
def kind(request):
    """A Neovim, and who draws in it."""
    if MISSING:
        reason = f"missing: {', '.join(MISSING)}"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    return request.param


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty home, and the codespec of this checkout."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "CODESPEC_DATA"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("CODESPEC_OFFER_AFTER_S", "1e9")
    return tmp_path
