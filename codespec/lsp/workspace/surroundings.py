"""The context of a session's documents: snippets of other files for prompts, and the files that must not be shown."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from lsprotocol import types
from pygls.uris import to_fs_path

from codespec.completion.prompt.imports import LARGEST
from codespec.completion.prompt.other_files import Chooser, Ring, around, piece_spans, span, without_ends
from codespec.config_sections import ContextConfig
from codespec.languages import by_path
from codespec.lsp.workspace.documents import Document
from codespec.lsp.workspace.import_reader import ImportReader
from codespec.privacy.ignore_files import HOLD_S
from codespec.privacy.public_files import PublicFiles, public_parts
from codespec.privacy.secrets import holds_token
from codespec.protocols import Snippet

NEAR_LINES = 128
"""Lines around the cursor whose identifiers decide the relevance of other chunks."""
MOST_CHECKED = 1_000_000
"""Characters of a document that are searched for secrets."""
IMPORTS_EVERY_S = 10.0
"""Seconds between two readings of a document's imports while it is edited; opening and saving read them at once."""
RECHECK_S = 2.0
"""Seconds between two searches of a document that held a secret, while it is edited."""
CELL = "vscode-notebook-cell:"
"""How URIs of notebooks' cells begin; the path in one is the notebook's."""


def file_uri(uri: str) -> str:
    """The URI of the file that a document is; of a cell that of its notebook, whose cells are shown to each other."""
    return "file:" + uri[len(CELL) :].partition("#")[0] if uri.startswith(CELL) else uri


@dataclass(frozen=True)
class _Shown:
    """The snippets for a document, before and after those were left out that must not be shown."""

    imported: tuple[Snippet, ...]
    lately: tuple[Snippet, ...]
    at: float
    allowed: tuple[Snippet, ...]


@dataclass
class _Known:
    """The state of an open document.

    Attributes:
        file: the URI of the file that it is or, as a cell, is in.
        folder: the workspace folder that it lies in, empty for none.
        row: where it was edited or completed last.
        holds_token: whether its text holds a token or key.
        checked: when all of it was searched for them.
        edited: whether it has changed since its imports were read, at ``imports_read``.
    """

    document: Document
    file: str
    folder: str
    row: int = 0
    holds_token: bool = False
    checked: float = 0.0
    edited: bool = False
    imports_read: float = 0.0
    shown: _Shown | None = None


