"""Names and texts that are hard to search for secrets: linear time, and an end to it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from codespec.privacy import budget
from codespec.privacy.ignore_files import GIT, IgnoreFiles
from codespec.privacy.public_files import PublicFiles, public_parts
from codespec.privacy.secrets import has_secret_name, holds_manifest, holds_token, is_secret

LIMIT_S = 5.0
"""Each takes 0.2 s at most on an idle machine, or its budget; a pattern that is not linear takes minutes."""

NAMES = {
    "tildes": "a" + "~" * 48 + "x.py",
    "many tildes": "a" + "~" * 100_000 + "x.py",
    "copies of copies": ".env" + ".bak~_old#" * 10_000,
    "numbered copies": "a" + "~1~" * 30_000 + "x",
    "folders": "/.ssh" * 20_000 + "\n",
    "dots": ".env" + ".a" * 50_000 + "\n",
    "a scheme": "a" * 100_000,
    "escapes": "file:///" + "%7e" * 50_000,
    "swap": "." + "a.sw" * 30_000,
}
TEXTS = {
    "a long word in a tag": ("pom.xml", "<key" + "a" * 24_000),
    "names in a tag": ("pom.xml", "<" + "key" * 8_000),
    "blanks in an element": ("pom.xml", ("key" * 27 + ">a" + " " * 400) * 60),
    "tags in CDATA": ("pom.xml", "<key><![CDATA[" + "]]" * 12_000),
    "assignments in YAML": ("a.yaml", "token=" * 5_000),
    "different assignments": ("a.yaml", "".join(f"token={number}" for number in range(20_000))),
    "setters": ("a.py", "seta" * 10_000 + "key"),
    "blanks after a value": ("a.sh", ("password a1b2c3 " + " " * 500 + "x\n") * 60),
    "blanks after a name": ("a.js", ("key" + " " * 300) * 100),
    "calls": ("a.cs", "BasicAutha" * 10_000),
    "connections": ("a.py", "connecta" * 10_000),
    "hashes on one line": ("a.js", "a" * 100_000 + "test" + ('key="' + "0123456789abcdef" * 4 + '" ') * 3_000),
    "words on one line": ("a.js", ('"' + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF" + '" ') * 10_000),
    "names on one line": ("a.yaml", "x" * 500_000 + "key: 1, " * 50_000),
    "manifests": ("a.yaml", "kind: Secret\ndata:\n" + "  a: aaaa\n" * 20_000),
    "headers of keys": ("a.txt", "-----BEGIN PRIVATE KEY-----\\n" * 4_000),
    "blanks before a key": ("a.txt", ("-----BEGIN PRIVATE KEY-----" + " " * 100) * 1_000),
    "schemes": ("a.md", "a://b:" * 20_000),
    "open quotations": ("a.py", "\"'" * 50_000),
    "rows": ("a.sql", ("insert into a (password) values (" + " " * 700 + ")\n") * 40),
    "strings of libpq": ("a.py", "host=a " + "a = a " * 8_000),
    "a web token": ("a.py", "eyJ" * 30_000 + ".eyJ" * 10_000),
}


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    _in_time(lambda: has_secret_name(NAMES[name]))


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str, tmp_path: Path) -> None:
    path, text = TEXTS[name]
    _in_time(lambda: is_secret(path, text))
    _in_time(lambda: holds_token(text))
    _in_time(lambda: holds_manifest(path, text))
    _in_time(lambda: PublicFiles().may_send(str(tmp_path / path), str(tmp_path), text, len(text)), 2 * LIMIT_S)
    lines = text.splitlines(keepends=True)
    _in_time(lambda: public_parts(path, lines, [range(at, at + 1) for at in range(0, len(lines), 16)]))


def test_copies_are_named_like_what_they_were_made_of() -> None:
    for name in (
        ".env~",
        ".env.~1~",
        "#.env#",
        ".env.bak",
        "id_rsa_old",
        ".env.20240101",
        ".netrc.orig~",
        ".env-copy~12~",
    ):
        assert has_secret_name(name), name
    for name in ("a" + "~" * 48 + "x.py", "key.py~", "notes.bak", "~", "#", "~~~", ".bak", "#a#"):
        assert not has_secret_name(name), name


def test_what_is_not_searched_in_time_is_private(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = "password = get_password()\n" * 100
    assert not is_secret("a.py", text)
    assert PublicFiles().may_send(str(tmp_path / "a.py"), str(tmp_path), text, len(text))
    assert public_parts("a.py", [text], [range(1)])
    monkeypatch.setattr(budget, "BUDGET_S", -1.0)
    assert is_secret("a.py", text)
    assert holds_token("ghp_")
    assert not PublicFiles().may_keep(str(tmp_path / "a.py"), str(tmp_path), text)
    assert not PublicFiles().may_send(str(tmp_path / "a.py"), str(tmp_path), text, len(text))
    assert public_parts("a.py", [text], [range(1)]) == []


def test_the_budget_of_a_check_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(budget, "BUDGET_S", -1.0)
        assert is_secret("a.py", "password")
    assert not is_secret("a.py", "password")


def test_git_settings_of_line_breaks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = tmp_path / "git"
    settings.mkdir()
    (settings / "config").write_text("\n" * 60_000 + '[core]\n\texcludesFile = "' + str(tmp_path / "list") + '"  \n')
    (tmp_path / "list").write_text("*.secret\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    _in_time(lambda: IgnoreFiles(GIT).excludes(tmp_path / "work" / "a.py"))
    assert IgnoreFiles(GIT).excludes(tmp_path / "work" / "a.secret")


def _in_time(work: Callable[[], object], limit: float = LIMIT_S) -> None:
    began = time.thread_time()
    work()
    assert time.thread_time() - began < limit
