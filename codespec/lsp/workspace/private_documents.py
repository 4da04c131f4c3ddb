"""Documents that are neither completed nor learnt."""

from __future__ import annotations

from collections.abc import Callable

from pygls.uris import to_fs_path

from codespec.lsp.feedback import Feedback
from codespec.lsp.messages import Messages
from codespec.lsp.workspace.documents import Document
from codespec.lsp.workspace.surroundings import Surroundings


class PrivateDocuments:
    """Tells why a document is private, once, and has kept texts forgotten when a document turns out to be private."""

    def __init__(
        self, surroundings: Surroundings, feedback: Feedback, messages: Messages, forget: Callable[[str], None]
    ) -> None:
        self._surroundings, self._feedback, self._messages = surroundings, feedback, messages
        self._forget = forget
        self._latest: dict[str, bool] = {}
        self._told: set[str] = set()

    def holds(self, document: Document, folder: str) -> bool:
        """Whether a document must be neither completed nor learnt.

        Args:
            folder: the workspace folder that it lies in, empty for none.
        """
        reason = self._surroundings.private(document, folder)
        before, self._latest[document.uri] = self._latest.get(document.uri), bool(reason)
        if reason and not before:
            self._forget(document.uri)
        if reason and folder and not before:  # it may have been kept line by line, or in an earlier session
            file = to_fs_path(self._surroundings.file_of(document.uri)) or ""
            self._feedback.forget_file(folder, file, learnt=before is False)
        if reason and document.uri not in self._told:
            self._told.add(document.uri)
            self._messages.log(f"no completions in {document.filename}: {reason}")
        return bool(reason)
