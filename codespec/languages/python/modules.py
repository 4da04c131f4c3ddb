"""Where modules of Python lie."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from codespec.syntax.names import Import


def submodule(found: Import, name: str, module: Path | None) -> Import | None:
    """The module that a name taken from ``found`` may be; None where ``module``, its file, is no package."""
    if module is not None and module.stem != "__init__":
        return None
    return Import(f"{found.module}.{name}" if found.module else name, found.level)


def files(found: Import, path: Path, folder: Path) -> Iterator[Path]:
    """Where a module of Python may be."""
    parts = [part for part in found.module.split(".") if part]
    if not all(part.isidentifier() for part in parts):
        return
    if found.level:
        bases = [path.parents[found.level - 1]] if found.level <= len(path.parents) else []
    else:
        # The workspace folder and what else may be on the path: ``src``, and whatever the file itself lies in.
        inside = [each for each in path.parents if each.is_relative_to(folder)]
        bases = [folder, folder / "src", *inside]
    for base in bases:
        place = base.joinpath(*parts)
        if parts:
            yield place.with_name(place.name + ".py")
            yield place.with_name(place.name + ".pyi")
        yield place / "__init__.py"
        yield place / "__init__.pyi"
