"""The log behind n-grams that learn: what goes in comes out, whatever happens to the file."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codespec.draft.storage import token_log
from codespec.draft.storage.token_log import (
    TokenLog,
    clear,
    delete_old_logs,
    language_stem,
    note,
    noted,
    workspace_file,
)
from codespec.protocols import CodespecError

KIND = "0123abcd python"
POSIX = pytest.mark.skipif(os.name == "nt", reason="modes of files are POSIX")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "learnt/0/a.sqlite"


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What was logged, however little it matters."""
    caplog.set_level(logging.INFO, "codespec")
    return lambda: caplog.messages


def write(path: Path, *segments: list[int], cap: int = 1000) -> TokenLog:
    log = TokenLog(path, KIND, cap)
    for segment in segments:
        log.append(segment)
    log.flush()
    return log


def read(path: Path, cap: int = 1000) -> list[list[int]]:
    return [list(segment) for segment in TokenLog(path, KIND, cap).load()]


def test_round_trip(path: Path) -> None:
    assert read(path) == []
    assert not path.parent.exists(), "reading creates nothing"
    log = write(path, [1, 2, 3], [], [2**31 - 1])
    log.append([4])
    assert [list(s) for s in log.load()] == [[1, 2, 3], [2**31 - 1], [4]], "what is not yet written as well"
    assert read(path) == [[1, 2, 3], [2**31 - 1]]
    log.flush()
    log.flush()
    assert read(path) == [[1, 2, 3], [2**31 - 1], [4]]
    assert all(isinstance(s, array) for s in log.load())


def test_the_oldest_are_dropped_beyond_the_cap(path: Path) -> None:
    segments = [[i] * 10 for i in range(60)]
    log = TokenLog(path, KIND, cap=100)
    for i, segment in enumerate(segments):
        log.append(segment)
        log.flush()
        held = read(path)
        assert sum(map(len, held)) <= 100
        whole = [s for s in held if len(s) == 10]
        assert whole == segments[i + 1 - len(whole) : i + 1], "the newest, in order"
        assert len(whole) >= min(i + 1, 7)
    assert path.stat().st_size < 20_000


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


def flipped(whole: bytes) -> Iterator[bytes]:
    """With a byte changed, at every place that is no filling, or cut off there."""
    for at in range(len(whole)):
        if any(whole[max(0, at - 2) : at + 3]):
            for flip in (1, 0x80):
                yield whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :]
            yield whole[:at]


def test_damage_never_gives_wrong_tokens(path: Path) -> None:
    segments = [[1, 2], [3], [4, 5, 6], [7]]
    write(path, *segments)
    TokenLog(path, "ffff python").load()
    seen = set()
    for content in flipped(path.read_bytes()):
        path.write_bytes(content)
        found = read(path)
        assert all(each in segments for each in found)
        seen.add(len(found))
        write(path, [8, 9])
        assert all(each in [*segments, [8, 9]] for each in read(path))
    assert {0, 4} <= seen


@pytest.mark.parametrize(
    "content", [b"codespec ngrams 1 0123abcd 0123456789abcdef\n", b"\xff" * 5000, b"SQLite format 3\0"]
)
def test_a_damaged_file_is_begun_anew_with_a_message(
    path: Path, warnings: Callable[[], list[str]], content: bytes
) -> None:
    write(path, [1, 2])
    path.write_bytes(content)
    assert read(path) == []
    assert any("begun anew" in each for each in warnings())
    write(path, [3])
    assert read(path) == [[3]]


def test_languages_and_vocabularies_are_apart(path: Path) -> None:
    kinds = ["a python", "b python", "a go"]
    for number, kind in enumerate(kinds):
        log = TokenLog(path, kind, 100)
        for _ in range(12):
            log.append([number] * 10)
            log.flush()
    for number, kind in enumerate(kinds):
        assert {token for each in TokenLog(path, kind).load() for token in each} == {number}


