"""Where a user's data lies, and how it is written."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import platformdirs


def data_folder() -> Path:
    """Of models and what was learnt; it need not exist. ``CODESPEC_DATA`` in the environment names another one."""
    return Path(os.environ.get("CODESPEC_DATA") or platformdirs.user_data_dir("codespec"))


def cache_folder() -> Path:
    """Of what can be made anew; it need not exist. ``CODESPEC_CACHE`` in the environment names another one."""
    return Path(os.environ.get("CODESPEC_CACHE") or platformdirs.user_cache_dir("codespec"))


def write_whole(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write a file anew, readable by its owner alone; another process sees all of it or what was there before.

    Raises:
        OSError: it could not be written; what was there is as before.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
