"""Packages that only some commands need, and how to add them."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

_VERSION = re.compile(r"[<>=!~].*")


def remedy(extra: str) -> str:
    """The command that adds the packages of an extra to the Python that runs.

    It names them and not ``codespec[extra]``: an index may have something else under that name. Packages that not every
    system needs are left out.
    """
    from importlib import metadata  # slow to import

    try:
        wanted = metadata.requires("codespec") or []
    except metadata.PackageNotFoundError:  # it runs from its source
        wanted = []
    split = (each.partition("; ") for each in wanted)
    packages = [_VERSION.sub("", name) for name, _, marker in split if marker == f"extra == '{extra}'"]
    if not packages:
        return f"pip install '.[{extra}]' in codespec's folder"
    words = [sys.executable, "-m", "pip", "install", *packages]
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)