WRITER = """
import sys
from pathlib import Path
from codespec.draft.storage.token_log import TokenLog
first, count, cap = map(int, sys.argv[2:])
log = TokenLog(Path(sys.argv[1]), "0123abcd python", cap)
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
    assert list(path.parent.iterdir()) == [path]


@POSIX
def test_a_process_that_is_killed_while_it_writes_leaves_whole_segments(path: Path) -> None:
    for first in (1000, 2000):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(first), "100000", "500"])
        until = time.monotonic() + 60
        while not any(first <= each[0] for each in read(path)):
            assert time.monotonic() < until
        writer.send_signal(signal.SIGKILL)
        writer.wait(60)
        found = read(path)
        assert all(len(set(each)) == 1 for each in found)
        assert [each[0] for each in found] == sorted(each[0] for each in found)
    write(path, [7])
    assert read(path)[-1] == [7]


def test_a_folder_that_cannot_be_used(tmp_path: Path, warnings: Callable[[], list[str]]) -> None:
    (tmp_path / "file").write_text("")
    log = TokenLog(tmp_path / "file/x.log", KIND, cap=100)
    for i in range(30):
        log.append([i] * 10)
        log.flush()
    assert [s[0] for s in log.load()] == list(range(20, 30))
    log.flush()
    assert len(warnings()) == 1


@pytest.mark.skipif(os.name == "nt" or getattr(os, "geteuid", lambda: 1)() == 0, reason="all may write everywhere")
def test_a_read_only_folder(path: Path, warnings: Callable[[], list[str]]) -> None:
    write(path, [1], [2])
    path.parent.chmod(0o500)
    try:
        log = TokenLog(path, KIND)
        log.append([3])
        log.flush()
        assert [list(s) for s in log.load()] == [[1], [2], [3]]
        assert len(warnings()) == 1
    finally:
        path.parent.chmod(0o700)
    log.flush()
    assert read(path) == [[1], [2], [3]], "once it can be written, it is"


@POSIX
def test_a_full_disk(path: Path, warnings: Callable[[], list[str]]) -> None:
    import resource

    log = write(path, [1], cap=10_000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, limits[1]))
    try:
        log.append([2] * 4000)
        log.append([3] * 4000)
        log.flush()
        assert [each[0] for each in log.load()] == [1, 2, 3]
        assert read(path) == [[1]]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    log.append([4])
    log.flush()
    assert [each[0] for each in read(path)] == [1, 2, 3, 4]
    assert len(warnings()) == 1


def test_a_process_that_holds_the_file_for_ever(
    path: Path, monkeypatch: pytest.MonkeyPatch, warnings: Callable[[], list[str]]
) -> None:
    log = write(path, [1])
    monkeypatch.setattr(token_log, "PATIENCE", 0.02)
    log.append([2])
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
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
        log.flush()
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o600
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO documents VALUES ('a')")
        journal = path.with_name(f"{path.name}-journal")
        assert journal.stat().st_mode & 0o777 == 0o600
    for folder in (path.parent, path.parent.parent):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_workspaces_never_share(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    assert workspace_file(a, tmp_path) != workspace_file(b, tmp_path)
    assert workspace_file(a / "x/..", tmp_path) == workspace_file(a, tmp_path)
    assert workspace_file(a, tmp_path).parent == tmp_path
    assert workspace_file(a).is_absolute()


@pytest.mark.parametrize("language", ["../../etc/passwd", "a/b", "a\\b", "con", "x" * 500, "sprache:ä", "\ud800", "."])
def test_language_names_are_no_paths(language: str) -> None:
    stem = language_stem(language)
    assert len(stem) < 80
    assert stem.isascii()
    assert not set(stem) & set("/\\.:")


def test_clear_forgets_one_workspace(tmp_path: Path) -> None:
    base, a, b = tmp_path / "base", tmp_path / "a", tmp_path / "b"
    logs = {folder: write(workspace_file(folder, base), [1, 2]) for folder in (a, b)}
    for folder in (a, b):
        note(folder, folder / "x.py", base)
    assert noted(a, a / "x.py", base)
    assert not noted(a, a / "y.py", base)
    clear(a, base)
    assert read(logs[a].path) == []
    assert not noted(a, a / "x.py", base)
    assert read(logs[b].path) == [[1, 2]]
    assert noted(b, b / "x.py", base)
    logs[a].append([3])
    logs[a].flush()
    assert read(logs[a].path) == [[3]], "nothing comes back"
    clear(a, base)
    clear(a, base)
    assert list(base.iterdir()) == [logs[b].path]


def test_what_was_noted_in_a_file_that_is_damaged_counts_as_kept(tmp_path: Path) -> None:
    note(tmp_path, tmp_path / "x.py", tmp_path)
    workspace_file(tmp_path, tmp_path).write_bytes(b"\xff" * 5000)
    assert noted(tmp_path, tmp_path / "x.py", tmp_path)


def test_what_is_dropped_leaves_the_file(path: Path) -> None:
    log = write(path, [0x5EC2E7] * 50, cap=100)
    assert (0x5EC2E7).to_bytes(4, "little") in path.read_bytes()
    log.append([2] * 75)
    log.flush()
    assert (0x5EC2E7).to_bytes(4, "little") not in path.read_bytes()


def test_clear_says_what_cannot_be_deleted(tmp_path: Path) -> None:
    workspace_file(tmp_path, tmp_path).mkdir()
    with pytest.raises(CodespecError, match="cannot be deleted"):
        clear(tmp_path, tmp_path)


def test_logs_of_earlier_versions_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODESPEC_DATA", str(tmp_path))
    old = tmp_path / "ngrams/0/python-1.log"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"tokens")
    delete_old_logs()
    assert not old.parent.parent.exists()
    delete_old_logs()
