"""What a user's workspaces taught the drafts: logs of tokens, one per workspace, language and vocabulary.

They hold text of the user's, so only the user may read them, and no workspace sees another's.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import shutil
from array import array
from collections.abc import Sequence
from pathlib import Path

from codespec.draft.storage.token_log_file import append, kind_of, locked, new_header, newest, parse, record, replace
from codespec.paths import data_folder
from codespec.protocols import CodespecError

_DOCUMENTS = "documents"  # a file beside the logs, with a digest of each document's path in a line

_log = logging.getLogger(__name__)


def workspace_log(folder: Path | None, language: str, vocabulary: str, base: Path | None = None) -> Path:
    """The file of the log of a workspace, a language and a vocabulary; it need not exist.

    Args:
        folder: of the workspace; None for documents outside any, which have a log of their own.
        language: an editor's name for the language.
        vocabulary: ``registry.vocabulary_hash``.
        base: instead of the user's data folder.
    """
    return _folder(folder, base) / f"{language_stem(language)}-{_digest(vocabulary.encode(), 8)}.log"


def language_stem(language: str) -> str:
    """A file name for a language: that of no other one, as c++ and c# have to have."""
    name = re.sub(r"[^a-z0-9_-]+", "_", language)[:32]
    return name if name == language else name + "-" + _digest(language.encode("utf-8", "surrogatepass"), 8)


def workspace_key(folder: Path) -> str:
    """A hash that stands for a workspace's folder in the names of files, and does not tell the folder."""
    return _digest(os.fsencode(os.path.normcase(folder.resolve())), 16)


def note(folder: Path, document: Path, base: Path | None = None) -> None:
    """Remember, also for later sessions, that something of a document of a workspace is on the disk.

    Raises:
        OSError: it cannot be written.
    """
    place = _folder(folder, base) / _DOCUMENTS
    with locked(place.with_suffix(".lock")):
        known = place.read_bytes() if place.exists() else b""
        replace(place, [known, f"{_document_key(document)}\n".encode()])


def noted(folder: Path, document: Path, base: Path | None = None) -> bool:
    """Whether something of a document was noted since the workspace was last forgotten; also if that cannot be read."""
    try:
        return _document_key(document) in (_folder(folder, base) / _DOCUMENTS).read_text("ascii", "replace").split()
    except FileNotFoundError:
        return False
    except OSError:
        return True


def clear(folder: Path | None, base: Path | None = None) -> None:
    """Forget all that a workspace taught; an open ``TokenLog`` of it starts anew.

    Raises:
        CodespecError: a file cannot be deleted.
    """
    place = _folder(folder, base)
    try:
        shutil.rmtree(place)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise CodespecError(f"{place}: cannot be deleted ({error.strerror}); close other editors, try again") from error


def _folder(folder: Path | None, base: Path | None) -> Path:
    root = base or data_folder() / "ngrams"
    if folder is None:
        return root / "no-workspace"
    return root / workspace_key(folder)


def _document_key(document: Path) -> str:
    return _digest(os.fsencode(os.path.normcase(os.path.realpath(document))), 16)


def _digest(data: bytes, length: int) -> str:
    return hashlib.sha256(data).hexdigest()[:length]


