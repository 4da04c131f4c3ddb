"""``python -m benchmarks fetch``: the packages that a manifest names, to build its corpus again."""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from codespec.protocols import CodespecError
from codespec.train.pipeline import say

TIMEOUT_S = 300
AT_ONCE = 4

Package = tuple[str, str, frozenset[str]]
"""Name, version and the files that the corpus has of it."""


def run(options: argparse.Namespace) -> int:
    """Unpack every package in the folder of its kind under ``options.out``; those that are there already stay.

    Raises:
        CodespecError: the manifest cannot be read.
    """
    try:
        packages = json.loads(gzip.decompress(options.manifest.read_bytes()))
        wanted = [(str(each["package"]), str(each["version"]), frozenset(each.get("files", ()))) for each in packages]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CodespecError(f"{options.manifest}: no manifest of a corpus ({error})") from error
    failed = []
    if options.previous:
        wanted = list(versions_before(packages, wanted, options.previous))

    def fetch(package: Package) -> None:
        try:
            _fetch(*package, options.out)
        except (OSError, subprocess.SubprocessError, zipfile.BadZipFile, StopIteration) as error:
            failed.append(f"{package[0]} {package[1]}: {_reason(error)}")

    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(tqdm(threads.map(fetch, wanted), total=len(wanted), unit=" packages"))
    for line in failed:
        say(line)
    folders = " ".join(str(options.out / each) for each in ("site-packages", "node_modules", "debian"))
    print(f"{len(wanted) - len(failed):,} of {len(wanted):,} packages; now: codespec train target --corpus {folders}")
    return 1 if failed else 0


def versions_before(packages: list[dict[str, Any]], wanted: list[Package], number: int) -> Iterator[Package]:
    """The versions before that a manifest names, the latest first, or the one before of all packages."""
    named = {str(each["package"]): each["previous"] for each in packages if each.get("previous")}
    for name, version, files in wanted:
        if not named and number == 1 and _has_previous(name):
            yield name, f"<{version}", files
        before = [named[name]] if isinstance(named.get(name), str) else named.get(name, [])
        if number <= len(before):
            yield name, str(before[number - 1]), files


def _has_previous(name: str) -> bool:
    """Debian has one version of a package at a time, and the standard library is the interpreter's."""
    return name.partition("/")[0] not in ("debian", "cpython")


def _fetch(name: str, version: str, files: frozenset[str], out: Path) -> None:
    kind, _, rest = name.partition("/")
    ways: dict[str, Callable[[str, str, Path, Path], None]] = {"npm": _npm, "debian": partial(_debian, files)}
    if kind == "cpython":
        return  # the running interpreter's
    way, own_name = (ways[kind], rest) if kind in ways else (_pypi, name)
    with tempfile.TemporaryDirectory() as folder:
        way(own_name, version, Path(folder), out)


def _pypi(name: str, version: str, work: Path, out: Path) -> None:
    place = out / "site-packages"
    exact = "" if version.startswith("<") else "=="
    known = "*" if not exact else version
    pattern = f"{name.replace('-', '?').replace('_', '?').replace('.', '?')}-{known}.dist-info"
    if any(place.glob(pattern)):
        return
    asked = f"{name}{exact}{version}"
    _call(work, sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", asked)
    for wheel in work.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(place)


def _npm(name: str, version: str, work: Path, out: Path) -> None:
    place = out / "node_modules" / name
    if place.exists():
        return
    _call(work, "npm", "pack", "--silent", f"{name}@{version}")
    for archive in work.glob("*.tgz"):
        shutil.unpack_archive(archive, work, filter="data")
    _put(next(each for each in work.iterdir() if each.is_dir()), place)


def _debian(files: frozenset[str], name: str, version: str, work: Path, out: Path) -> None:
    place = out / "debian" / f"{name}_{version}"
    if place.exists():
        return
    wanted = f"{name}={version.replace('%3a', ':')}"
    try:
        _call(work, "apt-get", "download", wanted)
        _call(work, "dpkg", "-x", str(next(work.glob("*.deb"))), str(work / "unpacked"))
        found = holds(work / "unpacked", files)
    except (subprocess.SubprocessError, StopIteration):
        found = False
    if not found:
        # A source, which often has a package of its name: it needs a deb-src line in apt's list.
        shutil.rmtree(work / "unpacked", ignore_errors=True)
        _call(work, "apt-get", "source", "--download-only", wanted)
        _call(work, "dpkg-source", "--no-check", "-x", next(work.glob("*.dsc")).name, "unpacked")
    _put(work / "unpacked", place)


def holds(folder: Path, files: frozenset[str]) -> bool:
    """Whether half of these files are somewhere in a folder: a program's package and its source have a README each."""
    found = set()
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        found |= {"/".join(parts[start:]) for start in range(len(parts))} & files
    return 2 * len(found) >= len(files)


def _call(folder: Path, *command: str) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)


def _put(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(source, place)


def _reason(error: Exception) -> str:
    said: Any = getattr(error, "stderr", "") or str(error)
    return str(said).strip().splitlines()[-1][:200] if str(said).strip() else type(error).__name__
