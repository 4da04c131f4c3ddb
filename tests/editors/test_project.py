"""The steps of examples/editor/README.md, in a real Neovim.

``$CODESPEC_NVIM`` names other Neovims than the one on the path; the first counts.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import shutil
import subprocess
from typing import Any

from tests.editors.common import ROOT
from tests.editors.terminal import environment, need, program, running

NVIM = program("CODESPEC_NVIM", "nvim")


def test_in_neovim(tmp_path):
    folder = tmp_path / "examples"
    shutil.copytree(ROOT / "examples", folder)
    steps = (folder / "editor" / "README.md").read_text("utf-8")
    command = re.search(r"^1. In this folder: `(nvim .*)`$", steps, re.MULTILINE)
    keys = re.search(r"^2. Type `(\w+)`.* then `(return)` and a space.$", steps, re.MULTILINE)
    assert command, "no command"
    assert keys, "no keys"
    need(**{"Neovim (a program `nvim`, or $CODESPEC_NVIM)": NVIM})
    shutil.copytree(ROOT / "editors", tmp_path / "editors")
    path, listening = folder / "editor" / "shop.py", str(tmp_path / "socket")
    before = path.read_text().replace("    raise NotImplementedError\n", "    return \n")

    def ask(expression: str) -> Any:
        command = [NVIM, "--server", listening, "--remote-expr", f"json_encode({expression})"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return json.loads(result.stdout or result.stderr) if result.returncode == 0 else None

    def lines() -> str:
        return "".join(f"{line}\n" for line in ask("getline(1, '$')"))

    words = shlex.split(command[1])[1:]
    with running([NVIM, "--listen", listening, *words], folder / "editor", environment(tmp_path)) as terminal:
        terminal.wait(lambda: ask("&filetype") == "python")
        terminal.type("".join(keys.groups()) + " ")
        terminal.wait(lambda: lines() == before)
        row = before.count("\n")
        shown = f"join(map(range(1, &columns), {{_, column -> screenstring({row}, column)}}), '')"
        terminal.repeat("x\x7f", lambda: lines() == before and ask(shown).strip() not in ("return", ""))
        terminal.type("\t")
        terminal.wait(lambda: lines() != before)
        terminal.type("\x1b:write\r")
        terminal.wait(lambda: ask("&modified") == 0)
    ast.parse(path.read_text())
    assert path.read_text().startswith(before[:-1])
    assert len(path.read_text()) > len(before)
