"""The folders of a workspace, of which there may be many: a document is looked up in them at every key."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from pygls.uris import to_fs_path


def paths_of(uris: tuple[str, ...]) -> list[str]:
    """The paths of those folders that are on this machine."""
    return list(_paths(uris).values())


def innermost(path: str, uris: tuple[str, ...]) -> str:
    """The path of the folder that a file lies in, the innermost of several; empty for none."""
    known, own = _paths(uris), Path(path)
    return next((known[each] for each in (own, *own.parents) if each in known), "")


@lru_cache(maxsize=1)
def _paths(uris: tuple[str, ...]) -> dict[Path, str]:
    return {Path(path): path for uri in uris if uri and (path := to_fs_path(uri))}
