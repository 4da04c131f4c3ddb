"""Documents that are opened, saved and closed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from lsprotocol import types

if TYPE_CHECKING:
    from codespec.lsp.documents import Document
    from codespec.lsp.server import CodespecServer

LEARNT = 400_000
"""Characters of a large document that are learnt."""


def did_open(ls: CodespecServer, params: types.DidOpenTextDocumentParams) -> None:
    """Learn the text, which pygls keeps."""
    document = ls.document(params.text_document.uri)
    if document is not None and document.language_id:
        ls.languages.add(document.language_id)
    ls.reporter.touch()
    learn(ls, params.text_document.uri, ls.surroundings.opened)


def did_save(ls: CodespecServer, params: types.DidSaveTextDocumentParams) -> None:
    """Learn the text."""
    learn(ls, params.text_document.uri, ls.surroundings.saved)


def did_close(ls: CodespecServer, params: types.DidCloseTextDocumentParams) -> None:
    """Nobody waits for completions in a closed document."""
    close(ls, params.text_document.uri)


def learn(ls: CodespecServer, uri: str, tell: Callable[[Document, str], None] | None = None) -> None:
    """``tell`` of a document and its folder; let the drafts learn it, once no request waits."""
    document, folder = ls.document(uri), ls.folder_of(uri)
    if document is None:
        return
    if tell is not None:
        tell(document, folder)
    if ls.is_private(document, folder):
        return
    request = ls.request_at(document, 0, 0, cursor=False)
    if not request.ends:
        request = replace(request, text=document.beginning(LEARNT))
    config = ls.settings.config
    if config.learn and config.for_language(request.language).enabled:
        ls.lessons.document(uri, request)


def close(ls: CodespecServer, uri: str) -> None:
    """Forget a document that is no longer open."""
    ls.decode.cancel_document(uri)
    ls.cache.forget(uri)
    ls.traces.forget(uri)
    ls.surroundings.closed(uri)
    ls.statistics.closed(uri)
    ls.lessons.closed(uri)
