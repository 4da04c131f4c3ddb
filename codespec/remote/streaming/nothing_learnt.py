"""The n-grams of an engine that drafts by itself: none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from codespec.draft.ngram_store import NgramStore, WorkspaceNgrams


class _Nothing(WorkspaceNgrams):
    """Learns nothing."""

    def document(self, key: str, tokens: Sequence[int], persist: bool = True) -> int:
        """Nothing."""
        return 0

    def accepted(self, context: Sequence[int], tokens: Sequence[int], persist: bool = True) -> int:
        """Nothing."""
        return 0


class NothingLearnt(NgramStore):
    """Learns nothing and writes nothing; what other engines wrote of a workspace can still be forgotten.

    Args:
        base: instead of the user's data folder.
    """

    def __init__(self, base: Path | None = None) -> None:
        super().__init__("", base)
        self._nothing = _Nothing()

    def of(self, folder: Path | None, language: str) -> WorkspaceNgrams:
        """Of any workspace and language."""
        return self._nothing

    def note(self, folder: Path, document: Path) -> None:
        """Nothing: nothing of the document is kept."""