class TokenLog:
    """An append-only file of token segments that forgets the oldest ones.

    For one thread at a time; any number of processes may have the same file open. A file that cannot be read or
    written is never an error: a message is logged once and the tokens are kept in memory, as many as ``cap``.

    Args:
        path: of the file; it and its folder need not exist.
        vocabulary: a hash (letters and digits) of what the token ids mean; a file of another one is set aside.
        cap: tokens that the file may hold; beyond them the oldest are dropped until a quarter is free again.

    Raises:
        ValueError: ``vocabulary`` is no hash, or ``cap`` is too small.
    """

    def __init__(self, path: Path, vocabulary: str, cap: int = 262_144) -> None:
        if not re.fullmatch(r"[0-9A-Za-z]+", vocabulary):
            raise ValueError(f"{vocabulary!r} is not the hash of a vocabulary")
        if cap < 4:
            raise ValueError(f"a log of {cap} tokens")
        self.path = path
        self._vocabulary = vocabulary
        self._cap = cap
        self._pending: list[array[int]] = []
        self._complained = False
        # What is known of the file: its header (empty: there is no file), whole records up to `_end`, their tokens.
        self._header = b""
        self._end = 0
        self._tokens = 0

    def load(self) -> list[array[int]]:
        """Every segment, oldest first, those not yet written included; a damaged file is mended."""
        segments: list[array[int]] = []
        try:
            if self.path.exists():  # else nothing is made, not even a folder
                with locked(self._lock):
                    self._header = b""  # look at all of it
                    segments = self._see_new()
        except OSError as error:
            self._complain(error)
            segments = self._readable()
        return [*segments, *self._pending]

    def append(self, tokens: Sequence[int]) -> None:
        """Add a segment; ``flush`` writes it."""
        if len(tokens):
            self._pending.append(array("i", tokens[-self._keep :]))

    def flush(self) -> None:
        """Write what was appended."""
        if not self._pending:
            return
        try:
            with locked(self._lock):
                self._see_new()
                self._write(self._pending)
            self._pending = []
        except OSError as error:
            self._complain(error)
            self._pending = newest(self._pending, self._cap)

    def close(self) -> None:
        """``flush``; the log may be used again."""
        self.flush()

    @property
    def _lock(self) -> Path:
        return self.path.with_suffix(".lock")

    @property
    def _keep(self) -> int:
        return self._cap * 3 // 4

    def _see_new(self) -> list[array[int]]:
        """The segments beyond those known, of all if the file is not the one that is known; mends it.

        The lock is held.
        """
        header, data = self._read()
        if kind_of(header, self._vocabulary) != "ours":
            self._header = b""
            self._replaceable(header)
            return []
        if header != self._header:
            self._header, self._end, self._tokens = header, len(header), 0
        found = parse(data)
        if found.damaged:
            return self._mend()
        self._end += found.size
        self._tokens += sum(map(len, found.segments))
        if found.size < len(data):  # a crash while appending
            os.truncate(self.path, self._end)
        return found.segments

    def _read(self) -> tuple[bytes, bytes]:
        """The header of the file, empty if there is none, and the bytes after what is known."""
        try:
            with self.path.open("rb") as file:
                header = file.read(len(new_header(self._vocabulary)))
                if header == self._header and self._end <= os.fstat(file.fileno()).st_size:
                    file.seek(self._end)
                else:
                    self._header = b""
                return header, file.read()
        except FileNotFoundError:
            return b"", b""

    def _replaceable(self, header: bytes) -> None:
        """Set a file aside that is none of ours; one whose very header was cut off holds nothing."""
        kind = kind_of(header, self._vocabulary)
        if kind == "other":
            self._set_aside(".old", "is of another vocabulary or version")
        elif kind == "damaged":
            self._set_aside(".damaged", "is damaged")

    def _mend(self) -> list[array[int]]:
        """Set a damaged file aside and begin a new one with the records before the damage; all segments."""
        segments = self._readable()
        self._set_aside(".damaged", f"is damaged after {sum(map(len, segments)):,} tokens")
        self._renew(segments)
        return segments

    def _set_aside(self, suffix: str, reason: str) -> None:
        aside = self.path.with_suffix(suffix)
        self.path.replace(aside)
        self._header = b""
        _log.warning("%s %s; set aside as %s", self.path, reason, aside.name)

    def _readable(self) -> list[array[int]]:
        """All whole segments of the file as it is."""
        with contextlib.suppress(OSError), self.path.open("rb") as file:
            header = file.read(len(new_header(self._vocabulary)))
            if kind_of(header, self._vocabulary) == "ours":
                return parse(file.read()).segments
        return []

    def _write(self, segments: list[array[int]]) -> None:
        """Append, or write anew what is newest. The lock is held and everything in the file is known."""
        added = sum(map(len, segments))
        if not self._header or self._tokens + added > self._cap:
            self._renew([*(self._readable() if self._header else ()), *segments])
            return
        data = b"".join(map(record, segments))
        append(self.path, data)
        self._end += len(data)
        self._tokens += added

    def _renew(self, segments: list[array[int]]) -> None:
        if sum(map(len, segments)) > self._cap:
            segments = newest(segments, self._keep)
        header, records = new_header(self._vocabulary), b"".join(map(record, segments))
        replace(self.path, (header, records))
        self._header, self._end, self._tokens = header, len(header) + len(records), sum(map(len, segments))

    def _complain(self, error: OSError) -> None:
        if not self._complained:
            self._complained = True
            _log.warning("%s: what is learnt stays in memory for now: %s", self.path, error)
