"""Where modules of JavaScript and TypeScript lie."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from codespec.syntax.names import Import

_SUFFIXES = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mts", ".cts", ".mjs", ".cjs")


def submodule(found: Import, name: str, module: Path | None) -> None:
    """No name is a module."""


def files(found: Import, path: Path, folder: Path) -> Iterator[Path]:
    """Where a module of JavaScript or TypeScript may be; only relative ones are of the workspace."""
    if not found.module.startswith((".", "..")) or "\0" in found.module:
        return
    place = Path(os.path.normpath(path.parent / found.module))
    yield from (place.with_name(place.name + suffix) for suffix in _SUFFIXES)
    if place.suffix in (".js", ".jsx", ".mjs", ".cjs"):  # TypeScript names what it will be compiled to
        yield place.with_suffix(place.suffix.replace("j", "t"))
        yield place.with_suffix(".tsx")
    if place.suffix in _SUFFIXES:
        yield place
    yield from (place / f"index{suffix}" for suffix in _SUFFIXES)
