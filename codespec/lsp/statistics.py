"""Counts of what becomes of completions, by language, on this machine: shown, accepted, and how much stays in place.

Counts only, no text; nothing is ever sent anywhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from codespec.cache_files import set_aside
from codespec.draft.storage.token_log_file import locked, replace
from codespec.lsp.workspace.documents import Mark
from codespec.paths import data_folder

if TYPE_CHECKING:
    from codespec.lsp.workspace.documents import Document

VERSION = 1
FILE_NAME = "statistics.json"
CHECKS_S = (30.0, 300.0)
"""Seconds after an acceptance at which the retained part of the text is measured."""
SAVE_EVERY_S = 60.0

MOST_WATCHED = 200
"""Accepted completions that are watched at a time; beyond that the oldest are measured early."""
MOST_CHARACTERS, MOST_AROUND = 1_000, 6_000
"""Characters of an accepted text that are searched for, and of the text around its position that are searched; in a
longer one it counts only unchanged."""
SLACK = 8
"""Lines around its position in which a text is searched."""
_LARGEST = 1 << 20

logger = logging.getLogger(__name__)


@dataclass
class Counts:
    """The counts of one language.

    Attributes:
        accepted_partly: completions of which only a beginning was accepted.
        checked_30s, checked_5min: accepted ones whose text was measured so long afterwards, or earlier when their
            document was closed.
        retained_30s, retained_5min: the sum of the shares of their text that were still there.
        edits_shown, edits_applied, edits_rejected: next edits that were answered, applied and dropped.
        edits_reverted: applied ones that the user has taken back within 30 seconds.
    """

    shown: int = 0
    accepted: int = 0
    accepted_partly: int = 0
    rejected: int = 0
    checked_30s: int = 0
    retained_30s: float = 0.0
    checked_5min: int = 0
    retained_5min: float = 0.0
    edits_shown: int = 0
    edits_applied: int = 0
    edits_rejected: int = 0
    edits_reverted: int = 0

    def add(self, other: Counts) -> None:
        """Add other counts to these."""
        for each in fields(self):
            setattr(self, each.name, round(getattr(self, each.name) + getattr(other, each.name), 4))


_CHECKS = (("checked_30s", "retained_30s"), ("checked_5min", "retained_5min"))


@dataclass(eq=False)
class Showing:
    """A completion that was counted as shown, with its alternatives, and its outcome."""

    uri: str
    row: int
    language: str
    texts: tuple[str, ...]
    state: Literal["shown", "partly", "accepted", "rejected"] = "shown"


@dataclass(eq=False)
class _Watch:
    """An accepted text whose retained part is measured later."""

    document: Document
    mark: Mark
    language: str
    text: str
    checked: int = 0
    timers: list[asyncio.TimerHandle] = field(default_factory=list)


class UsageStatistics:
    """The counts of this session, and the file with those of all sessions.

    Args:
        document: returns an open document by its URI.
        path: of the file; None is the one in the user's data folder.
        checks_s: seconds after an acceptance.
    """

    def __init__(
        self,
        document: Callable[[str], Document | None],
        path: Path | None = None,
        checks_s: tuple[float, float] = CHECKS_S,
    ) -> None:
        self.enabled = True
        self._document = document
        self._path = path
        self._checks_s = checks_s
        self._fresh: dict[str, Counts] = {}
        self._watched: dict[Showing, _Watch] = {}

    def shown(self, uri: str, row: int, language: str, texts: Sequence[str]) -> Showing:
        """A completion and its alternatives are shown at a row of a document."""
        if self.enabled:
            self._of(language).shown += 1
        return Showing(uri, row, language, tuple(texts))

    def accepted(self, showing: Showing, text: str, length: int) -> None:
        """The first ``length`` characters of ``text``, an alternative or what was left of one, were accepted."""
        if not self.enabled:
            return
        counts = self._of(showing.language)
        if length < len(text):
            if showing.state == "shown":
                showing.state = "partly"
                counts.accepted_partly += 1
        elif showing.state != "accepted":
            counts.accepted_partly -= showing.state == "partly"
            showing.state = "accepted"
            counts.accepted += 1
        whole = next((each for each in showing.texts if each.endswith(text)), text)
        self._watch(showing, whole[: len(whole) - len(text) + length])

    def rejected(self, showing: Showing) -> None:
        """Count a completion that the user dismissed."""
        if self.enabled and showing.state == "shown":
            showing.state = "rejected"
            self._of(showing.language).rejected += 1

    def count(self, language: str, name: str) -> None:
        """Count one more of what is called ``name``, a field of ``Counts``."""
        if self.enabled:
            counts = self._of(language)
            setattr(counts, name, getattr(counts, name) + 1)

    def closed(self, uri: str) -> None:
        """Measure the accepted texts of a document that is about to be closed."""
        for showing in [each for each in self._watched if each.uri == uri]:
            self._end(showing)

    def finish(self) -> None:
        """Measure and save everything at the end of the session."""
        for showing in list(self._watched):
            self._end(showing)
        self.save()

    def read(self) -> dict[str, dict[str, Any]]:
        """All counts so far, this session's included, by language."""
        with contextlib.suppress(OSError):
            totals = _read(self._file())
            _add(totals, self._fresh)
            return {language: asdict(each) for language, each in sorted(totals.items())}
        return {}

    def save(self) -> None:
        """Add this session's counts to the file. One that is damaged is set aside."""
        fresh, self._fresh = self._fresh, {}
        if not fresh:
            return
        path = self._file()
        try:
            with locked(path.with_suffix(".lock")):
                totals = _read(path)
                _add(totals, fresh)
                body = {"version": VERSION, "languages": {name: asdict(each) for name, each in totals.items()}}
                replace(path, [json.dumps(body, indent=1).encode(), b"\n"])
        except OSError as error:
            logger.warning("%s: statistics are not kept: %s", path, error)
            _add(self._fresh, fresh)

    async def keep_saving(self) -> None:
        """Save every minute, until cancelled."""
        while True:
            await asyncio.sleep(SAVE_EVERY_S)
            await asyncio.to_thread(self.save)

    def _of(self, language: str) -> Counts:
        return self._fresh.setdefault(language, Counts())

    def _file(self) -> Path:
        return self._path or data_folder() / FILE_NAME

    def _watch(self, showing: Showing, text: str) -> None:
        """Schedule the measurement of an accepted text; a longer part of the same completion replaces a shorter one."""
        document = self._document(showing.uri)
        if document is None or not text.strip():
            return
        old = self._watched.pop(showing, None)
        if old is not None:
            self._drop(old)
        if len(self._watched) >= MOST_WATCHED:
            self._end(next(iter(self._watched)))
        mark = old.mark if old is not None else Mark(showing.row)
        watch = _Watch(document, mark, showing.language, text[:MOST_CHARACTERS])
        document.marks.append(mark)
        self._watched[showing] = watch
        loop = asyncio.get_running_loop()
        watch.timers = [loop.call_later(each, self._check, showing) for each in self._checks_s]

    def _check(self, showing: Showing) -> None:
        watch = self._watched.get(showing)
        if watch is None:
            return
        checked, retained = _CHECKS[watch.checked]
        counts = self._of(watch.language)
        setattr(counts, checked, getattr(counts, checked) + 1)
        setattr(counts, retained, getattr(counts, retained) + _share_left(watch))
        watch.checked += 1
        if watch.checked == len(_CHECKS):
            del self._watched[showing]
            self._drop(watch)

    def _end(self, showing: Showing) -> None:
        """Measure all scheduled texts now."""
        while showing in self._watched:
            self._check(showing)

    @staticmethod
    def _drop(watch: _Watch) -> None:
        for timer in watch.timers:
            timer.cancel()
        watch.document.marks.remove(watch.mark)


