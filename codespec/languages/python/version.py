"""The oldest version of Python that a project supports."""

from __future__ import annotations

import configparser
import functools
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from codespec.paths import folder_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Version = tuple[int, int]

_LARGEST, _LONGEST_LINE = 1 << 16, 1 << 10
"""Bytes of a project's file that is read, and of its lines."""
_MOST_NAMES = 32
"""In one key: what TOML's reader takes for it grows with their square."""
_MOST_FOLDERS = 16
"""Above a file that are looked into."""
# What a version must at least be; "^" is Poetry's.
_AT_LEAST = re.compile(r"(?:>=|~=|===?|\^|~)\s*(\d{1,4})(?:\.(\d{1,4}))?")


def oldest(path: str, workspace: str) -> Version | None:
    """What the project files nearest to ``path`` say, from its folder up to the workspace's; None: nothing."""
    top, file = folder_of(workspace), folder_of(path)
    if top is None:
        return None
    inside = file is not None and top in file.parents
    folders = [each for each in file.parents if each == top or top in each.parents] if file and inside else [top]
    for folder in folders[:_MOST_FOLDERS]:
        found = (
            _of_pyproject(_content(folder / "pyproject.toml"))
            or _of_setup(_content(folder / "setup.cfg"))
            or _of_pinned(_content(folder / ".python-version"))
        )
        if found:
            return _at_least(found)
    return None


def _content(path: Path) -> str:
    """The text of a file; empty where there is none, or something that is no file: a pipe would be waited for."""
    try:
        status = path.stat()
    except OSError:
        return ""
    if not stat.S_ISREG(status.st_mode):
        return ""
    return _read(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(64)
def _read(path: Path, _changed: int, size: int) -> str:
    try:
        data = path.read_bytes() if size <= _LARGEST else b""
    except OSError:
        return ""
    lines = data.split(b"\n")
    if any(len(line) > _LONGEST_LINE or line.partition(b"=")[0].count(b".") > _MOST_NAMES for line in lines):
        return ""
    return data.decode("utf-8", "replace")


@functools.lru_cache(64)
def _of_pyproject(text: str) -> str:
    try:
        project = tomllib.loads(text)
    except (ValueError, RecursionError):
        return ""
    return next(filter(None, _named(project)), "")


def _named(project: dict[str, Any]) -> Iterator[str]:
    for keys in (("project", "requires-python"), ("tool", "poetry", "dependencies", "python")):
        value: Any = project
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        yield value if isinstance(value, str) else ""


def _of_setup(text: str) -> str:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        return ""
    return parser.get("options", "python_requires", fallback="")


def _of_pinned(text: str) -> str:
    match = re.match(r"\s*(\d+\.\d+)", text)
    return f"=={match[1]}" if match else ""


def _at_least(specifiers: str) -> Version | None:
    """The highest lower bound of PEP 440 specifiers; None where they have none."""
    bounds = [(int(major), int(minor or 0)) for major, minor in _AT_LEAST.findall(specifiers)]
    return max(bounds, default=None)
