"""``textDocument/inlineCompletion``: answers from the completion cache, or from the models."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

from lsprotocol import types

from codespec.completion.nothing import BY_KEY, FAILED, FOREIGN, PRIVATE, SWITCHED_OFF, Nothing, why_nothing
from codespec.line_ends import line_feeds
from codespec.lsp.handlers.awaiting import result_of
from codespec.lsp.handlers.prefetch import prefetch
from codespec.lsp.items import Cursor, to_item
from codespec.lsp.session import CodespecServer
from codespec.lsp.workspace import notebooks
from codespec.lsp.workspace.documents import Document
from codespec.protocols import CodespecError

if TYPE_CHECKING:
    from codespec.completion.request import Completion, Request

logger = logging.getLogger(__name__)

QUIET_DEBOUNCE_MS = 300
ALTERNATIVES = 3
"""Completions for a request that the user made by a key, not by typing."""


@dataclass(frozen=True)
class Answer:
    """Completions for a position, and identifiers by which the client reports what becomes of them."""

    cursor: Cursor
    completions: Sequence[Completion]
    identifiers: Sequence[str]


async def inline_completion(
    ls: CodespecServer, params: types.InlineCompletionParams
) -> types.InlineCompletionList | None:
    """Complete at the cursor. None, which leaves the editor's ghost text as it is, where there is no answer."""
    asked = params.context.trigger_kind == types.InlineCompletionTriggerKind.Invoked
    answer = await find(ls, params.text_document.uri, params.position, ALTERNATIVES if asked else 1, typing=not asked)
    if answer is None:
        return None
    found = zip(answer.completions, answer.identifiers, strict=True)
    return types.InlineCompletionList([to_item(each, answer.cursor, name) for each, name in found])


async def find(
    ls: CodespecServer, uri: str, position: types.Position, count: int = 1, typing: bool = False
) -> Answer | None:
    """Completions for a position.

    Args:
        count: at most, unless more are cached.
        typing: the editor asks by itself.

    Returns:
        None where the document is not completed, the keyboard does not rest, or a newer request has come.
    """
    try:
        began = perf_counter()
        if count == 1:  # by itself
            ls.completions.unasked = 0
        document = ls.document(uri)
        if document is None:
            return None
        row, column = document.locate(position)
        cursor = Cursor(row, column, document.line(row), document.units)
        if ls.private.holds(document, ls.folder_of(uri)):
            _tell(ls, PRIVATE)
            return Answer(cursor, (), ())
        if notebooks.is_foreign(ls.workspace, document, row):
            _tell(ls, FOREIGN)
            return Answer(cursor, (), ())
        request = replace(ls.request_at(document, row, column), count=count)
        if not ls.settings.config.for_language(request.language).enabled:
            _tell(ls, SWITCHED_OFF)
            return None
        ls.usage.language = request.language
        ls.usage.languages.add(request.language)
        completions = ls.completions.cache.find(uri, request)
        from_memory = completions is not None
        ls.usage.requests += 1
        ls.usage.from_memory += from_memory
        if completions is None and typing:
            if not ls.settings.config.automatic:
                _tell(ls, BY_KEY)
                return Answer(cursor, (), ())
            if not await _rests(ls, document):
                return None
        if completions is None:
            completions = await _decode(ls, uri, request)
            if completions is None:
                return None
        # Editors hold lines without their ends and write the document's own.
        told = completions
        completions = [replace(each, text=line_feeds(each.text)) for each in told if each.text]
        nothing = None if completions else why_nothing(told, row)
        _tell(ls, nothing)
        if nothing is not None and told and not from_memory:
            ls.completions.traces.show(uri, "", nothing.why)
        identifiers = _offer(ls, uri, request, completions, from_memory)
        ms = (perf_counter() - began) * 1e3
        ls.completions.times.add(position.line, position.character, ms, from_memory, completions)
        return Answer(cursor, completions, identifiers)
    except CodespecError as error:
        _tell(ls, FAILED)
        ls.messages.failure(error)
    except Exception:
        _tell(ls, FAILED)
        logger.exception("a request for completions failed")
    return None


async def _rests(ls: CodespecServer, document: Document) -> bool:
    """Whether nothing is typed in a document for as long as the settings want that."""
    config = ls.settings.config
    ms = max(config.debounce_ms, QUIET_DEBOUNCE_MS if ls.power.is_quiet(config.quiet) else 0)
    if not ms:
        return True
    text = document.source
    await asyncio.sleep(ms / 1e3)
    return document.source is text


def _tell(ls: CodespecServer, nothing: Nothing | None) -> None:
    """Have the status say why there is nothing; None: there is something."""
    ls.usage.nothing = nothing
    ls.reporter.touch()


def _offer(
    ls: CodespecServer, uri: str, request: Request, completions: Sequence[Completion], from_memory: bool
) -> Sequence[str]:
    """Note what is answered, and begin what comes after it."""
    if completions:
        ls.completions.traces.show(uri, completions[0].text)
    identifiers = ls.feedback.offer(uri, request, [each.text for each in completions], from_memory)
    if ls.settings.config.learn and not from_memory:
        ls.feedback.document(uri, request, edited=True)
    if ls.settings.config.prefetch and completions and not ls.power.is_quiet(ls.settings.config.quiet):
        prefetch(ls, uri, request, completions[0].text)
    ls.reporter.touch()
    return identifiers


async def _decode(ls: CodespecServer, uri: str, request: Request) -> list[Completion] | None:
    """Have the models answer, and keep that; None where nobody wants it any more."""
    config = ls.settings.config
    known = ls.completions.cache.find(uri, replace(request, count=1)) if request.count > 1 else None
    ls.usage.decoding += 1
    ls.reporter.touch()
    asked = ls.completions.ahead.get(uri)
    # It may be answered before it is in the cache.
    if asked is None or asked.key != request or not asked.succeeded:
        asked = ls.models.submit("complete", uri, key=request, request=request)
    try:
        completions: list[Completion] | None = await result_of(ls, asked)
        if completions is None and not asked.cancelled and ls.models.accepts:
            # It was begun ahead, and gave way to another window's request.
            completions = await result_of(ls, ls.models.submit("complete", uri, key=request, request=request))
    finally:
        ls.usage.decoding -= 1
        ls.reporter.touch()
    if completions is not None:
        completions = _known_first(known or (), completions)[: request.count]
        ls.completions.keep(uri, request, completions, current=ls.settings.config is config)
    return completions


def _known_first(known: Sequence[Completion], found: Sequence[Completion]) -> list[Completion]:
    """The text that was shown stays the first: several decoded side by side may differ from it at a near tie."""
    texts = {each.text: each for each in (*known, *found) if each.text}
    return list(texts.values()) or list(found)
