"""JSON-RPC that withstands malformed messages and messages out of order."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest, JsonRpcServerNotInitialized
from pygls.protocol import LanguageServerProtocol, lsp_method

from codespec.lsp.connection.nesting import DEEPEST, TOO_DEEP
from codespec.lsp.workspace.documents import Documents


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
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "method" in data and isinstance(data.get("id"), (int, str)):
                refusal = self._refusal(data["method"]) or error
                self._send_response(data["id"], None, refusal.to_response_error())
            raise

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
