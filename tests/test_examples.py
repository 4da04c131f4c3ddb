"""The examples, run as their READMEs say."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from editors.terminal import environment, need, program, running

from codespec.config import load

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
NVIM = program("CODESPEC_NVIM", "nvim")
MODELS = list((ROOT / "codespec" / "data").glob("*.gguf"))


@pytest.fixture(autouse=True)
def _models():
    if len(MODELS) < 2:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("missing: the embedded models")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of the examples, somebody with an empty home, and the codespec of this checkout on the path."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    return tmp_path / "examples"


def commands(folder: Path) -> list[list[str]]:
    """Those of all blocks of shell commands in a README."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", (folder / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [shlex.split(line) for line in "".join(blocks).splitlines()]


def run(command: list[str], folder: Path) -> str:
    programs = {"python": [sys.executable], "codespec": [sys.executable, "-m", "codespec"]}
    command = programs[command[0]] + command[1:]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=300)
    assert result.returncode == 0, f"{command}:\n{result.stdout}{result.stderr}"
    return result.stdout


def test_constrained(folder):
    folder /= "constrained"
    script, schema, regex, complete, accepts = (run(command, folder) for command in commands(folder))
    parts = re.split(r"^(?=A )", script, flags=re.MULTILINE)[1:]
    found = [re.findall(r"^  (\w+): (.*?)(?=^  \w+: |\Z)", part, re.DOTALL | re.MULTILINE) for part in parts]
    assert [len(each) for each in found] == [2, 2, 2, 2]
    assert {reason for each in found for reason, _ in each} == {"stop"}
    objects, dates, values, bodies = ([text.rstrip("\n") for _, text in each] for each in found)
    tasks = json.loads((folder / "task.schema.json").read_text())
    for text in [*objects, *schema.splitlines()]:
        jsonschema.validate(json.loads(text), tasks)
    for text in dates:
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", text)
    for text in values:
        json.loads("{" + text + "}")
    for text in bodies:
        ast.parse(f"def mean():\n    {text}")
    assert re.fullmatch(r"20\d\d-[01]\d\n", regex)
    lines = (folder.parent / "shapes.py").read_text().splitlines()
    ast.parse("\n".join([*lines[:21], lines[21] + complete, *lines[22:]]))
    assert accepts == "task.schema.json: accepted\n"


def test_drafts(folder):
    folder /= "drafts"
    compare, use = commands(folder)
    rows = re.findall(r"^  (\S+) +(\d+)% of (\d+) +([\d.]+) +([\d.]+)$", run(compare, folder), re.MULTILINE)
    python, go = ({name: int(share) for name, share, *_ in rows[start : start + 3]} for start in (0, 3))
    print(rows)
    assert python["draft-python"] > python["draft-go"]
    assert go["draft-go"] > go["draft-python"]
    assert "draft-c is the draft of java now" in run(use, folder)


@pytest.mark.parametrize("path", sorted((EXAMPLES / "editor").glob("*.toml")), ids=lambda path: path.name)
def test_settings_are_valid(folder, path):
    config, messages = load(path.parent)
    assert messages == []
    assert config.for_language("python").grammar == config.for_language("json").grammar == "auto"
    assert not config.for_language("markdown").enabled


def test_in_neovim(folder, tmp_path):
    """The steps of editor/README.md."""
    steps = (folder / "editor" / "README.md").read_text("utf-8")
    command = re.search(r"^1. In this folder: `(nvim .*)`$", steps, re.MULTILINE)
    keys = re.search(r"^2. Type `(\w+)`.* then `(return)` and a space.$", steps, re.MULTILINE)
    assert command, "no command"
    assert keys, "no keys"
    need(**{"Neovim (a program `nvim`, or $CODESPEC_NVIM)": NVIM})
    shutil.copytree(ROOT / "editors", tmp_path / "editors")
    path, listening = folder / "editor" / "shop.py", str(tmp_path / "socket")
    before = path.read_text().replace("    raise NotImplementedError\n", "    return \n")

    def ask(expression: str) -> object:
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
