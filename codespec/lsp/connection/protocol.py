"""JSON-RPC that withstands malformed messages and messages out of order."""

from __future__ import annotations

import logging
import re
from collections.abc import Generator, Iterator
from typing import Any
from urllib.parse import unquote

from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import LanguageServerProtocol, lsp_method

from codespec.lsp.connection.nesting import DEEPEST, TOO_DEEP
from codespec.lsp.workspace.documents import Documents

logger = logging.getLogger(__name__)

_TEXTS = {
    types.TEXT_DOCUMENT_DID_OPEN: "textDocument",
    types.TEXT_DOCUMENT_DID_CHANGE: "textDocument",
    types.NOTEBOOK_DOCUMENT_DID_OPEN: "notebookDocument",
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: "notebookDocument",
}
"""Notifications that bring texts, with the parameter that has their URI and version."""
_RANGE = re.compile(r"^\S+ should be in range \[[-0-9]+:[0-9]+\]")


class Protocol(LanguageServerProtocol):
    """pygls' protocol with our documents; a request that cannot be read gets its error as an answer."""

    def use_documents(self) -> None:
        """Replace the workspace that ``initialize`` has made."""
        old = self.workspace
        self._workspace = Documents(
            old.root_uri,
            types.TextDocumentSyncKind.Incremental,
            list(old.folders.values()),
            old.position_encoding,
        )

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """As pygls; next edits are in no version of the protocol, and so in no capability that pygls knows."""
        result = yield from super().lsp_initialize(params)
        result.capabilities.experimental = {"inlineEditProvider": True}
        return result

    @property
    def was_shut_down(self) -> bool:
        """Whether the client sent ``shutdown``."""
        return self._shutdown

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Turn a JSON object into a message. pygls only logs where that fails, and the client waits for ever."""
        self._give_versions(data)
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "method" in data and isinstance(data.get("id"), (int, str)):
                refusal = self._refusal(data["method"]) or _with_reason(error)
                self._send_response(data["id"], None, refusal.to_response_error())
            elif data.get("method") in _TEXTS:
                self._lose(_at(data, "params", _TEXTS[data["method"]], "uri"))
            raise

    def _give_versions(self, data: dict[str, Any]) -> None:
        """Fill in the versions that a client leaves out of its texts, as the protocol up to 3.15 allowed."""
        name = _TEXTS.get(data.get("method", "")) if isinstance(data.get("method"), str) else None
        contents = _at(data, "params", "change", "cells", "textContent")
        texts = [_at(data, "params", name)] if name else []
        texts += [_at(each, "document") for each in contents] if isinstance(contents, list) else []
        for each in texts:
            if isinstance(each, dict) and each.get("version") is None:
                each["version"] = self._version_of(each.get("uri"))

    def _version_of(self, uri: Any) -> int:
        """The version of a text that is open; 0 of another one."""
        if self._workspace is None or not isinstance(uri, str):
            return 0
        found = self._workspace.text_documents.get(unquote(uri)) or self._workspace.notebook_documents.get(unquote(uri))
        return (found.version or 0) if found is not None else 0

    def _lose(self, uri: Any) -> None:
        """A change could not be read: whatever stands in the editor, it is not what the server has."""
        if isinstance(uri, str) and isinstance(self._workspace, Documents) and self._workspace.lose(uri):
            logger.warning("a change could not be read; nothing is offered in its document until it is opened again")

    def _execute_handler(self, msg_id: Any, *arguments: Any, **named: Any) -> None:
        """Run a handler. pygls keeps a future for every notification for ever."""
        super()._execute_handler(msg_id, *arguments, **named)
        future = self._request_futures.get(msg_id)
        if future is not None:
            future.add_done_callback(lambda _: self._request_futures.pop(msg_id, None))

    def handle_message(self, message: Any) -> None:
        """Handle a message, unless it comes out of order: pygls would let handlers fail, or not answer at all."""
        method, identifier = getattr(message, "method", None), getattr(message, "id", None)
        refusal = self._refusal(method)
        if refusal is None:
            super().handle_message(message)
        elif identifier is not None:
            self._send_response(identifier, None, refusal.to_response_error())

    def _refusal(self, method: str | None) -> JsonRpcException | None:
        """Why a message must not come now, if so. Answers have no method."""
        if method is None or method == types.EXIT:
            return None
        if method == TOO_DEEP:
            return JsonRpcInvalidRequest(f"the message is nested more than {DEEPEST} levels deep")
        if self._shutdown:
            return JsonRpcInvalidRequest("the server was shut down")
        if self._workspace is None and method != types.INITIALIZE:
            return JsonRpcServerNotInitialized("the first request must be initialize")
        if self._workspace is not None and method == types.INITIALIZE:
            return JsonRpcInvalidRequest("the server is initialized already")
        return None


def _with_reason(error: JsonRpcException) -> JsonRpcException:
    """The error with the ranges of the numbers that are out of them, and nothing else of what the client sent."""
    found = dict.fromkeys(match[0] for each in _leaves(error.__cause__) if (match := _RANGE.match(str(each))))
    return JsonRpcInvalidParams("; ".join(found)) if found else error


def _leaves(error: BaseException | None) -> Iterator[BaseException]:
    waiting = [error] if error is not None else []
    while waiting:
        each = waiting.pop()
        inner = getattr(each, "exceptions", ())
        if inner:
            waiting += inner
        else:
            yield each


def _at(value: Any, *names: str) -> Any:
    """What lies at a path of names; None where nothing does."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
