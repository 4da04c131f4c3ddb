"""The editor's side of the protocol, as far as a benchmark needs it."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from codespec.errors import CodespecError
from codespec.lsp.handlers.status import STATUS
from codespec.lsp.status_reporter import NOTIFICATION


class EditorClient:
    """A server process of its own, and documents in it. Positions are (line, UTF-16 units)."""

    def __init__(self) -> None:
        self._client = LanguageClient("codespec-bench", "1")
        for name in (types.WINDOW_LOG_MESSAGE, NOTIFICATION):
            self._client.feature(name)(lambda params: None)
        self._client.feature(types.WINDOW_SHOW_MESSAGE)(lambda params: self._shown.append(params.message))
        self._shown: list[str] = []
        self._versions: dict[str, int] = {}
        self._requests = 0

    async def start(self, options: dict[str, Any], data_folder: str) -> None:
        """Start the server with these settings, and wait until the models are loaded.

        Raises:
            CodespecError: they cannot be; with what the server says of it.
        """
        environment = {**os.environ, "CODESPEC_DATA": data_folder}
        await self._client.start_io(sys.executable, "-m", "codespec", "serve", "--in-process", env=environment)
        await self._client.initialize_async(
            types.InitializeParams(
                capabilities=types.ClientCapabilities(), initialization_options={"offer_models": False, **options}
            )
        )
        self._client.initialized(types.InitializedParams())
        while (state := (await self.status())["state"]) == "loading":
            await asyncio.sleep(0.1)
        if state != "ready":
            await asyncio.sleep(0.1)  # for the message, which comes behind the answer
            said = self._shown[-1].removeprefix("codespec: ") if self._shown else "the server gives no reason"
            raise CodespecError(said)

    async def stop(self) -> None:
        """End the session and the server, in whatever state they are."""
        try:
            await asyncio.wait_for(self._client.shutdown_async(None), 5)
            self._client.exit(None)
        finally:
            await self._client.stop()  # type: ignore[no-untyped-call]

    def open(self, uri: str, language: str, text: str) -> None:
        """Open a document."""
        self._versions[uri] = 1
        item = types.TextDocumentItem(uri, language, 1, text)
        self._client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def close(self, uri: str) -> None:
        """Close a document."""
        self._client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def insert(self, uri: str, row: int, column: int, text: str) -> None:
        """Put text into a document."""
        self._versions[uri] += 1
        at = types.Position(row, column)
        change = types.TextDocumentContentChangePartial(types.Range(at, at), text)
        document = types.VersionedTextDocumentIdentifier(self._versions[uri], uri)
        self._client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    async def complete(self, uri: str, row: int, column: int) -> str:
        """What is offered behind a place, without what stands before it; empty for nothing.

        Cancelling the task cancels the request.
        """
        self._requests += 1
        identifier = f"completion {self._requests}"
        params = types.InlineCompletionParams(
            types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic),
            types.TextDocumentIdentifier(uri),
            types.Position(row, column),
        )
        request = asyncio.ensure_future(
            self._client.protocol.send_request_async(types.TEXT_DOCUMENT_INLINE_COMPLETION, params, msg_id=identifier)
        )
        try:
            answer = await asyncio.shield(request)
        except asyncio.CancelledError:
            self._client.cancel_request(types.CancelParams(identifier))
            request.add_done_callback(asyncio.Future.exception)  # the answer still comes: that it was cancelled
            raise
        if answer is None or not answer.items:
            return ""
        item = answer.items[0]
        typed = item.range.end.character - item.range.start.character
        return str(item.insert_text).encode("utf-16-le")[2 * typed :].decode("utf-16-le", "replace")

    async def status(self) -> dict[str, Any]:
        """What ``codespec.status`` says."""
        return await self._status()

    async def answers(self) -> list[dict[str, Any]]:
        """What the server's latest answers took, see ``codespec.lsp.answer_times.Answer``."""
        answers: list[dict[str, Any]] = (await self._status("answers"))["answers"]
        return answers

    async def _status(self, *arguments: str) -> dict[str, Any]:
        params = types.ExecuteCommandParams(STATUS, list(arguments))
        answer = await self._client.workspace_execute_command_async(params)
        plain: dict[str, Any] = _plain(answer)
        return plain


def _plain(value: Any) -> Any:
    """A value as JSON has it; pygls makes objects into named tuples."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value
