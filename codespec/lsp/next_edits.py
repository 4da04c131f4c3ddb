"""The next edits of a session: what was edited, what is asked for and shown, what became of what was offered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from pygls.uris import to_fs_path

from codespec.edits.history import EditHistory
from codespec.edits.request import EditOffer, EditRequest, OtherDocument, RecentEdit
from codespec.languages import by_path
from codespec.lsp.applied_edits import AppliedEdits
from codespec.lsp.workspace.documents import LARGE, Document, split_lines
from codespec.lsp.workspace.notebooks import Magics, magics_of
from codespec.lsp.workspace.plain_text import PlainText
from codespec.recent import Recent

if TYPE_CHECKING:
    from codespec.daemon.asked import Asked
    from codespec.lsp.statistics import UsageStatistics
    from codespec.lsp.workspace.private_documents import PrivateDocuments
    from codespec.lsp.workspace.surroundings import Surroundings

ACCEPT_EDIT = "codespec.acceptEdit"
"""The command of a next edit, which a client runs when it is applied."""

MOST_FILES = 256
"""Whose edits may be shown after they were closed."""
MOST_OFFERS = 64
"""Next edits that may still be applied or dropped."""
MOST_REJECTED = 256
"""Parts of dropped ones, which are not offered again."""
MOST_OTHERS, LARGEST_OTHER = 8, 100_000
"""Other open documents that are looked at, and the characters of one of them."""


@dataclass(frozen=True)
class _Followed:
    """An open document that is followed, by the path that the models see.

    Attributes:
        file: the URI of the file that it is or, as a cell of a notebook, is in.
    """

    document: Document
    folder: str
    path: str
    file: str

    @property
    def language(self) -> str:
        if self.magics is not None:
            return self.magics.language_of(self.document.text()) or ""
        return self.document.language_id or by_path(self.path).id

    @property
    def is_cell(self) -> bool:
        return self.file != self.document.uri

    @property
    def magics(self) -> Magics | None:
        return magics_of(self.document) if self.is_cell else None

    @property
    def text(self) -> str:
        """As models and the gate see it; as many characters as in the document."""
        text = PlainText(self.document).text
        return self.magics.without_magics(text) if self.magics is not None else text


@dataclass(frozen=True)
class _Offered:
    """A next edit that was answered: its parts' ids, the lines that it changes as they are, and as they become."""

    parts: tuple[str, ...]
    document: Document
    language: str
    row: int
    old: tuple[str, ...]
    new: tuple[str, ...]


