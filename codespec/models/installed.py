"""Models in Python packages that are installed already. Nothing of a package is imported."""

from __future__ import annotations

import re
from pathlib import Path

GROUP = "codespec.models"
"""The group of entry points by which a package names its models: ``name = "package:file.gguf"``."""

_NAME = re.compile(r"[\w.+-]+")


def models_in_packages() -> dict[str, Path]:
    """The files of these models by their names; what a package names and does not hold is left out."""
    from importlib.metadata import entry_points  # which takes as long to import as all that the settings need

    found = {}
    for each in entry_points(group=GROUP):
        package, _, file = each.value.partition(":")
        if each.dist is None or not _NAME.fullmatch(each.name) or Path(file).name != file:
            continue
        path = Path(str(each.dist.locate_file(package.strip().replace(".", "/")))) / file.strip()
        if path.suffix == ".gguf" and path.is_file():
            found[each.name.removesuffix(".gguf")] = path
    return found
