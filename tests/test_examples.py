"""The examples, run as their READMEs say; tests/editors/test_project.py does what that of `editor` says."""

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

from codespec.config import load

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
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


def test_demo(folder):
    made = (ROOT / "Makefile").read_text("utf-8")
    lines = re.findall(r"^\t\$\(BIN\)/(codespec .*) \$\$target; \\$", made, re.MULTILINE)
    shown = [run(shlex.split(line), folder.parent) for line in lines]  # as without a network: the embedded model
    assert len(shown) == 3
    tokens, calls = map(int, re.findall(r"^(\d+) tokens in (\d+) target calls", shown[0], re.MULTILINE)[0])
    assert calls < 0.75 * tokens, "drafts carry it; less is proposed on a busy machine"
    schema = json.loads((folder / "project.schema.json").read_text())
    jsonschema.validate(json.loads(re.sub("⟦.*?⟧", "", shown[2].partition("\n\n")[0])), schema)


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
