"""Notifications that a document was opened, edited, saved or closed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from lsprotocol import types

from codespec.lsp.handlers import next_edit
from codespec.lsp.handlers.prefetch import changed
from codespec.lsp.session import CodespecServer

if TYPE_CHECKING:
    from codespec.lsp.workspace.documents import Document

LEARNT = 400_000
"""Characters of a large document that are learnt."""


def did_open(ls: CodespecServer, params: types.DidOpenTextDocumentParams) -> None:
    """Learn the text, which pygls stores."""
    document = ls.document(params.text_document.uri)
    if document is not None and document.language_id:
        ls.usage.languages.add(document.language_id)
    ls.reporter.touch()
    learn(ls, params.text_document.uri, ls.surroundings.opened)
    next_edit.opened(ls, params.text_document.uri)


def did_change(ls: CodespecServer, params: types.DidChangeTextDocumentParams) -> None:
    """Prefill after the typed text, and note the edit."""
    changed(ls, params.text_document.uri, params.content_changes)
    next_edit.changed(ls, params.text_document.uri)


def did_save(ls: CodespecServer, params: types.DidSaveTextDocumentParams) -> None:
    """Learn the text."""
    learn(ls, params.text_document.uri, ls.surroundings.saved)


def did_close(ls: CodespecServer, params: types.DidCloseTextDocumentParams) -> None:
    """Stop the completions of a closed document and forget it."""
    next_edit.closed(ls, params.text_document.uri)
    close(ls, params.text_document.uri)


def learn(ls: CodespecServer, uri: str, tell: Callable[[Document, str], None] | None = None) -> None:
    """``tell`` of a document and its folder; let the drafts learn it, once no request waits."""
    document, folder = ls.document(uri), ls.folder_of(uri)
    if document is None:
        return
    if tell is not None:
        tell(document, folder)
    if ls.private.holds(document, folder):
        return
    request = ls.request_at(document, 0, 0, cursor=False)
    if not request.ends:
        request = replace(request, text=document.beginning(LEARNT))
    config = ls.settings.config
    if config.learn and config.for_language(request.language).enabled:
        ls.feedback.document(uri, request)


def close(ls: CodespecServer, uri: str) -> None:
    """Forget a document that is no longer open."""
    ls.models.cancel_document(uri)
    ls.completions.forget(uri)
    ls.surroundings.closed(uri)
    ls.feedback.closed(uri)
