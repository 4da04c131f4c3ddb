"""Counts of what becomes of completions, by language, on this machine: shown, accepted, rejected.

Counts only, no text; nothing is ever sent anywhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from codespec.cache_files import set_aside
from codespec.paths import data_folder, locked, write_whole

VERSION = 2
FILE_NAME = "statistics.json"
SAVE_EVERY_S = 60.0
_LARGEST = 1 << 20

logger = logging.getLogger(__name__)


@dataclass
class Counts:
    """The counts of one language.

    Attributes:
        accepted_partly: completions of which only a beginning was accepted.
        edits_shown, edits_applied, edits_rejected: next edits that were answered, applied and dropped.
        edits_reverted: applied ones that the user has taken back within 30 seconds.
    """

    shown: int = 0
    accepted: int = 0
    accepted_partly: int = 0
    rejected: int = 0
    edits_shown: int = 0
    edits_applied: int = 0
    edits_rejected: int = 0
    edits_reverted: int = 0

    def add(self, other: Counts) -> None:
        """Add other counts to these."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass(eq=False)
class Showing:
    """A completion that was counted as shown, with its alternatives, and its outcome."""

    language: str
    texts: tuple[str, ...]
    state: Literal["shown", "partly", "accepted", "rejected"] = "shown"


class UsageStatistics:
    """The counts of this session, and the file with those of all sessions.

    Args:
        path: of the file; None is the one in the user's data folder.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.enabled = True
        self._path = path
        self._fresh: dict[str, Counts] = {}
        self._lock = threading.Lock()  # of what is fresh: threads read and save it

    def shown(self, language: str, texts: Sequence[str]) -> Showing:
        """A completion and its alternatives are shown."""
        if self.enabled:
            self._add_to(language, "shown")
        return Showing(language, tuple(texts))

    def accepted(self, showing: Showing, text: str, length: int) -> None:
        """The first ``length`` characters of ``text``, an alternative or what was left of one, were accepted."""
        if not self.enabled:
            return
        if length < len(text):
            if showing.state == "shown":
                showing.state = "partly"
                self._add_to(showing.language, "accepted_partly")
        elif showing.state != "accepted":
            if showing.state == "partly":
                self._add_to(showing.language, "accepted_partly", -1)
            showing.state = "accepted"
            self._add_to(showing.language, "accepted")

    def rejected(self, showing: Showing) -> None:
        """Count a completion that the user dismissed."""
        if self.enabled and showing.state == "shown":
            showing.state = "rejected"
            self._add_to(showing.language, "rejected")

    def count(self, language: str, name: str) -> None:
        """Count one more of what is called ``name``, a field of ``Counts``."""
        if self.enabled:
            self._add_to(language, name)

    def read(self) -> dict[str, dict[str, Any]]:
        """All counts so far, this session's included, by language."""
        with contextlib.suppress(OSError):
            totals = _read(self._file())
            with self._lock:
                _add(totals, self._fresh)
            return {language: asdict(each) for language, each in sorted(totals.items())}
        return {}

    def save(self) -> None:
        """Add this session's counts to the file. One that is damaged is set aside."""
        with self._lock:
            fresh, self._fresh = self._fresh, {}
        if not fresh:
            return
        path = self._file()
        try:
            with locked(path.with_suffix(".lock")):
                totals = _read(path)
                _add(totals, fresh)
                body = {"version": VERSION, "languages": {name: asdict(each) for name, each in totals.items()}}
                write_whole(path, [json.dumps(body, indent=1).encode(), b"\n"])
        except OSError as error:
            logger.warning("%s: statistics are not kept: %s", path, error)
            with self._lock:
                _add(self._fresh, fresh)

    async def keep_saving(self) -> None:
        """Save every minute, until cancelled."""
        while True:
            await asyncio.sleep(SAVE_EVERY_S)
            await asyncio.to_thread(self.save)

    def _add_to(self, language: str, name: str, number: int = 1) -> None:
        with self._lock:
            counts = self._fresh.setdefault(language, Counts())
            setattr(counts, name, getattr(counts, name) + number)

    def _file(self) -> Path:
        return self._path or data_folder() / FILE_NAME


def _read(path: Path) -> dict[str, Counts]:
    """The counts of a file; none where there is none, or where it is damaged and was set aside.

    Raises:
        OSError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST)
    except FileNotFoundError:
        return {}
    try:
        return _parsed(json.loads(content))
    except (ValueError, RecursionError) as error:
        set_aside(path, error, "counting starts anew", logger)
        return {}


def _parsed(data: Any) -> dict[str, Counts]:
    if not isinstance(data, dict) or data.get("version") != VERSION or not isinstance(data.get("languages"), dict):
        raise ValueError("no statistics of this version")
    return {str(language): _counts(counts) for language, counts in data["languages"].items()}


def _counts(data: Any) -> Counts:
    names = {each.name for each in fields(Counts)}
    if not isinstance(data, dict) or not all(key in names and type(value) is int for key, value in data.items()):
        raise ValueError("no counts")
    return Counts(**data)


def _add(totals: dict[str, Counts], more: Mapping[str, Counts]) -> None:
    for language, counts in more.items():
        totals.setdefault(language, Counts()).add(counts)
