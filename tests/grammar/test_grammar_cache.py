"""Lowered grammars on disk: used when nothing changed, and never a reason to fail."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codespec.grammar import Grammar, byte_tokenizer, cache, shipped
from codespec.grammar.beforehand import lower_beforehand
from codespec.grammar.gbnf import gbnf

TEXT = 'root ::= "a" x<indent> \\b\nx<i> ::= "b" | "\\n" x<i+>'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.grammar"))


def accepts(grammar: Grammar, text: str) -> bool:
    state = grammar.state(byte_tokenizer())
    return state.accept(text.encode()) == len(text) and state.can_end


def test_kept_and_found(folder: Path) -> None:
    key = cache.key("text", start=None, levels=("", " "))
    assert cache.load(key) is None
    cache.store(key, "é\n\nlowered")
    assert cache.load(key) == "é\n\nlowered"
    others = [cache.key("text2", start=None, levels=("", " ")), cache.key("text", start="x", levels=("", " "))]
    assert all(cache.load(other) is None for other in [*others, cache.key("text", start=None, levels=())])
    assert [path.name for path in folder.iterdir()] == [f"{key}.grammar"]


def test_a_hit_neither_parses_nor_lowers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Grammar.from_gbnf(TEXT, extensions=True)
    assert len(entries(folder)) == 1

    def fail(*_: object) -> None:
        raise AssertionError("parsed again")

    with monkeypatch.context() as patch:
        patch.setattr(gbnf, "read", fail)
        second = Grammar.from_gbnf(TEXT, extensions=True)
        assert second.leveled
        assert not second.needs_vocabulary
    for text, expected in [("ab", True), ("a\n\nb", True), ("abb", False), ("a", False)]:
        assert accepts(first, text) == accepts(second, text) == expected
    assert second.rules == first.rules  # parsed when asked


def test_options_have_their_own_entries(folder: Path) -> None:
    Grammar.from_gbnf(TEXT, extensions=True)
    Grammar.from_gbnf(TEXT, extensions=True, levels=("", " "))
    other = Grammar.from_gbnf('root ::= "x" y\ny ::= "y"', start="y")
    assert len(entries(folder)) == 3
    assert not Grammar.from_gbnf('root ::= "x" y\ny ::= "y"', start="y").leveled
    assert accepts(other, "y")
    assert not accepts(Grammar.from_gbnf('root ::= "x" y\ny ::= "y"'), "y")


def test_grammars_of_tokens_are_not_kept(folder: Path) -> None:
    assert Grammar.from_gbnf("root ::= <[3]>").needs_vocabulary
    assert entries(folder) == []


@pytest.mark.parametrize("damage", [b"", b"x", b"codespec grammar 1 00\nstart: ", b"\xff\xff\n"])
def test_damage_is_noticed(folder: Path, damage: bytes, caplog: pytest.LogCaptureFixture) -> None:
    Grammar.from_gbnf(TEXT, extensions=True)
    (path,) = entries(folder)
    path.write_bytes(damage)
    with caplog.at_level(logging.INFO):
        assert accepts(Grammar.from_gbnf(TEXT, extensions=True), "ab")
    assert "damaged" in caplog.text
    assert path.with_suffix(".damaged").read_bytes() == damage
    assert cache.load(path.stem) is not None  # lowered again


def test_flipped_byte(folder: Path) -> None:
    cache.store("k", "lowered")
    (path,) = entries(folder)
    content = bytearray(path.read_bytes())
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        assert cache.load("k") is None
    path.write_bytes(content)
    assert cache.load("k") == "lowered"


def test_the_longest_unused_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for at, name in enumerate("abc"):
        cache.store(name, name * 1000)
        os.utime(folder / f"{name}.grammar", (at, at))
    assert cache.load("a")  # now the newest
    (folder / "notes.txt").write_bytes(b"x" * 9000)  # not ours
    monkeypatch.setattr(cache, "MAX_BYTES", 2 * 4096 + 1000)  # a file takes a block at least
    cache.store("d", "d" * 1000)
    assert {path.name for path in folder.iterdir()} == {"a.grammar", "d.grammar", "notes.txt"}


def test_too_large_an_entry_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_ENTRY", 10)
    cache.store("k", "x" * 11)
    assert cache.load("k") is None


def test_it_can_be_turned_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, "off")
    cache.store("k", "x")
    assert cache.load("k") is None
    assert accepts(Grammar.from_gbnf(TEXT, extensions=True), "ab")
    assert not folder.exists()


def test_a_folder_that_cannot_be_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write_text("a file is in the way")
    cache.store("k", "x")
    assert cache.load("k") is None
    assert accepts(Grammar.from_gbnf(TEXT, extensions=True), "ab")


def test_writers_at_the_same_time(folder: Path) -> None:
    code = (
        "from codespec.grammar import cache\nfor i in range(50): cache.store('k', 'x' * 20000); assert cache.load('k')"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert [path.name for path in folder.iterdir()] == ["k.grammar"]


def test_what_no_helper_saw_goes_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr("codespec.grammar.sandbox.approve", lambda kind, text, name, **options: seen.append(text))
    for _ in range(2):
        Grammar.from_outside("gbnf", 'root ::= "outside"', "g")
    Grammar.from_outside("gbnf", 'root ::= "outside"', "g", start="root", extensions=True)
    assert len(seen) == 2


def test_the_users_folder_is_not_touched_by_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(cache.VARIABLE)
    assert cache.folder() is not None
    assert "codespec" in str(cache.folder())


def test_shipped_grammars_are_lowered_when_the_package_is_built(tmp_path, monkeypatch):
    grammars = {name: path for name, path in shipped().items() if name in ("csv", "json")}
    monkeypatch.setattr("codespec.grammar.beforehand.shipped", lambda: grammars)
    monkeypatch.setattr(cache, "BEFOREHAND", tmp_path / "lowered")
    monkeypatch.setenv(cache.VARIABLE, "off")
    lower_beforehand()
    assert 2 <= len(list((tmp_path / "lowered").iterdir())) < 10  # of these two, and no others
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "empty"))
    monkeypatch.setattr("codespec.grammar.grammar.lower", None)  # nothing may be lowered now
    assert Grammar.load("json").state(byte_tokenizer()).accept(list(b"[1]")) == 3
    assert Grammar.load("csv").state(byte_tokenizer()).accept(list(b"a,b")) == 3
    with pytest.raises(TypeError):
        Grammar.load("json", start="compact")
    assert not (tmp_path / "empty").exists()


def test_a_build_without_them_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "BEFOREHAND", tmp_path / "none")
    monkeypatch.delenv(cache.VARIABLE, raising=False)
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "empty"))
    assert Grammar.load("csv").state(byte_tokenizer()).accept(list(b"a,b")) == 3


def test_a_changed_file_of_any_folder_is_other_code(tmp_path: Path) -> None:
    own = Path(cache.__file__).parent
    copied = tmp_path / "grammar"
    shutil.copytree(own, copied, ignore=shutil.ignore_patterns("__pycache__"))
    assert cache.code_hash(copied) == cache.code_hash()
    folders = {path.parent for path in copied.rglob("*.py")}
    assert len(folders) > 4
    for folder in folders:
        file = folder / "__init__.py"
        before, text = cache.code_hash(copied), file.read_bytes()
        file.write_bytes(text + b"# another\n")
        cache.code_hash.cache_clear()
        assert cache.code_hash(copied) != before, folder
        file.write_bytes(text)
        cache.code_hash.cache_clear()
    before = cache.code_hash(copied)
    (copied / "lower" / "graph.py").rename(copied / "json" / "graph.py")
    cache.code_hash.cache_clear()
    assert cache.code_hash(copied) != before
    (copied / ".#graph.py").symlink_to("somebody@here.1234")  # as Emacs leaves it beside a file that is edited
    before = cache.code_hash(copied)
    cache.code_hash.cache_clear()
    assert cache.code_hash(copied) == before