def _share_left(watch: _Watch) -> float:
    lines = watch.text.count("\n")
    around = watch.document.around(watch.mark.row, SLACK, lines + SLACK)
    return share_left(watch.text, around)


def share_left(text: str, around: str) -> float:
    """How much of ``text`` is still there: 1 less the edits that make it a part of ``around``, per character; 0 to 1.

    Sellers' algorithm (1980): the edit distance to the nearest part of a longer text. White space at line ends and line
    ends themselves do not count. O(len(text)) vector operations.
    """
    text, around = _plain(text), _plain(around)
    if text in around:
        return 1.0
    if len(around) > MOST_AROUND:
        return 0.0
    import numpy as np  # not before it is needed: a server that starts need not wait for it

    characters = np.frombuffer(around.encode("utf-32-le", "replace"), np.uint32)
    columns = np.arange(len(characters) + 1)
    row = np.zeros(len(characters) + 1, np.int64)
    for number, character in enumerate(text, 1):
        best = np.empty_like(row)
        best[0] = number
        best[1:] = np.minimum(row[:-1] + (characters != ord(character)), row[1:] + 1)
        # Characters of ``around`` that are skipped cost one each: a running minimum along the row.
        row = np.minimum.accumulate(best - columns) + columns
    return max(0.0, 1.0 - int(row.min()) / len(text))


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip()


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
    if not isinstance(data, Mapping) or not all(
        key in names and type(value) in (int, float) and math.isfinite(value) for key, value in data.items()
    ):
        raise ValueError("no counts")
    counts = Counts()
    for key, value in data.items():
        setattr(counts, key, type(getattr(counts, key))(value))
    return counts


def _add(totals: dict[str, Counts], more: Mapping[str, Counts]) -> None:
    for language, counts in more.items():
        totals.setdefault(language, Counts()).add(counts)