class Surroundings:
    """Collects the context of documents from their notifications. For the thread of the event loop.

    Args:
        clock: seconds.
        file_of: the URI of the file that a document is or, as a cell of a notebook, is in.
    """

    def __init__(self, clock: Callable[[], float] = monotonic, file_of: Callable[[str], str] = file_uri) -> None:
        self._clock = clock
        self.file_of = file_of
        self._settings = ContextConfig()
        self._ring = Ring(self._settings.ring_chunks)
        self._chooser = Chooser(self._ring, clock=clock)
        self._public = PublicFiles(clock)
        self._imports = ImportReader(PublicFiles(clock).may_show)
        self._known: dict[str, _Known] = {}
        self._last: _Known | None = None

    def use(self, settings: ContextConfig) -> None:
        """Follow these settings from now on."""
        self._settings = settings
        self._ring.resize(settings.ring_chunks if settings.enabled else 0)

    def opened(self, document: Document, folder: str) -> None:
        """A document was opened, and is most likely viewed from its start."""
        known = self._remember(document, folder)
        self._add(known)
        self._read_imports(known)

    def changed(self, document: Document, folder: str, changes: Sequence[types.TextDocumentContentChangeEvent]) -> None:
        """A document's text has changed; search the new part for secrets."""
        known = self._of(document, folder)
        known.edited = True
        change = changes[0] if len(changes) == 1 else None
        if not known.holds_token and isinstance(change, types.TextDocumentContentChangePartial):
            # A private key is told by two lines, with up to five lines of what it is encrypted with between them.
            first = max(0, document.locate(change.range.start)[0] - 7)
            last, _ = document.locate(types.Position(document.end_of_change(change)[0] + 7, 0))
            new = "".join(document.line(row) for row in range(first, last + 1))
            known.holds_token = holds_token(new[:MOST_CHECKED])
        elif not known.holds_token or self._clock() - known.checked > RECHECK_S:
            self._search(known)
        if known.holds_token:
            self._ring.remove(known.file)

    def visited(self, document: Document, row: int, folder: str) -> None:
        """The user works at a line of a document; the chunk around the previous position is put into the ring."""
        known, last = self._of(document, folder), self._last
        if last is not None and (last is not known or abs(last.row - row) > self._settings.chunk_lines // 2):
            self._add(last)
        known.row = row
        self._last = known
        if known.edited and self._clock() - known.imports_read > IMPORTS_EVERY_S:
            # The line that is being written is left out: what it says changes with every key.
            self._read_imports(known, without=row)

    def saved(self, document: Document, folder: str) -> None:
        """A document was saved; the chunk around its latest position is put into the ring."""
        known = self._of(document, folder)
        self._add(known)
        self._read_imports(known)

    def closed(self, uri: str) -> None:
        """A document was closed; the chunk around its latest position stays in the ring."""
        known = self._known.pop(uri, None)
        self._imports.forget(uri)
        if known is not None:
            self._ring.close(known.file)
            self._chooser.forget(known.file)
            self._add(known)
            if self._last is known:
                self._last = None

    def private(self, document: Document, folder: str) -> str:
        """Why a document must not be completed, nor learnt; empty where it may."""
        known = self._of(document, folder)
        path, place = _path(known.file), _resolved(folder)
        return self._public.why_private(known.file, path, place, self._holds_token(known))

    def holds_secret(self, uri: str) -> bool:
        """Whether a document that is open holds one itself, whatever the other cells of its notebook do."""
        known = self._known.get(uri)
        return known is not None and known.holds_token

    def may_show(self, uri: str, lines: Sequence[str], folder: str) -> bool:
        """Whether lines of a file, all of them, may be shown in prompts for other files of a workspace folder."""
        place, path = _resolved(folder), _path(self.file_of(uri))
        if place is None or path is None or not self._public.may_show(path, place):
            return False
        return bool(public_parts(path.name, lines, [range(len(lines))]))

    def context(self, document: Document, row: int, folder: str) -> tuple[Snippet, ...]:
        """Snippets of other files of the workspace folder for a prompt at a line of a document: signatures of its
        imports, then chunks that were worked on lately."""
        place = _resolved(folder)
        if not self._settings.enabled or place is None:
            return ()
        known, now = self._of(document, folder), self._clock()
        near = lambda: around(document.lines, row, NEAR_LINES)  # noqa: E731
        lately = self._chooser.choose(known.file, folder, row, near)
        imported = self._imports.found(document.uri) if self._settings.imports else ()
        shown = known.shown
        if shown is None or shown.imported is not imported or shown.lately is not lately or now - shown.at >= HOLD_S:
            # Asked again and again: files of patterns may have changed since these were found.
            allowed = (each for each in (*imported, *lately) if self._public.may_show(place / each.path, place))
            shown = known.shown = _Shown(imported, lately, now, tuple(allowed))
        return shown.allowed

    def _add(self, known: _Known) -> None:
        """Put the chunk around a document's latest position into the ring."""
        place, path = _resolved(known.folder), _path(known.file)
        if not self._settings.enabled or not self._settings.ring_chunks or place is None or path is None:
            return
        if self._holds_token(known) or not self._public.may_show(path, place):
            return
        name, count = path.relative_to(place).as_posix(), self._settings.chunk_lines
        lines = known.document.lines
        own, found = span(lines, known.row, count), piece_spans(lines, known.row, count)
        shown = public_parts(path.name, lines, [own, *found])
        if len(shown) <= len(found):  # what was shown before may have been a part of what is a secret now
            self._ring.remove(known.file)
        if own in shown:
            self._ring.add(known.file, known.folder, name, without_ends(lines, own))
        if known.document.uri in self._known:  # still open
            self._ring.open(
                known.file, known.folder, name, (without_ends(lines, each) for each in found if each in shown)
            )

    def _holds_token(self, known: _Known) -> bool:
        """Whether a document does, or another cell of the same notebook."""
        return known.holds_token or any(each.holds_token for each in self._known.values() if each.file == known.file)

    def _read_imports(self, known: _Known, without: int | None = None) -> None:
        document = known.document
        place, path = _resolved(known.folder), _path(known.file)
        known.edited, known.imports_read = False, self._clock()
        if document.length > LARGEST:
            return
        if not self._settings.enabled or not self._settings.imports or place is None or path is None:
            return
        language = document.language_id or by_path(document.path).id
        text = "".join(line for row, line in enumerate(document.lines) if row != without)
        self._imports.ask(document.uri, text, language, path, place)

    def _search(self, known: _Known) -> None:
        known.checked = self._clock()
        known.holds_token = holds_token(known.document.beginning(MOST_CHECKED))

    def _of(self, document: Document, folder: str) -> _Known:
        known = self._known.get(document.uri)
        if known is None or known.document is not document:
            known = self._remember(document, folder)
        known.folder = folder
        return known

    def _remember(self, document: Document, folder: str) -> _Known:
        known = self._known[document.uri] = _Known(document, self.file_of(document.uri), folder)
        self._search(known)
        if known.holds_token:
            self._ring.remove(known.file)
        return known


def _path(file: str) -> Path | None:
    """The real path of a file on the disk, links resolved; None where its URI names none there."""
    path = to_fs_path(file)
    return _resolved(path) if path else None


def _resolved(path: str) -> Path | None:
    """A path without links in it as they are now; None for none, and for what cannot be one."""
    try:
        return Path(os.path.realpath(path)) if path else None
    except (OSError, ValueError):
        return None
