"""The packages that sets are made of, which no model of codespec has learnt; ``packages.json`` has their hashes."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.progress import Say
from codespec.protocols import CodespecError

TIMEOUT_S = 300
AT_ONCE = 4
RECIPE = Path(__file__).with_name("packages.json")


@dataclass(frozen=True)
class Package:
    """A package.

    Attributes:
        registry: ``pypi`` (a wheel), ``pypi-source``, ``npm`` or ``debian``.
        sha256: of the file that its client fetches.
    """

    registry: str
    name: str
    version: str
    sha256: str

    @property
    def folder(self) -> str:
        """The name of the folder that it is unpacked in."""
        return f"{self.registry}-{self.name.replace('/', '-')}-{self.version.replace(':', '-')}"


def recipe() -> list[Package]:
    """The packages of ``packages.json``."""
    return [Package(*row) for row in json.loads(RECIPE.read_text("utf-8"))]


def fetch(packages: Sequence[Package], out: Path, say: Say) -> list[str]:
    """Unpack packages in folders of ``out``; those that are there stay. Returns what could not be had, and why."""
    out.mkdir(parents=True, exist_ok=True)
    failed: list[str] = []
    done = 0

    def one(package: Package) -> None:
        nonlocal done
        try:
            _fetch(package, out)
        except (OSError, subprocess.SubprocessError, zipfile.BadZipFile, CodespecError) as error:
            failed.append(f"{package.registry}: {package.name} {package.version}: {_reason(error)}")
        done += 1
        say(f"{done}/{len(packages)} packages")

    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(one, packages))
    say("")
    return sorted(failed)


def _fetch(package: Package, out: Path) -> None:
    place = out / package.folder
    if place.exists():
        return
    # Beside its place, so that it is moved there whole.
    with tempfile.TemporaryDirectory(dir=out, prefix=".fetching-") as name:
        work = Path(name)
        subprocess.run(_command(package), cwd=work, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
        archive = next(iter(work.iterdir()), None)
        if archive is None:
            raise CodespecError("its client fetched nothing")
        if hashlib.sha256(archive.read_bytes()).hexdigest() != package.sha256:
            raise CodespecError(f"{archive.name} is another file than the one that was measured (SHA-256)")
        unpacked = work / "unpacked"
        _unpack(archive, unpacked)
        shutil.move(unpacked, place)


def _command(package: Package) -> list[str]:
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
    named = f"{package.name}=={package.version}"
    return {
        "pypi": [*pip, "--only-binary=:all:", named],
        "pypi-source": [*pip, "--no-binary=:all:", "--no-build-isolation", named],
        "npm": ["npm", "pack", "--silent", f"{package.name}@{package.version}"],
        "debian": ["apt-get", "download", f"{package.name}={package.version}"],
    }[package.registry]


def _unpack(archive: Path, place: Path) -> None:
    place.mkdir()
    if archive.suffix == ".deb":
        subprocess.run(["dpkg", "-x", archive, place], check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
    elif archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(place)
    elif archive.suffix == ".tgz":
        shutil.unpack_archive(archive, place, "gztar", filter="data")
    else:
        shutil.unpack_archive(archive, place, filter="data")


def _reason(error: Exception) -> str:
    said = str(getattr(error, "stderr", "") or error).strip()
    return said.splitlines()[-1][:200] if said else type(error).__name__