class NextEdits:
    """Follows the open documents. For the thread of the event loop.

    Args:
        folder_of: the workspace folder of a URI.
        clock: seconds.

    Attributes:
        asked: the request that the models work on, or did last.
    """

    def __init__(
        self,
        surroundings: Surroundings,
        private: PrivateDocuments,
        statistics: UsageStatistics,
        folder_of: Callable[[str], str],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._surroundings, self._private, self._statistics = surroundings, private, statistics
        self._folder_of, self._clock = folder_of, clock
        self.applied = AppliedEdits(statistics)
        self.asked: Asked | None = None
        self._history = EditHistory()
        self._followed: dict[str, _Followed] = {}  # by URI, the one used last at the end
        self._files: Recent[str, str] = Recent(MOST_FILES)  # their URIs, by the paths that the models see
        self._offers: Recent[str, _Offered] = Recent(MOST_OFFERS)
        self._rejected: Recent[str, None] = Recent(MOST_REJECTED)

    def use(self, mode: str, documents: Iterable[Document]) -> None:
        """Follow the open documents; in the mode ``off`` none, and forget what was edited."""
        if mode == "off":
            for uri in list(self._followed):
                self.closed(uri)
            self._history = EditHistory()
            return
        for document in documents:
            if document.uri not in self._followed:
                self.opened(document)

    def opened(self, document: Document) -> None:
        """Follow a document from its text on."""
        folder = self._folder_of(document.uri)
        file = self._surroundings.file_of(document.uri)
        followed = _Followed(document, folder, self._path(document.uri, file, folder), file)
        if self._files.get(followed.path, file) != file:  # another file had this path, whose edits are not this one's
            self._history.forget(followed.path)
        self._followed[document.uri], self._files[followed.path] = followed, file
        if self._may_follow(followed):
            self._history.opened(followed.path, PlainText(document).text)

    def changed(self, document: Document) -> None:
        """A document's text has changed."""
        followed = self._followed.get(document.uri)
        if followed is None or followed.document is not document:
            return
        self.focused(document.uri)
        if self._may_follow(followed):
            self._history.changed(followed.path, PlainText(document).text, self._clock())
        else:
            self._history.forget(followed.path)

    def focused(self, uri: str) -> None:
        """The user looks at a document."""
        followed = self._followed.pop(uri, None)
        if followed is not None:
            self._followed[uri] = followed

    def closed(self, uri: str) -> None:
        """Follow a document no longer."""
        followed = self._followed.pop(uri, None)
        if followed is not None:
            self._history.closed(followed.path)
            self.applied.closed(followed.document)

    def request(self, document: Document, row: int, column: int, budget_ms: float, invoked: bool) -> EditRequest | None:
        """What to ask for at a position, in characters; None where the document is none that next edits are for.

        Args:
            invoked: whether the user asks, who may then be offered also what was just applied and taken back.
        """
        own = self._followed.get(document.uri)
        if own is None or own.document is not document or not self._may_follow(own) or not own.language:
            return None
        taken_back = () if invoked else self.applied.taken_back(document)
        return EditRequest(
            path=own.path,
            language=own.language,
            text=own.text,
            offset=PlainText(document).offset(row, column),
            recent=tuple(each for each in self._history.recent() if self._may_show_edit(each, own)),
            others=tuple(
                OtherDocument(each.path, each.language, each.text) for each in self._others(own) if each.language
            ),
            rejected=frozenset((*self._rejected, *taken_back)),
            budget_ms=budget_ms,
        )

    def versions(self) -> dict[str, int | None]:
        """Of the open documents, by URI: an offer is for these and no others."""
        return {uri: each.document.version for uri, each in self._followed.items()}

    def answer(self, offer: EditOffer, versions: Mapping[str, int | None]) -> dict[str, Any] | None:
        """An offer as the protocol has it, which counts as shown; None where its document has changed since.

        ``range`` and ``text`` are one replacement; ``hunks`` are the same without the text that stays between them.
        """
        found = next((each for each in self._followed.values() if each.path == offer.path), None)
        if found is None or versions.get(found.document.uri) != found.document.version:
            return None
        document, plain = found.document, PlainText(found.document)
        text, seen, new = plain.text, found.text, offer.applied(plain.text)
        if any(text[edit.start : edit.end] != seen[edit.start : edit.end] for edit in offer.edits):
            return None  # a command of IPython
        start, end = offer.edits[0].start, offer.edits[-1].end
        stop = end + len(new) - len(text)
        first, last = plain.row(start), plain.row(end)
        line_start, line_end = plain.offset(first, 0), plain.offset(last, len(plain.lines[last]))
        changed = text[line_start:start] + new[start:stop] + text[end:line_end]
        self._statistics.count(found.language, "edits_shown")
        old, become = tuple(plain.lines[first : last + 1]), tuple(changed.split("\n"))
        self._offers[offer.id] = _Offered(offer.parts, document, found.language, first, old, become)

        def span(start: int, end: int) -> dict[str, Any]:
            return {"start": _plain(plain.position(start)), "end": _plain(plain.position(end))}

        return {
            "textDocument": {"uri": document.uri, "version": document.version},
            "range": span(start, end),
            "text": new[start:stop],
            "command": {"title": "codespec: an edit was applied", "command": ACCEPT_EDIT, "arguments": [offer.id]},
            "jump": offer.jump,
            "hunks": [{"range": span(each.start, each.end), "text": each.text} for each in offer.edits],
        }

    def accept(self, identifier: str) -> None:
        """The user has applied an offer; one that is not known (any more) is ignored."""
        offered = self._offers.pop(identifier, None)
        if offered is not None:
            self.applied.add(offered.parts, offered.document, offered.language, offered.row, offered.old, offered.new)

    def reject(self, identifier: str) -> None:
        """The user has dropped an offer, no part of which is offered again; one that is not known is ignored."""
        offered = self._offers.pop(identifier, None)
        if offered is not None:
            self._rejected.update(dict.fromkeys(offered.parts))
            self._statistics.count(offered.language, "edits_rejected")

    def _may_follow(self, followed: _Followed) -> bool:
        document = followed.document
        return document.length <= LARGE and not self._private.holds(document, followed.folder)

    def _others(self, own: _Followed) -> Iterator[_Followed]:
        """The open documents that may be shown in prompts of another one, the last used first; cells are not among
        them, since editors open none by its URI."""
        left = MOST_OTHERS
        for each in reversed(list(self._followed.values())):
            if not left or each is own or each.is_cell or each.folder != own.folder:
                continue
            if each.document.length > LARGEST_OTHER:
                continue
            if self._may_follow(each) and self._surroundings.may_show(
                each.document.uri, each.document.lines, own.folder
            ):
                left -= 1
                yield each

    def _may_show_edit(self, edit: RecentEdit, own: _Followed) -> bool:
        open_one = next((each for each in self._followed.values() if each.path == edit.path), None)
        file = open_one.file if open_one is not None else self._files.get(edit.path)
        if file == own.file:
            return True
        if open_one is not None and not self._may_follow(open_one):  # another cell holds a secret
            return False
        text = "".join((edit.context_before, edit.before, edit.after, edit.context_after))
        return bool(own.folder and file) and self._surroundings.may_show(str(file), split_lines(text), own.folder)

    def _path(self, uri: str, file: str, folder: str) -> str:
        """How the models know a document: its path in the workspace folder, else its name; its URI where another open
        document, such as one of another workspace folder, has that. That of a notebook stands for no cell alone."""
        path, cell = to_fs_path(file), "" if uri == file else f"#{uri.rpartition('#')[2]}"
        if path and folder:
            name = Path(path).relative_to(folder).as_posix() + cell
        else:
            name = (Path(path).name if path else file.rpartition("/")[2]) + cell
        taken = any(each.path == name and other != uri for other, each in self._followed.items())
        return uri if taken else name


def _plain(position: Any) -> dict[str, int]:
    return {"line": position.line, "character": position.character}
