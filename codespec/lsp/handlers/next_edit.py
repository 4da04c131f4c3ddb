"""Next edits: ``codespec/inlineEdit``, and the same by the name that clients of other servers use."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from codespec.lsp.handlers.awaiting import result_of
from codespec.lsp.session import CodespecServer
from codespec.protocols import CodespecError

if TYPE_CHECKING:
    from codespec.edits.request import EditOffer, EditRequest

logger = logging.getLogger(__name__)

METHODS = ("codespec/inlineEdit", "textDocument/copilotInlineEdit")
DID_FOCUS = "textDocument/didFocus"

TRIES = 3
"""How often a request is made that gave way to completions."""

_DOCUMENT = "next edit"
"""Stands for a document in the decode thread: of all requests of a session the latest counts."""


@dataclass(frozen=True)
class _Asked:
    """The parameters of a request.

    Attributes:
        version: of the document that the client has.
        invoked: whether the user asked, by a key.
    """

    uri: str
    version: int
    position: types.Position
    invoked: bool


def register(server: CodespecServer) -> None:
    """Answer requests for next edits."""
    for method in METHODS:
        server.feature(method)(inline_edit)
    server.feature(DID_FOCUS)(did_focus)


async def inline_edit(ls: CodespecServer, params: Any) -> dict[str, Any] | None:
    """``edits``: the next edit, or none. None where the request is superseded, about another version of the document
    than the server's, or fails, which the user is told."""
    asked = _read(params)
    try:
        return await _find(ls, asked)
    except CodespecError as error:
        ls.messages.failure(error, again=asked.invoked)
    except Exception:
        logger.exception("a request for a next edit failed")
    return None


def did_focus(ls: CodespecServer, params: Any) -> None:
    """The user looks at a document, or at none."""
    uri = _at(params, "textDocument", "uri")
    if isinstance(uri, str):
        ls.next_edits.focused(uri)


def opened(ls: CodespecServer, uri: str) -> None:
    """Follow what is edited in a document."""
    document = ls.document(uri)
    if document is not None and ls.settings.config.edits.mode != "off":
        ls.next_edits.opened(document)


def changed(ls: CodespecServer, uri: str) -> None:
    """Note an edit; what is asked for an earlier version of a document nobody wants any more."""
    document = ls.document(uri)
    stop(ls)
    if document is not None:
        ls.next_edits.changed(document)


def closed(ls: CodespecServer, uri: str) -> None:
    """Forget a document that is no longer open."""
    stop(ls)
    ls.next_edits.closed(uri)


def stop(ls: CodespecServer) -> None:
    """Cancel the request for a next edit that is under way, if there is one."""
    asked, ls.next_edits.asked = ls.next_edits.asked, None
    if asked is not None and not asked.future.done():
        ls.models.cancel(asked)


async def _find(ls: CodespecServer, asked: _Asked) -> dict[str, Any] | None:
    document, settings = ls.document(asked.uri), ls.settings.config.edits
    if document is None or document.version != asked.version:
        return None
    if settings.mode == "off" or (settings.mode == "manual" and not asked.invoked):
        return None
    request = ls.next_edits.request(document, *document.locate(asked.position), settings.budget_ms, asked.invoked)
    if request is None or not ls.settings.config.for_language(request.language).enabled:
        return {"edits": []}
    versions = ls.next_edits.versions()
    offers = await _predict(ls, request)
    if offers is None or ls.document(asked.uri) is not document or document.version != asked.version:
        return None
    answers = [ls.next_edits.answer(each, versions) for each in offers]
    ls.reporter.touch()
    return {"edits": [each for each in answers if each is not None]}


async def _predict(ls: CodespecServer, request: EditRequest) -> list[EditOffer] | None:
    """Have the model answer; None where a newer request has come, or the document has changed."""
    for _ in range(TRIES):
        asked = ls.next_edits.asked = ls.models.submit("edit", _DOCUMENT, request=request)
        offers: list[EditOffer] | None = await result_of(ls, asked)
        if offers is not None or ls.next_edits.asked is not asked or not ls.models.accepts:
            return offers
    return None


def _read(params: Any) -> _Asked:
    """Raises ``JsonRpcInvalidParams`` where something is missing."""
    uri, version = _at(params, "textDocument", "uri"), _at(params, "textDocument", "version")
    line, character = _at(params, "position", "line"), _at(params, "position", "character")
    numbers = all(isinstance(each, int) and not isinstance(each, bool) for each in (version, line, character))
    if not isinstance(uri, str) or not numbers or min(line, character) < 0:
        raise JsonRpcInvalidParams(message="a next edit needs a textDocument with its version, and a position")
    invoked = _at(params, "context", "triggerKind") == types.InlineCompletionTriggerKind.Invoked
    return _Asked(uri, version, types.Position(line, character), invoked)


def _at(params: Any, *names: str) -> Any:
    """What lies at a path of names in parameters that nothing is known of; None where nothing does."""
    for name in names:
        params = params.get(name) if isinstance(params, dict) else getattr(params, name, None)
    return params
