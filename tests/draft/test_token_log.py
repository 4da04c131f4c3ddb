"""The log behind n-grams that learn: what goes in comes out, whatever happens to the file."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest

from codespec.draft.storage import token_log_file
from codespec.draft.storage.token_log import TokenLog, clear, workspace_log
from codespec.protocols import CodespecError

VOCABULARY = "0123abcd"
POSIX = pytest.mark.skipif(os.name == "nt", reason="modes of files are POSIX")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ngrams/0/python-1.log"


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What was logged, however little it matters."""
    caplog.set_level(logging.INFO, "codespec")
    return lambda: caplog.messages


def write(path: Path, *segments: list[int], cap: int = 1000) -> TokenLog:
    log = TokenLog(path, VOCABULARY, cap)
    for segment in segments:
        log.append(segment)
    log.flush()
    return log


def read(path: Path, cap: int = 1000) -> list[list[int]]:
    return [list(segment) for segment in TokenLog(path, VOCABULARY, cap).load()]


def test_round_trip(path: Path) -> None:
    assert read(path) == []
    assert not path.parent.exists(), "reading creates nothing"
    log = write(path, [1, 2, 3], [], [2**31 - 1])
    log.append([4])
    assert [list(s) for s in log.load()] == [[1, 2, 3], [2**31 - 1], [4]], "what is not yet written as well"
    assert read(path) == [[1, 2, 3], [2**31 - 1]]
    log.close()
    log.close()
    assert read(path) == [[1, 2, 3], [2**31 - 1], [4]]
    assert all(isinstance(s, array) for s in log.load())


def test_arguments() -> None:
    with pytest.raises(ValueError, match="hash"):
        TokenLog(Path("x"), "a b")
    with pytest.raises(ValueError, match="3 tokens"):
        TokenLog(Path("x"), "a", 3)


def test_the_oldest_are_dropped_beyond_the_cap(path: Path) -> None:
    segments = [[i] * 10 for i in range(60)]
    log = TokenLog(path, VOCABULARY, cap=100)
    for i, segment in enumerate(segments):
        log.append(segment)
        log.flush()
        held = read(path)
        assert sum(map(len, held)) <= 100
        whole = [s for s in held if len(s) == 10]
        assert whole == segments[i + 1 - len(whole) : i + 1], "the newest, in order"
        assert len(whole) >= min(i + 1, 7)
    assert path.stat().st_size < 1000


def test_decay_drops_duplicates_and_cuts_what_is_too_long(path: Path) -> None:
    log = write(path, [1] * 30, [2] * 30, [1] * 30, cap=100)
    assert len(read(path)) == 3, "as written"
    log.append([3] * 11)
    log.flush()
    assert read(path) == [[2] * 30, [1] * 30, [3] * 11]
    log.append(range(500))
    log.flush()
    assert read(path) == [list(range(425, 500))]
    assert read(path, cap=40) == [list(range(425, 500))], "a smaller cap counts from the next writing on"
    write(path, [7], cap=40)
    assert read(path) == [[*range(471, 500)], [7]]


def test_a_torn_tail_is_cut_off(path: Path, warnings: Callable[[], list[str]]) -> None:
    write(path, [1, 2], [3])
    before = path.stat().st_size
    write(path, [5, 6, 7, 8])
    whole = path.read_bytes()
    for end in range(before, len(whole)):
        path.write_bytes(whole[:end])
        assert read(path) == [[1, 2], [3]]
        assert path.stat().st_size == before
        path.write_bytes(whole[:end])
        write(path, [9])  # without loading first
        assert read(path) == [[1, 2], [3], [9]]
    for end in range(token_log_file._NONCE):
        path.write_bytes(whole[:end])
        assert read(path) == []
        write(path, [9])
        assert read(path) == [[9]]
    path.write_bytes(whole[:before] + bytes(40))  # as some file systems leave it
    assert read(path) == [[1, 2], [3]]
    assert warnings() == []


def test_a_crash_of_another_process_is_noticed_before_appending(path: Path, warnings: Callable[[], list[str]]) -> None:
    log = write(path, [1, 2])
    whole = path.read_bytes()
    path.write_bytes(whole + whole[-9:-1])
    log.append([3])
    log.flush()
    path.write_bytes(path.read_bytes()[:-1])
    log.append([4])
    log.flush()
    assert read(path) == [[1, 2], [4]]
    path.unlink()
    log.append([5])
    log.flush()
    assert read(path) == [[5]]
    assert warnings() == []


