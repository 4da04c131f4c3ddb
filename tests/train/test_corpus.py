"""What a corpus is collected from: licences file by file, near duplicates, shares of packages."""

import gzip
import json
import sysconfig
from pathlib import Path

import pytest

pytest.importorskip(
    "datasketch", reason="datasketch is not installed; `make test-train` installs it and runs this file"
)

from benchmarks.commands import main as benchmark
from benchmarks.training import fetch
from codespec.privacy.secrets import SECRET, holds_key
from codespec.train import corpus

STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))

COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: demo

Files: *
Copyright: 2020 Somebody
License: Expat

Files: src/old/* src/odd?.c
Copyright: 1999 Somebody Else
License: GPL-2+
 On Debian systems the text is in /usr/share/common-licenses/GPL-2.

License: Expat
 Permission is hereby granted, free of charge, to any person
 .
 obtaining a copy of this software
"""


def text(name: str, lines: int = 30) -> str:
    return "".join(f"int {name}_{number}(int value) {{ return value + {number}; }}\n" for number in range(lines))


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, "utf-8")


def paths(folder: Path) -> list[str]:
    return [document.path for _, document in corpus.collect([folder])]


def test_of_a_debian_source_package_the_files_under_a_permissive_licence_are_taken(tmp_path):
    root = tmp_path / "demo_1.2-3"
    write(root / "debian" / "copyright", COPYRIGHT)
    for name in ("main.c", "src/new.c", "src/old/new.c", "src/odd1.c", "src/odder.c"):
        write(root / name, text(Path(name).stem + name[:1]) + f"// {name}\n")
    found = list(corpus.collect([tmp_path]))
    assert [document.path for _, document in found] == ["main.c", "src/new.c", "src/odder.c"]
    assert {source for source, _ in found} == {corpus.Source("debian/demo", "1.2-3", "Expat")}


def test_an_unpacked_debian_library_is_taken_as_a_whole_or_not_at_all(tmp_path):
    for name, licence in (
        ("librust-good-dev_1", COPYRIGHT.replace("GPL-2+", "Apache-2.0")),
        ("librust-bad-dev_2", COPYRIGHT),
    ):
        write(tmp_path / name / "usr" / "share" / "doc" / name[:-2] / "copyright", licence)
        write(tmp_path / name / "usr" / "share" / "cargo" / "registry" / "demo-1.0" / "lib.rs", text(name[:-2]))
    assert paths(tmp_path) == ["demo-1.0/lib.rs"]


def test_of_one_package_no_more_than_its_share(tmp_path, monkeypatch):
    package = tmp_path / "node_modules" / "large"
    write(package / "package.json", json.dumps({"name": "large", "version": "1", "license": "MIT"}))
    for number in range(10):
        write(package / f"file{number}.js", text(f"f{number}"))
    assert len(paths(tmp_path / "node_modules")) == 10
    monkeypatch.setattr(corpus, "PACKAGE_CHARS", 2 * len(text("f0")))
    assert len(paths(tmp_path / "node_modules")) == 3


@pytest.mark.parametrize(("changed", "kept"), [(1, 1), (15, 2)])
def test_near_duplicates_are_left_out(tmp_path, changed, kept):
    lines = text("same").splitlines(keepends=True)
    write(tmp_path / "a.c", "".join(lines))
    write(tmp_path / "b.c", "".join(lines[changed:]) + text("other", changed))
    assert len(list(corpus.unlike(list(corpus.collect([tmp_path]))))) == kept


def test_nothing_held_out_is_much_like_what_is_learnt(tmp_path):
    names = [f"package{number}" for number in range(200)]
    held_out = next(name for name in names if corpus.is_held_out(f"npm/{name}"))
    learnt = next(name for name in reversed(names) if not corpus.is_held_out(f"npm/{name}"))
    modules = tmp_path / "node_modules"
    for name in (held_out, learnt):
        write(modules / name / "package.json", json.dumps({"name": name, "version": "1", "license": "MIT"}))
        write(modules / name / "index.js", text("same") + f"// {name}\n")
    write(modules / held_out / "more.js", text("more"))
    corpus.build([modules], tmp_path / "out")
    found = {(document.package, document.path) for document in corpus.load(tmp_path / "out")}
    assert (f"npm/{learnt}", f"{learnt}/index.js") in found
    assert (f"npm/{held_out}", f"{held_out}/index.js") not in found
    assert (f"npm/{held_out}", f"{held_out}/more.js") in found


@pytest.mark.parametrize(
    "key",
    [
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----",
        "AKIA" + "A1" * 8,
        "ghp_" + "a1" * 18,
        "xoxb-" + "1" * 20,
    ],
)
def test_what_looks_first_for_parts_of_keys_finds_all_of_them(key):
    assert SECRET.search(f"x = '{key}'")
    assert holds_key(f"x = '{key}'")
    assert not holds_key("x = 'PRIVATE KEY AKIA ghp_ xox'")


def test_fetching_leaves_the_running_interpreter_s_library_alone(tmp_path, capsys):
    manifest = tmp_path / "manifest.json.gz"
    manifest.write_bytes(gzip.compress(b'[{"package": "cpython/json", "version": "3.11"}]'))
    assert benchmark(["fetch", "--manifest", str(manifest), "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.startswith("1 of 1 packages")
    assert not (tmp_path / "out").exists()


def test_a_program_s_package_is_not_its_source(tmp_path):
    listed = frozenset({"src/capnp/any.h", "src/capnp/arena.h", "README.md"})
    for name in ("usr/bin/capnp", "usr/share/doc/capnproto/README.md", "arena.h"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert not fetch.holds(tmp_path, listed)
    (tmp_path / "capnproto-0.9" / "src" / "capnp").mkdir(parents=True)
    (tmp_path / "capnproto-0.9" / "src" / "capnp" / "any.h").touch()
    assert fetch.holds(tmp_path, listed)


@pytest.mark.parametrize("content", [b"", b"{}", gzip.compress(b"[{}]"), gzip.compress(b"{")])
def test_what_is_no_manifest_is_refused(tmp_path, capsys, content):
    manifest = tmp_path / "manifest.json.gz"
    manifest.write_bytes(content)
    assert benchmark(["fetch", "--manifest", str(manifest), "--out", str(tmp_path)]) == 2
    assert "no manifest of a corpus" in capsys.readouterr().err


def test_standard_library_and_site_packages_are_recognised(tmp_path):
    sources = {source.package: source for source, _ in corpus.collect([STANDARD_LIBRARY / "json"])}
    assert set(sources) == {"json"}
    library = {source.licence for source, _, _ in corpus._candidates(STANDARD_LIBRARY)}
    assert library == {"PSF-2.0"}


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        ("MIT", True),
        ("BSD-3-Clause AND MIT", True),
        ("Apache Software License", True),
        ("PSF-2.0", True),
        ("GPL-3.0-or-later", False),
        ("GNU Lesser General Public License v3 (LGPLv3)", False),
        ("MPL-2.0 AND MIT", False),
        ("", False),
        ("Proprietary", False),
    ],
)
def test_licences(licence, expected):
    assert corpus.is_permissive(licence) is expected


def test_secrets_stay_out(tmp_path):
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text("value = 1\n" * 30)
    bad.write_text("value = 1\n" * 30 + "-----BEGIN RSA PRIVATE KEY-----\n")
    assert [document.path for _, document in corpus.collect([tmp_path])] == [f"{tmp_path.name}/good.py"]


def test_files_that_spell_special_tokens_stay_out(tmp_path):
    (tmp_path / "odd.py").write_text("value = '<|fim_middle|>'\n" * 30)
    assert list(corpus.collect([tmp_path])) == []
