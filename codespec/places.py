"""Where a user's data lies."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def data_folder() -> Path:
    """Of models and what was learnt; it need not exist. ``CODESPEC_DATA`` in the environment names another one."""
    return Path(os.environ.get("CODESPEC_DATA") or platformdirs.user_data_dir("codespec"))
