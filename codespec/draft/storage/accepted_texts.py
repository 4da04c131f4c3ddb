"""Completions that the user accepted, kept as text to train drafts on; only where the user has asked for that.

A file for each language, of all workspaces: one JSON object a line, the oldest first. They hold text of the user's, so
only the user may read them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from codespec.draft.storage.token_log import language_stem, workspace_key
from codespec.draft.storage.token_log_file import append, locked, replace
from codespec.line_ends import line_feeds
from codespec.paths import data_folder
from codespec.protocols import CodespecError

MOST_BYTES = 64 << 20
"""Of one file; beyond them the oldest are dropped until a quarter is free again."""

PREFIX, SUFFIX, TEXT = 6_144, 3_072, 8_192
"""Characters that are kept before and after an accepted text, and of the text itself."""


@dataclass(frozen=True)
class AcceptedText:
    """A completion that was accepted, and the text around it.

    Attributes:
        time: in seconds since 1970.
        offer: tells completions apart; of one that was accepted bit by bit each record holds all that was so far.
        workspace: ``workspace_key`` of its folder.
        path: the name of the file.
        prefix, suffix: what stood around it, whole lines of that.
    """

    time: float
    offer: str
    workspace: str
    language: str
    path: str
    prefix: str
    text: str
    suffix: str


def around(text: str, offset: int) -> tuple[str, str]:
    """The text that is kept before and after an offset: the nearest whole lines, with ``\\n`` as their ends."""
    before, behind = line_feeds(text[:offset][-2 * PREFIX :]), line_feeds(text[offset:][: 2 * SUFFIX])
    if len(before) > PREFIX:
        before = before[-PREFIX:]
        before = before[before.find("\n") + 1 :]
    if len(behind) > SUFFIX:
        behind = behind[:SUFFIX]
        behind = behind[: behind.rfind("\n") + 1] or behind
    return before, behind


def accepted_folder() -> Path:
    """The folder of the files; it need not exist."""
    return data_folder() / "accepted"


def training_folder() -> Path:
    """The folder in which training keeps what it makes of them while it runs; it need not exist."""
    return data_folder() / "training" / "accepted"


def keep(record: AcceptedText, folder: Path | None = None, most_bytes: int = MOST_BYTES) -> None:
    """Add a record. Several processes may do so at a time; a crash leaves the records before it as they were.

    Args:
        folder: instead of ``accepted_folder``.

    Raises:
        OSError: it cannot be written.
        UnicodeEncodeError: a text holds half a character.
    """
    line = json.dumps(asdict(record), ensure_ascii=False).encode() + b"\n"
    path = _file(record.language, folder)
    with locked(path.with_suffix(".lock")):
        size = path.stat().st_size if path.exists() else 0
        if not size or size + len(line) > most_bytes:
            replace(path, [*_newest(path, most_bytes * 3 // 4 - len(line)), line])
        else:
            append(path, line if _ends_with_line(path) else b"\n" + line)


def load(languages: Iterable[str], folder: Path | None = None) -> list[AcceptedText]:
    """All that is kept of some languages, the oldest first; what is damaged is left out.

    Raises:
        CodespecError: a file cannot be read.
    """
    found: dict[str, AcceptedText] = {}
    for language in languages:
        for _, record in _records(_file(language, folder)):
            found.pop(record.offer, None)  # a part of it
            found[record.offer] = record
    return sorted(found.values(), key=lambda each: each.time)


def languages_kept(folder: Path | None = None) -> dict[str, Path]:
    """The languages of which something is kept, and their files.

    Raises:
        CodespecError: a file cannot be read.
    """
    paths = sorted((folder or accepted_folder()).glob("*.jsonl"))
    first = {path: next((record for _, record in _records(path)), None) for path in paths}
    return {record.language: path for path, record in first.items() if record is not None}


def forget(workspace: Path | None = None, folder: Path | None = None, path: str | None = None) -> None:
    """Delete what was accepted in a workspace, in all of them if it is None, and what training has made of it so far.

    Args:
        path: the name of a file: only what was accepted in files of that name.

    Raises:
        CodespecError: a file cannot be changed or deleted.
    """
    key = workspace_key(workspace) if workspace is not None else None
    if folder is None and training_folder().exists():
        shutil.rmtree(training_folder(), ignore_errors=True)
    for kept in sorted((folder or accepted_folder()).glob("*.jsonl")):
        try:
            with locked(kept.with_suffix(".lock")):
                left = [
                    line
                    for line, each in _records(kept)
                    if (key is not None and each.workspace != key) or (path is not None and each.path != path)
                ]
                if left:
                    replace(kept, left)
                else:
                    kept.unlink(missing_ok=True)
        except OSError as error:
            raise CodespecError(f"{kept}: what was accepted cannot be deleted ({error.strerror or error})") from error


def _file(language: str, folder: Path | None) -> Path:
    return (folder or accepted_folder()) / f"{language_stem(language)}.jsonl"


def _records(path: Path) -> Iterator[tuple[bytes, AcceptedText]]:
    try:
        with path.open("rb") as file:
            for line in file:
                record = _parsed(line)
                if record is not None:
                    yield line, record
    except FileNotFoundError:
        return
    except OSError as error:
        raise CodespecError(f"{path}: cannot be read ({error.strerror})") from error


def _parsed(line: bytes) -> AcceptedText | None:
    """None for what a crash has cut off, and whatever else is no record."""
    if not line.endswith(b"\n"):
        return None
    try:
        record = AcceptedText(**json.loads(line))
    except (ValueError, TypeError, RecursionError):
        return None
    texts = (getattr(record, each.name) for each in fields(record) if each.name != "time")
    return record if type(record.time) in (int, float) and all(type(each) is str for each in texts) else None


def _ends_with_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"


def _newest(path: Path, room: int) -> Iterator[bytes]:
    """Whole lines at the end of a file, ``room`` bytes of them at most."""
    if path.exists():
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - max(0, room)))
            if size > room:
                file.readline()  # its beginning is left out
            yield from (line for line in file if line.endswith(b"\n"))
