"""The grammar that a project's files ask for."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codespec.completion.language_version import grammar_for
from codespec.languages import by_id

PYTHON = by_id("python")


@pytest.mark.parametrize(
    ("name", "text", "grammar"),
    [
        ("pyproject.toml", '[project]\nrequires-python = ">=3.14"', "python3.14"),
        ("pyproject.toml", '[project]\nrequires-python = ">=3.13,<3.15"', "python"),
        ("pyproject.toml", '[project]\nrequires-python = "~= 3.15.1, != 3.15.4"', "python3.14"),
        ("pyproject.toml", '[project]\nrequires-python = "==3.14.*"', "python3.14"),
        ("pyproject.toml", '[project]\nrequires-python = "<3.14"', "python"),
        ("pyproject.toml", '[project]\nrequires-python = "!=3.14"', "python"),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = "^3.14"', "python3.14"),
        ("pyproject.toml", '[project]\nname = "x"', "python"),
        ("pyproject.toml", "[project\n", "python"),
        ("pyproject.toml", "project = 3", "python"),
        ("setup.cfg", "[options]\npython_requires = >=3.14\n", "python3.14"),
        ("setup.cfg", "python_requires", "python"),
        (".python-version", "3.14.0\n", "python3.14"),
        (".python-version", "system\n", "python"),
    ],
)
def test_what_a_project_says(tmp_path: Path, name: str, text: str, grammar: str) -> None:
    (tmp_path / name).write_text(text)
    assert grammar_for(PYTHON, str(tmp_path / "a.py"), str(tmp_path)) == grammar
    assert grammar_for(PYTHON, (tmp_path / "a.py").as_uri(), tmp_path.as_uri()) == grammar


@pytest.mark.parametrize(
    "text",
    [
        "a" + ".a" * 20_000 + " = 1",
        ("[" + "a." * 500 + "a]\n") * 60,
        "[project]\n" + "x" * 100_000 + " = 1",
        "x = " + "[" * 20_000,
        '[project]\nrequires-python = ">=' + "3" * 10_000 + '"',
        '[project]\nrequires-python = ">=' + "3" * 900 + '"',
    ],
)
def test_a_project_file_that_is_hard_to_read_says_nothing_soon(tmp_path: Path, text: str) -> None:
    folder = tmp_path.joinpath("d", "d", "d")
    folder.mkdir(parents=True)
    for each in (tmp_path, *folder.parents[:2], folder):
        (each / "pyproject.toml").write_text(f"{text}\n# {each}\n[tool.x]\n")
    began = time.process_time()
    assert grammar_for(PYTHON, str(folder / "a.py"), str(tmp_path)) in ("python", "python3.14")
    assert time.process_time() - began < 0.5


def test_nothing_is_known_outside_a_workspace(tmp_path: Path) -> None:
    (tmp_path / ".python-version").write_text("3.14")
    assert grammar_for(PYTHON, str(tmp_path / "a.py"), "") == "python"


def test_the_nearest_project_counts(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nrequires-python = ">=3.10"')
    inner = tmp_path / "tools" / "new"
    inner.mkdir(parents=True)
    (inner / "pyproject.toml").write_text('[project]\nrequires-python = ">=3.14"')
    assert grammar_for(PYTHON, str(inner / "src" / "a.py"), str(tmp_path)) == "python3.14"
    assert grammar_for(PYTHON, str(tmp_path / "a.py"), str(tmp_path)) == "python"


def test_a_change_of_the_project_counts_at_once(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text('[project]\nrequires-python = ">=3.9"')
    assert grammar_for(PYTHON, str(tmp_path / "a.py"), str(tmp_path)) == "python"
    file.write_text('[project]\nrequires-python = ">=3.14"')
    assert grammar_for(PYTHON, str(tmp_path / "a.py"), str(tmp_path)) == "python3.14"


def test_other_languages_have_one_grammar(tmp_path: Path) -> None:
    (tmp_path / ".python-version").write_text("3.14")
    assert grammar_for(by_id("go"), str(tmp_path / "a.go"), str(tmp_path)) == "go"
    assert grammar_for(by_id("markdown"), "", "") == ""


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes")
def test_a_project_file_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pyproject.toml")
    (tmp_path / ".python-version").write_text("3.14")
    command = (
        "import sys; from codespec.completion.language_version import grammar_for; "
        "from codespec.languages import by_id; "
        "print(grammar_for(by_id('python'), sys.argv[1] + '/a.py', sys.argv[1]))"
    )
    done = subprocess.run([sys.executable, "-c", command, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert done.stdout == "python3.14\n"
