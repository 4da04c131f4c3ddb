"""What a user's workspaces taught the drafts: a SQLite file for each, with segments of tokens.

It holds text of the user's, so only the user may read it, and no workspace sees another's.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import shutil
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from zlib import crc32

from codespec.paths import PATIENCE, data_folder, make_private
from codespec.protocols import CodespecError

_TABLES = (
    "CREATE TABLE IF NOT EXISTS segments (kind TEXT, tokens BLOB, sum INTEGER)",
    "CREATE TABLE IF NOT EXISTS documents (key TEXT PRIMARY KEY)",
)

_log = logging.getLogger(__name__)


def workspace_file(folder: Path, base: Path | None = None) -> Path:
    """The file of a workspace's folder, which its name does not tell; it need not exist.

    Args:
        base: instead of the user's data folder.
    """
    return (base or data_folder() / "learnt") / f"{_digest(os.path.normcase(folder.resolve()))}.sqlite"


def language_stem(language: str) -> str:
    """A file name for a language: that of no other one, as c++ and c# have to have."""
    name = re.sub(r"[^a-z0-9_-]+", "_", language)[:32]
    return name if name == language else f"{name}-{_digest(language)[:8]}"


def note(folder: Path, document: Path, base: Path | None = None) -> None:
    """Remember, also for later sessions, that something of a document of a workspace is on the disk.

    Raises:
        OSError: it cannot be written.
    """
    with _opened(workspace_file(folder, base), "FULL") as connection:
        connection.execute("INSERT OR IGNORE INTO documents VALUES (?)", (_document_key(document),))


def noted(folder: Path, document: Path, base: Path | None = None) -> bool:
    """Whether something of a document was noted since the workspace was last forgotten; also if that cannot be read."""
    path = workspace_file(folder, base)
    try:
        if not path.exists():
            return False
        with _opened(path) as connection:
            query = "SELECT count(*) FROM documents WHERE key = ?"
            return bool(connection.execute(query, (_document_key(document),)).fetchone()[0])
    except OSError:
        return True


def clear(folder: Path, base: Path | None = None) -> None:
    """Forget all that a workspace taught; an open ``TokenLog`` of it starts anew.

    Raises:
        CodespecError: a file cannot be deleted.
    """
    path = workspace_file(folder, base)
    try:
        _delete(path)
    except OSError as error:
        raise CodespecError(f"{path}: cannot be deleted ({error.strerror}); close other editors, try again") from error
    delete_old_logs()


def delete_old_logs() -> None:
    """Delete what earlier versions kept instead."""
    shutil.rmtree(data_folder() / "ngrams", ignore_errors=True)


class TokenLog:
    """Segments of tokens in a workspace's file, the oldest of which are forgotten.

    For one thread at a time; any number of processes may use the file. One that cannot be read or written is never an
    error: a message is logged once and the tokens are kept in memory, as many as ``cap``. A damaged one is begun anew.

    Args:
        path: ``workspace_file``; it and its folder need not exist.
        kind: what the token ids mean and whose they are: vocabulary and language. Logs of other kinds are apart.
        cap: tokens of this kind that the file may hold, at least 4; beyond them the oldest are dropped until a quarter
            is free again.
    """

    def __init__(self, path: Path, kind: str, cap: int = 262_144) -> None:
        self.path = path
        self._kind, self._cap, self._keep = kind, cap, cap * 3 // 4
        self._pending: list[array[int]] = []
        self._complained = False

    def load(self) -> list[array[int]]:
        """Every segment, oldest first, those not yet written included."""
        segments: list[array[int]] = []
        try:
            if self.path.exists():  # else nothing is made, not even a folder
                with _opened(self.path) as connection:
                    segments = self._read(connection)
        except OSError as error:
            self._complain(error)
        return [*segments, *self._pending]

    def append(self, tokens: Sequence[int]) -> None:
        """Add a segment; ``flush`` writes it."""
        if len(tokens):
            self._pending.append(array("i", tokens[-self._keep :]))

    def flush(self) -> None:
        """Write what was appended since the last call to the file."""
        if not self._pending:
            return
        try:
            with _opened(self.path) as connection:
                self._write(connection, self._pending)
                count = "SELECT total(length(tokens)) / 4 FROM segments WHERE kind = ?"
                if connection.execute(count, (self._kind,)).fetchone()[0] > self._cap:
                    kept = _newest(self._read(connection), self._keep)
                    connection.execute("DELETE FROM segments WHERE kind = ?", (self._kind,))
                    self._write(connection, kept)
            self._pending = []
        except OSError as error:
            self._complain(error)
            self._pending = _newest(self._pending, self._cap)

    def _read(self, connection: sqlite3.Connection) -> list[array[int]]:
        query = "SELECT tokens, sum FROM segments WHERE kind = ? ORDER BY rowid"
        segments = []
        for data, expected in connection.execute(query, (self._kind,)):
            if not isinstance(data, bytes) or self._sum(data) != expected:
                raise sqlite3.DatabaseError("a checksum is wrong")
            segments.append(array("i", data))
        return segments

    def _write(self, connection: sqlite3.Connection, segments: Iterable[array[int]]) -> None:
        rows = [(self._kind, data, self._sum(data)) for data in map(array.tobytes, segments)]
        connection.executemany("INSERT INTO segments VALUES (?, ?, ?)", rows)

    def _sum(self, data: bytes) -> int:
        return crc32(data, crc32(self._kind.encode()))

    def _complain(self, error: OSError) -> None:
        if not self._complained:
            self._complained = True
            _log.warning("what is learnt stays in memory for now: %s", error)


@contextlib.contextmanager
def _opened(path: Path, synchronous: str = "OFF") -> Iterator[sqlite3.Connection]:
    """A transaction on the file at ``path``, which is made if need be, and deleted if it is damaged.

    Args:
        synchronous: of SQLite. To wait for the disk takes 10 ms in which nothing is completed, where a crash of the
            machine would cost but what was learnt.

    Raises:
        OSError: it cannot be used, or was damaged.
    """
    make_private(path.parent)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # the journal gets the mode of the file
    try:
        own = sqlite3.connect(path, timeout=PATIENCE, isolation_level="IMMEDIATE")
        with contextlib.closing(own), own as connection:
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            connection.execute("PRAGMA secure_delete = ON")  # what is forgotten leaves the file
            for table in _TABLES:
                connection.execute(table)
            yield connection
    except sqlite3.OperationalError as error:
        raise OSError(f"{path}: {error}") from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # messages may quote what is damaged
        _delete(path)
        _log.warning("%s was damaged (%s) and is begun anew", path, error)
        raise OSError(f"{path}: {error}") from error


def _delete(path: Path) -> None:
    for each in (path, path.with_name(f"{path.name}-journal")):
        each.unlink(missing_ok=True)


def _newest(segments: Sequence[array[int]], room: int) -> list[array[int]]:
    """The last segments, ``room`` tokens of them at most, each only where it comes last; oldest first."""
    kept: dict[bytes, array[int]] = {}
    for segment in reversed(segments):
        if room > 0 and (content := segment.tobytes()) not in kept:
            kept[content] = segment[-room:]
            room -= len(segment)
    return [*kept.values()][::-1]


def _document_key(document: Path) -> str:
    return _digest(os.path.normcase(os.path.realpath(document)))


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
