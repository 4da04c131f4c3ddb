"""The table of ``docs/privacy.md``: which files are completed, shown for others, and kept on the disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codespec.privacy.public_files import PublicFiles, public_parts
from codespec.privacy.secrets import holds_token

TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
PASSWORD = "password = 'Hq7-rT2_wPz9'\n"

FILES = {
    "code.py": ("x = 1\n", True, True, True),
    ".env": ("x = 1\n", False, False, False),
    "token.py": (f"key = '{TOKEN}'\n", False, False, False),
    "random.py": (f"x = 1\n{PASSWORD}", True, False, False),
    "own.py": ("x = 1\n", False, False, False),
    "build/made.py": ("x = 1\n", True, False, False),
}
"""By name: the text, and whether it is completed, shown and kept."""


@pytest.fixture
def work(tmp_path) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "work"
    (folder / "build").mkdir(parents=True)
    (folder / ".gitignore").write_text("build/\n")
    (folder / ".codespecignore").write_text("own.py\n")
    return folder


@pytest.mark.parametrize("name", FILES)
def test_what_may_be_done_with_a_file(work, name):
    text, completed, shown, kept = FILES[name]
    files, path = PublicFiles(), Path(os.path.realpath(work / name))
    path.write_text(text)
    lines = text.splitlines(keepends=True)
    may_show = not holds_token(text) and files.may_show(path, work)
    assert (not files.why_private(path.as_uri(), path, work, holds_token(text))) == completed
    assert (may_show and public_parts(path.name, lines, [range(len(lines))]) != []) == shown
    assert files.may_keep(str(path), str(work), text) == kept


def test_files_outside_the_folder_are_completed_and_not_shown(work):
    path = work.parent / "outside.py"
    assert not PublicFiles().why_private(path.as_uri(), path, None, False)
    assert not PublicFiles().may_show(path, work)


def test_reasons_are_told():
    files = PublicFiles()
    assert files.why_private("untitled:.env", None, None, False) == "files of that name hold secrets"
    assert files.why_private("untitled:1", None, None, True).startswith("it holds a private key")
    assert files.why_private("untitled:1", None, None, False) == ""


def test_only_the_parts_near_a_secret_are_not_shown():
    lines = ["x = 1\n"] * 100 + [PASSWORD] + ["y = 2\n"] * 100
    parts = [range(20), range(90, 110), range(150, 170)]
    assert public_parts("a.py", lines, parts) == [parts[0], parts[2]]
