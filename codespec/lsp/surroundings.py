"""What a session knows around a document: places in other files that a prompt may show, and what it must not show."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from time import monotonic

from lsprotocol import types
from pygls.uris import to_fs_path

from codespec.completion.context import Chooser, Chunk, Ring, around
from codespec.config import ContextConfig
from codespec.ignore import GIT, OWN, IgnoreFiles
from codespec.lsp.documents import Document
from codespec.privacy import has_secret_name, holds_token, is_secret
from codespec.protocols import Snippet

NEAR_LINES = 128
"""Around the cursor, whose identifiers say what is relevant."""
MOST_CHECKED = 1_000_000
"""Characters of a document that are searched for secrets."""
RECHECK_S = 2.0
"""How often a document that held a secret is searched again while it is edited."""
PATHS = 4096
"""Files and folders whose places on the disk are kept."""


@dataclass
class _Known:
    """What is remembered of an open document.

    Attributes:
        folder: the workspace folder that it lies in, empty for none.
        row: where it was edited or completed last.
        holds_token: whether its text does.
        checked: when all of it was searched.
    """

    document: Document
    folder: str
    row: int = 0
    holds_token: bool = False
    checked: float = 0.0


class Surroundings:
    """Fed with what happens to documents; in the thread of the event loop.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._settings = ContextConfig()
        self._ring = Ring(self._settings.ring_chunks)
        self._chooser = Chooser(self._ring, clock=clock)
        self._git, self._own = IgnoreFiles(GIT, clock), IgnoreFiles(OWN, clock)
        self._known: dict[str, _Known] = {}
        self._last: _Known | None = None

    def use(self, settings: ContextConfig) -> None:
        """Follow these settings from now on."""
        self._settings = settings
        self._ring.resize(settings.ring_chunks if settings.enabled else 0)

    def opened(self, document: Document, folder: str) -> None:
        """A document is there, most likely looked at from its start."""
        known = self._known[document.uri] = _Known(document, folder)
        self._search(known)
        self._add(known)

    def changed(self, document: Document, folder: str, changes: Sequence[types.TextDocumentContentChangeEvent]) -> None:
        """A document's text is another one; look for secrets in what is new."""
        known = self._of(document, folder)
        change = changes[0] if len(changes) == 1 else None
        if not known.holds_token and isinstance(change, types.TextDocumentContentChangePartial):
            # A private key is told by two lines.
            first = max(0, document.locate(change.range.start)[0] - 2)
            last, _ = document.locate(types.Position(document.behind(change)[0] + 2, 0))
            new = "".join(document.line(row) for row in range(first, last + 1))
            known.holds_token = holds_token(new[:MOST_CHECKED])
        elif not known.holds_token or self._clock() - known.checked > RECHECK_S:
            self._search(known)

    def visited(self, document: Document, row: int, folder: str) -> None:
        """Somebody works at a line of a document; what was left for that is put into the ring."""
        known, last = self._of(document, folder), self._last
        if last is not None and (last is not known or abs(last.row - row) > self._settings.chunk_lines // 2):
            self._add(last)
        known.row = row
        self._last = known

    def saved(self, document: Document, folder: str) -> None:
        """A document was written; the place where it was worked on is one to remember."""
        self._add(self._of(document, folder))

    def closed(self, uri: str) -> None:
        """A document is not open any more; what was edited last in it is still to be known."""
        known = self._known.pop(uri, None)
        self._chooser.forget(uri)
        if known is not None:
            self._add(known)
            if self._last is known:
                self._last = None

    def private(self, document: Document, folder: str) -> str:
        """Why a document must not be completed, nor learnt; empty where it may."""
        path = self._path(document.uri)
        if has_secret_name(document.uri) or (path is not None and has_secret_name(path.as_posix())):
            return "files of that name hold secrets"
        if self._of(document, folder).holds_token:
            return "it holds a private key, an access token or a password"
        if path is not None and self._own.excludes(path, _resolved(folder)):
            return f"{OWN} excludes it"
        return ""

    def context(self, document: Document, row: int, folder: str) -> tuple[Snippet, ...]:
        """What a prompt for a line of a document may show of other files of its workspace folder."""
        if not self._settings.enabled or not folder:
            return ()
        near = lambda: around(document.lines, row, NEAR_LINES)  # noqa: E731
        return tuple(self._chooser.choose(document.uri, folder, row, near, self._may_show))

    def _add(self, known: _Known) -> None:
        """Put the place where a document was worked on last into the ring."""
        place, path = _resolved(known.folder), self._path(known.document.uri)
        if not self._settings.enabled or not self._settings.ring_chunks or place is None or path is None:
            return
        if not self._is_shared(path, known.folder):
            return
        lines = around(known.document.lines, known.row, self._settings.chunk_lines)
        if not is_secret(path.name, "\n".join(lines)):
            self._ring.add(known.document.uri, known.folder, path.relative_to(place).as_posix(), lines)

    def _may_show(self, chunk: Chunk) -> bool:
        """Whether that still holds; files of patterns may have changed since."""
        path = self._path(chunk.document)
        return path is not None and self._is_shared(path, chunk.group)

    def _is_shared(self, path: Path, folder: str) -> bool:
        """Whether text of a file may be shown for another one in a workspace folder."""
        place = _resolved(folder)
        if place is None or not path.is_relative_to(place) or has_secret_name(path.as_posix()):
            return False
        return not self._git.excludes(path, place) and not self._own.excludes(path, place)

    def _search(self, known: _Known) -> None:
        known.checked = self._clock()
        known.holds_token = holds_token(known.document.source[:MOST_CHECKED])

    def _of(self, document: Document, folder: str) -> _Known:
        known = self._known.get(document.uri)
        if known is None or known.document is not document:
            known = self._known[document.uri] = _Known(document, folder)
            self._search(known)
        known.folder = folder
        return known

    def _path(self, uri: str) -> Path | None:
        """Where a document really lies on the disk, if it is a file there."""
        path = to_fs_path(uri) if uri.startswith("file:") else None
        return _resolved(path) if path else None


@lru_cache(PATHS)
def _resolved(path: str) -> Path | None:
    """A path without links in it; None for none, and for what cannot be one."""
    try:
        return Path(os.path.realpath(path)) if path else None
    except (OSError, ValueError):
        return None