def test_a_flipped_byte_never_gives_wrong_tokens(path: Path) -> None:
    segments = [[1, 2], [3], [4, 5, 6], [7]]
    write(path, *segments)
    whole = path.read_bytes()
    vocabulary_at = whole.index(VOCABULARY.encode())
    seen = set()
    for at in range(len(whole)):
        for flip in (1, 0x80):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :])
            found = read(path)
            assert found == segments[: len(found)], at
            seen.add(len(found))
            assert read(path) == found, "mended"
            write(path, [8, 9])
            assert read(path) == [*found, [8, 9]]
            if vocabulary_at <= at < vocabulary_at + len(VOCABULARY):
                assert found == []
    assert seen == {0, 1, 2, 3, 4}


def test_damage_is_set_aside_with_a_message(path: Path, warnings: Callable[[], list[str]]) -> None:
    write(path, [1, 2], [3], [4])
    whole = bytearray(path.read_bytes())
    whole[-20] ^= 1
    path.write_bytes(whole)
    assert read(path) == [[1, 2]]
    assert path.with_suffix(".damaged").read_bytes() == whole
    assert len(warnings()) == 1
    assert "set aside as python-1.damaged" in warnings()[0]


def test_damage_behind_what_is_known_keeps_what_was_before(path: Path) -> None:
    log = write(path, [1, 2])
    with path.open("ab") as file:
        file.write(b"nonsense, longer than a head")
    log.append([3])
    log.flush()
    assert read(path) == [[1, 2], [3]]


@pytest.mark.parametrize("other", [b"codespec ngrams 2 0123abcd 0123456789abcdef\n", None])
def test_another_vocabulary_or_version_starts_anew(
    path: Path, warnings: Callable[[], list[str]], other: bytes | None
) -> None:
    log = TokenLog(path, "ffff")
    log.append([1])
    log.flush()
    if other:
        path.write_bytes(other + b"anything")
    assert read(path) == []
    assert not path.exists()
    assert path.with_suffix(".old").exists()
    assert len(warnings()) == 1
    write(path, [2])
    assert read(path) == [[2]]


WRITER = """
import sys
from pathlib import Path
from codespec.draft.storage.token_log import TokenLog
first, count, cap = map(int, sys.argv[2:])
log = TokenLog(Path(sys.argv[1]), "0123abcd", cap)
for i in range(first, first + count):
    log.append([i] * (1 + i % 50))
    log.flush()
"""


def run_writers(path: Path, cap: int) -> None:
    arguments = [[str(path), str(first), "150", str(cap)] for first in (1000, 2000, 3000)]
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, *each]) for each in arguments]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]


def test_processes_that_append_at_once_lose_nothing(path: Path) -> None:
    run_writers(path, cap=1_000_000)
    found = read(path, cap=1_000_000)
    assert all(len(set(s)) == 1 and len(s) == 1 + s[0] % 50 for s in found)
    for first in (1000, 2000, 3000):
        mine = [s[0] for s in found if first <= s[0] < first + 1000]
        assert mine == list(range(first, first + 150))


def test_a_process_that_writes_anew_loses_nothing_of_the_others(path: Path) -> None:
    """Of what is newest, each process has its own last segments in order and without a gap."""
    run_writers(path, cap=2000)
    found = read(path, cap=2000)
    assert 1400 <= sum(map(len, found)) <= 2000
    for first in (1000, 2000, 3000):
        mine = [s[0] for s in found if first <= s[0] < first + 1000]
        assert not mine or mine == list(range(mine[0], first + 150))
    assert [p.suffix for p in path.parent.iterdir() if p.suffix not in (".log", ".lock")] == []


def test_a_folder_that_cannot_be_used(tmp_path: Path, warnings: Callable[[], list[str]]) -> None:
    (tmp_path / "file").write_text("")
    log = TokenLog(tmp_path / "file/x.log", VOCABULARY, cap=100)
    for i in range(30):
        log.append([i] * 10)
        log.flush()
    assert [s[0] for s in log.load()] == list(range(20, 30))
    log.close()
    assert len(warnings()) == 1


