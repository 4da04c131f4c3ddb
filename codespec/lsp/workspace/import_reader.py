"""Reads the signatures of modules that open documents import, in a thread of its own: no request waits for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from codespec.completion.prompt.imports import ImportedSignatures
from codespec.protocols import Snippet

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Document:
    """A document as it was when somebody asked."""

    text: str
    language: str
    path: Path
    folder: Path


class ImportReader:
    """Keeps the latest signatures found for each document. Every method returns at once.

    Args:
        may_show: whether the text of a file of a workspace folder may be shown; called in the thread.
    """

    def __init__(self, may_show: Callable[[Path, Path], bool]) -> None:
        self._signatures = ImportedSignatures(may_show)
        self._changed = threading.Condition()
        self._waiting: dict[str, _Document] = {}
        self._found: dict[str, tuple[Snippet, ...]] = {}
        self._open: set[str] = set()
        # A daemon, because a slow disk must not hold up the exit.
        self._thread = threading.Thread(target=self._run, name="imports", daemon=True)

    def ask(self, uri: str, text: str, language: str, path: Path, folder: Path) -> None:
        """Ask for the imports of a document; of several versions the newest is read."""
        with self._changed:
            self._open.add(uri)
            self._waiting[uri] = _Document(text, language, path, folder)
            if not self._thread.is_alive():
                self._thread.start()
            self._changed.notify()

    def found(self, uri: str) -> tuple[Snippet, ...]:
        """The latest signatures found; none before the first reading."""
        return self._found.get(uri, ())

    def forget(self, uri: str) -> None:
        """A document is not open any more."""
        with self._changed:
            self._open.discard(uri)
            self._waiting.pop(uri, None)
            self._found.pop(uri, None)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting))
                uri = next(iter(self._waiting))
                document = self._waiting.pop(uri)
            found: tuple[Snippet, ...] = ()
            try:
                found = self._signatures.snippets(document.text, document.language, document.path, document.folder)
            except Exception:
                logger.exception("imports could not be read")
            with self._changed:
                if uri in self._open:
                    self._found[uri] = found
