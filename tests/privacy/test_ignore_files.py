"""What ``.gitignore`` and ``.codespecignore`` exclude: fixed cases, and the same answers as git's."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from codespec.privacy.ignore_files import CHECK_S, DEEPEST, GIT, LARGEST, OWN, IgnoreFiles

NAMES = ["a", "b", "foo", "bar.py", "x.log", "build", "k*", "a b"]
PATTERNS = [
    "a", "b/", "foo", "!foo", "*.log", "!x.log", "/a", "/build/", "!/build/", "*", "!*/", "!*.py", "**/foo", "a/**",
    "a/*", "!a/b", "foo/**/bar.py", "[ab]", "[!a]", "*.p[xy]", "\\!foo", "#c", "\\#c", "a/b", "!a/b/", "b/foo/",
    "x.l?g", "***", "/", "//", "!", "a//b", "build/**", "!build/foo", "[z-a]", "foo/ ", "foo\\ ", "a\\ b", "**", "**/",
    "*/", "!**/x.log", "b/*/", "[a", "\\", "a\\",
]  # fmt: skip


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    return tmp_path / "home"


@pytest.fixture
def work(tmp_path):
    folder = Path(os.path.realpath(tmp_path)) / "work"
    folder.mkdir()
    return folder


def write(path: Path, *lines: str, end: str = "\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(end.join([*lines, ""]).encode())


def excluded(folder: Path, *names: str, kind: str = GIT) -> list[str]:
    files = IgnoreFiles(kind)
    return [name for name in names if files.excludes(folder / name, folder)]


@pytest.mark.parametrize("kind", [GIT, OWN])
def test_patterns_of_inner_folders_count_more(work, kind):
    write(work / kind, "*.log", "/build/", "!keep.log")
    write(work / "sub" / kind, "!x.log", "keep.log", end="\r\n")
    write(work / "build" / kind, "!*")
    names = ("a.log", "keep.log", "sub/a.log", "sub/x.log", "sub/keep.log", "build/a.py", "sub/build/a.py", "a.py")
    assert excluded(work, *names, kind=kind) == ["a.log", "sub/a.log", "sub/keep.log", "build/a.py"]


def test_a_line_that_is_no_pattern_is_passed_over(work):
    write(work / GIT, "[z-a]", "\\", "", "# secret.py", "good.py")
    assert excluded(work, "secret.py", "good.py", "z") == ["good.py"]


def test_a_workspace_that_is_a_part_of_a_repository(work):
    write(work / ".git" / "info" / "exclude", "private/")
    write(work / GIT, "*.log")
    inner = work / "inner"
    assert excluded(inner, "a.log", "private/a.py", "a.py") == ["a.log", "private/a.py"]


def test_a_worktree_has_the_exclusions_of_its_repository(work):
    main, other = work / "main", work / "other"
    write(main / ".git" / "info" / "exclude", "private")
    write(main / ".git" / "worktrees" / "other" / "commondir", "../..")
    write(other / ".git", f"gitdir: {main / '.git' / 'worktrees' / 'other'}")
    assert excluded(other, "private", "public") == ["private"]


def test_what_the_user_excludes_everywhere(work, home):
    write(home / ".config" / "git" / "ignore", "*.swp")
    assert excluded(work, "a.swp", "a.bak") == ["a.swp"]
    write(home / ".gitconfig", "[core]", '\texcludesFile = "~/mine"')
    write(home / "mine", "*.bak")
    assert excluded(work, "a.swp", "a.bak") == ["a.bak"]
    assert not excluded(work, "a.swp", "a.bak", kind=OWN)


def test_gits_own_files(work):
    assert excluded(work, ".git/config", "a/.git/HEAD", "git/a.py") == [".git/config", "a/.git/HEAD"]


def test_a_file_outside_the_workspace_follows_the_lists_beside_it(work):
    write(work / "elsewhere" / OWN, "a.py")
    files = IgnoreFiles(OWN)
    assert files.excludes(work / "elsewhere" / "a.py", work / "folder")
    assert files.excludes(work / "elsewhere" / "a.py")
    assert not files.excludes(work / "elsewhere" / "b.py")


def test_changes_are_seen_after_a_while(work):
    now = 0.0
    files = IgnoreFiles(GIT, lambda: now)
    file = work / "a.py"
    assert not files.excludes(file, work)
    write(work / GIT, "*.py")
    assert not files.excludes(file, work)
    now += CHECK_S
    assert files.excludes(file, work)
    (work / GIT).unlink()
    now += CHECK_S
    assert not files.excludes(file, work)


def test_changes_are_seen_however_old_what_is_known_is(work):
    chance, now, changed = random.Random(4), 0.0, 0.0
    files, names = IgnoreFiles(OWN, lambda: now), [work / name for name in "abc"]
    excluded = False
    for _ in range(3000):
        now += chance.random() * CHECK_S / 3
        if now - changed > 3 * CHECK_S:
            changed, excluded = now, not excluded
            write(work / OWN, "*" if excluded else "# nothing is")
        found = files.excludes(chance.choice(names), work)
        assert found == excluded or now - changed < CHECK_S


def test_lists_that_cannot_be_read_exclude_nothing(work):
    (work / GIT).mkdir()
    write(work / ".git", "nonsense")
    (work / OWN).write_bytes(b"\xff\xfe\x00*.py\n\xef\xbb\xbf")
    assert not excluded(work, "a.py")
    assert not excluded(work, "a.py", kind=OWN)
    assert not IgnoreFiles(OWN).excludes(work / ("x" * 5000) / "a.py", work)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_they_do_anywhere(work, end):
    write(work / OWN, "*.key", "# b", "b", end=end)
    assert excluded(work, "a.key", "b", "c", kind=OWN) == ["a.key", "b"]


@pytest.mark.skipif(not Path("/proc/self/mem").is_file(), reason="no file that is there and cannot be read")
def test_a_list_that_is_there_and_cannot_be_read_excludes_everything(work):
    (work / OWN).symlink_to("/proc/self/mem")
    assert excluded(work, "a.py", kind=OWN) == ["a.py"]


def test_a_strangers_patterns_take_no_time_but_may_exclude_more(work):
    write(work / GIT, "*a*a*a*a*a*a*a*a*b", "!*z*z*z*z*z", "/d/" + "**/a/" * 9 + "b", "[*a]*a*")
    assert excluded(work, "a" * 200 + "c", "zzzzzzaaa", "e" * 200, "d/" + "a/" * 60 + "c") == [
        "a" * 200 + "c",
        "zzzzzzaaa",
        "d/" + "a/" * 60 + "c",
    ]
    assert excluded(work, "e/" * DEEPEST + "e", "e/" * (DEEPEST - 1) + "e") == ["e/" * DEEPEST + "e"]
    write(work / "sub" / GIT, "#" * LARGEST)
    assert excluded(work, "sub/a.py", "a.py") == ["sub/a.py"]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("seed", range(12))
def test_the_same_answers_as_git(work, seed):
    generator = random.Random(seed)
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    names = [name for name in NAMES if os.name != "nt" or "*" not in name]
    for _ in range(25):
        path = work.joinpath(*generator.choices(["a", "b", "foo", "build"], k=generator.randrange(4)))
        if not any(each.is_file() for each in (path, *path.parents)):
            path.mkdir(parents=True, exist_ok=True)
            if not (file := path / generator.choice(names)).exists():
                file.write_text("x")
    folders = [work, *(each for each in work.rglob("*") if each.is_dir() and ".git" not in each.parts)]
    for folder in generator.sample(folders, min(len(folders), 3)):
        write(folder / GIT, *generator.choices(PATTERNS, k=generator.randrange(1, 6)))
    write(work / ".git" / "info" / "exclude", *generator.choices(PATTERNS, k=generator.randrange(3)))
    files = [
        each.relative_to(work).as_posix() for each in work.rglob("*") if each.is_file() and ".git" not in each.parts
    ]
    told = subprocess.run(
        ["git", "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=work,
        input="\0".join(files).encode(),
        capture_output=True,
        check=False,
    )
    assert told.returncode in (0, 1), told.stderr
    assert excluded(work, *files) == [name for name in files if name in told.stdout.decode().split("\0")]
