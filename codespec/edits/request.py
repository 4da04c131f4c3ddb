"""What next edits are asked for with, and what is offered: plain data, which every side of a socket can hold."""

from __future__ import annotations

from dataclasses import dataclass

BUDGET_MS = 500.0
"""How long a prediction may take, where nobody says otherwise."""


@dataclass(frozen=True)
class RecentEdit:
    """A change that the user has made to whole lines of a document.

    Attributes:
        path: of the document.
        line: where it begins in the document as it is now, from 0.
        before: the lines that stood there, with their ends; empty where lines were only added.
        after: the lines that stand there now; empty where lines were only deleted.
        context_before, context_after: unchanged lines around it, with their ends.
    """

    path: str
    line: int
    before: str
    after: str
    context_before: str = ""
    context_after: str = ""


@dataclass(frozen=True)
class OtherDocument:
    """An open document beside the one with the cursor."""

    path: str
    language: str
    text: str


@dataclass(frozen=True)
class EditRequest:
    """Where a next edit is wanted, and what was edited before.

    Attributes:
        path: file name or URI.
        language: LSP identifier.
        text: the whole document as it is now; lines end with a line feed here and in all other texts.
        offset: of the cursor, in characters of ``text``.
        recent: of all documents, the most recent last; those of private files are left out.
        others: open documents, the last edited first; private ones are left out.
        rejected: ids of the parts of offers that the user dropped, which are not offered again.
        budget_ms: how long the prediction may take.
    """

    path: str
    language: str
    text: str
    offset: int
    recent: tuple[RecentEdit, ...]
    others: tuple[OtherDocument, ...] = ()
    rejected: frozenset[str] = frozenset()
    budget_ms: float = BUDGET_MS


@dataclass(frozen=True)
class Edit:
    """A replacement of the characters from ``start`` to ``end`` of a document by ``text``; one of ``end == start``
    inserts, an empty ``text`` deletes."""

    path: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class EditOffer:
    """The next edit.

    Attributes:
        id: of the old and the new text of the place: what has the same id is the same offer.
        edits: of one document, within one window, ascending and apart from each other; usually one.
        line: of the first of them, from 0.
        jump: whether that is out of the user's sight: some lines from the cursor, or in another document.
        parts: the ids that its edits would have one by one.
    """

    id: str
    edits: tuple[Edit, ...]
    line: int
    jump: bool
    parts: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The path of the document that the offer changes."""
        return self.edits[0].path

    def applied(self, text: str) -> str:
        """The document's ``text`` with the offer applied."""
        for edit in reversed(self.edits):
            text = text[: edit.start] + edit.text + text[edit.end :]
        return text
