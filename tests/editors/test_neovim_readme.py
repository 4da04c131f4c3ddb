"""The steps of the plugin's README, as they are written there, up to the first ghost text."""

from __future__ import annotations

import re
import subprocess

from tests.editors.common import LOOPS, PYTHON, ROOT
from tests.editors.neovim_editor import PLUGIN, running
from tests.editors.neovim_fixtures import folder, kind

__all__ = ["folder", "kind"]


def test_three_steps_to_the_first_ghost_text(kind, folder, monkeypatch):
    readme = (PLUGIN / "README.md").read_text()
    steps = re.findall(r"^(\d)\. ", readme, re.MULTILINE)
    assert steps == ["1", "2", "3"]
    home = folder / "home"
    (home / "bin").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name)

    # 1. What `pip install .` leaves: a program on the path. The package itself is that of this checkout.
    clone = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True, timeout=300)
    program = home / "bin" / "codespec"
    program.write_text(f'#!/bin/sh\nexec "{PYTHON}" -m codespec "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")

    # 2. The commands, word for word.
    (commands,) = re.findall(r"^   ```sh\n(.*?)^   ```", readme, re.MULTILINE | re.DOTALL)
    subprocess.run(["sh", "-e", "-c", commands], cwd=clone, check=True, timeout=60)

    # 3. A Python file, and typing.
    path = folder / "example.py"
    path.write_text(LOOPS)
    with running(kind.program, ["-n", str(path)], path) as editor:
        editor.type("GA(")
        editor.wait(lambda: editor.row(4).startswith("    print(") and editor.row(4) != "    print(")
        assert editor.buffer()[4] == "    print("
        shown = editor.row(4)
        editor.type("<Tab>")
        editor.wait(lambda: editor.buffer()[4].rstrip() == shown)