@pytest.mark.skipif(os.name == "nt" or getattr(os, "geteuid", lambda: 1)() == 0, reason="all may write everywhere")
def test_a_read_only_folder(path: Path, warnings: Callable[[], list[str]]) -> None:
    write(path, [1], [2])
    path.with_suffix(".lock").unlink()
    path.parent.chmod(0o500)
    try:
        log = TokenLog(path, VOCABULARY)
        log.append([3])
        log.flush()
        assert [list(s) for s in log.load()] == [[1], [2], [3]]
        assert len(warnings()) == 1
    finally:
        path.parent.chmod(0o700)
    log.flush()
    assert read(path) == [[1], [2], [3]], "once it can be written, it is"


def test_a_full_disk(path: Path, monkeypatch: pytest.MonkeyPatch, warnings: Callable[[], list[str]]) -> None:
    log = write(path, [1])
    write_ = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write_(handle, data[:7]))
    log.append([2])
    log.flush()
    assert [list(s) for s in log.load()] == [[1], [2]]
    assert read(path) == [[1]]
    monkeypatch.undo()
    log.append([3])
    log.flush()
    assert read(path) == [[1], [2], [3]]
    assert len(warnings()) == 1


@pytest.mark.skipif(os.name == "nt", reason="the other process holds a POSIX lock")
def test_a_process_that_holds_the_lock_for_ever(
    path: Path, monkeypatch: pytest.MonkeyPatch, warnings: Callable[[], list[str]]
) -> None:
    log = write(path, [1])
    monkeypatch.setattr(token_log_file, "PATIENCE", 0.02)
    log.append([2])
    with token_log_file.locked(path.with_suffix(".lock")):
        log.flush()
        assert [list(s) for s in log.load()] == [[1], [2]]
    log.flush()
    assert read(path) == [[1], [2]]
    assert len(warnings()) == 1


@POSIX
def test_only_the_user_may_read(path: Path) -> None:
    old = os.umask(0)
    try:
        log = write(path, [1] * 50, cap=100)
        log.append([2] * 60)
        log.close()
    finally:
        os.umask(old)
    for file in path.parent.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600
    for folder in (path.parent, path.parent.parent):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_workspaces_never_share(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    keys = [(f, lang, v) for f in (a, b, None) for lang in ("python", "c++", "c#", "C", "c", "") for v in ("1", "2")]
    paths = [workspace_log(*key, base=tmp_path / "base") for key in keys]
    assert len(set(paths)) == len(keys)
    assert all(p.parent.parent == tmp_path / "base" for p in paths)
    assert len({p.parent for p in paths}) == 3
    assert workspace_log(a / "x/..", "python", "1", tmp_path) == workspace_log(a, "python", "1", tmp_path)
    assert workspace_log(a, "python", "1").is_absolute()


@pytest.mark.parametrize("language", ["../../etc/passwd", "a/b", "a\\b", "con", "x" * 500, "sprache:ä", "\ud800", "."])
def test_language_names_are_no_paths(tmp_path: Path, language: str) -> None:
    path = workspace_log(None, language, "1", tmp_path)
    assert path.parent == tmp_path / "no-workspace"
    assert len(path.name) < 80
    assert path.name.isascii()
    write(path, [1])
    assert read(path) == [[1]]


def test_clear_forgets_one_workspace(tmp_path: Path) -> None:
    base, a, b = tmp_path / "base", tmp_path / "a", tmp_path / "b"
    logs = {folder: write(workspace_log(folder, "python", "1", base), [1, 2]) for folder in (a, b, None)}
    clear(a, base)
    assert read(logs[a].path) == []
    assert read(logs[b].path) == read(logs[None].path) == [[1, 2]]
    logs[a].append([3])
    logs[a].flush()
    assert read(logs[a].path) == [[3]], "nothing comes back"
    clear(a, base)
    clear(a, base)


def test_clear_says_what_cannot_be_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> None:
        raise PermissionError(13, "in use")

    monkeypatch.setattr("shutil.rmtree", refuse)
    with pytest.raises(CodespecError, match="in use"):
        clear(tmp_path, tmp_path)
