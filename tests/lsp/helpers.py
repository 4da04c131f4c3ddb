"""Driving a language server: through pytest-lsp's client, and byte by byte where the client is too well behaved."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient
from pygls.protocol import default_converter
from pytest_lsp.client import register_lsp_features

import codespec
from tests.present import present

STUB = [sys.executable, str(Path(__file__).with_name("stub_server.py"))]
ROOT = Path(codespec.__file__).parents[1]
URI = "file:///work/example.py"


class Client(pytest_lsp.LanguageClient):
    """pytest-lsp's client, which keeps what the server writes to standard error."""

    def __init__(self) -> None:
        super().__init__(converter_factory=default_converter)
        register_lsp_features(self)
        self.stderr = ""
        self.statuses: list[Any] = []
        self.feature("codespec/status")(lambda params: self.statuses.append(params))

    async def start_io(self, cmd: str, *args: str, **kwargs: Any) -> None:
        await LanguageClient.start_io(self, cmd, *args, **kwargs)
        self._stderr_forwarder = asyncio.create_task(self._collect())

    async def _collect(self) -> None:
        errors = present(present(self._server).stderr)
        while line := await errors.readline():
            self.stderr += line.decode()
            sys.stderr.write(line.decode())


TOO_BUSY = "the model process does not answer; unless"


class Server:
    """A server process and a client that has finished the handshake."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.result: types.InitializeResult

    @property
    def stderr(self) -> str:
        return self.client.stderr

    @property
    def shown(self) -> list[str]:
        """The texts of ``window/showMessage``, but for what is shown where the machine was too busy for a while."""
        return [each.message for each in self.client.messages if TOO_BUSY not in each.message]

    def said(self, text: str) -> bool:
        """Whether the stand-in completer has reported something."""
        return f"stub: {text}" in self.stderr

    def open(self, text: str, uri: str = URI, language: str = "python") -> None:
        self.client.text_document_did_open(
            types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, language, 1, text))
        )

    def change(self, change: Any, uri: str = URI, version: int = 2) -> None:
        document = types.VersionedTextDocumentIdentifier(version, uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    def ask(self, line: int, character: int, uri: str = URI, id: str | None = None, invoked: bool = False) -> Any:
        """Send a request for completions; await what this returns."""
        kind = types.InlineCompletionTriggerKind
        params = types.InlineCompletionParams(
            types.InlineCompletionContext(kind.Invoked if invoked else kind.Automatic),
            types.TextDocumentIdentifier(uri),
            types.Position(line, character),
        )
        return self.client.protocol.send_request_async(types.TEXT_DOCUMENT_INLINE_COMPLETION, params, msg_id=id)

    def cancel(self, id: str) -> None:
        self.client.cancel_request(types.CancelParams(id))


@contextlib.asynccontextmanager
async def running(
    tmp_path: Path,
    command: list[str] = STUB,
    env: dict[str, str] | None = None,
    options: Any = None,
    encodings: list[types.PositionEncodingKind] | None = None,
    progress: bool = True,
    configuration: dict[str, Any] | None = None,
    folder: Path | None = None,
    notebooks: bool = False,
    client_name: str = "",
    folders: list[types.WorkspaceFolder] | None = None,
) -> AsyncIterator[Server]:
    """A session with a server, ended in good order. It completes only when asked, unless ``options`` say otherwise."""
    if options is None or (isinstance(options, dict) and "codespec" not in options):
        options = {"prefetch": False, "generate_ahead": False, "quiet": "never", **(options or {})}
    client = Client()
    client.set_configuration(configuration or {})
    capabilities = types.ClientCapabilities(
        general=types.GeneralClientCapabilities(position_encodings=encodings),
        window=types.WindowClientCapabilities(work_done_progress=progress),
        workspace=types.WorkspaceClientCapabilities(configuration=configuration is not None),
    )
    if notebooks:
        synchronization = types.NotebookDocumentSyncClientCapabilities()
        capabilities.notebook_document = types.NotebookDocumentClientCapabilities(synchronization)
    await client.start_io(*command, env=environment(tmp_path, env))
    server = Server(client)
    try:
        server.result = await client.initialize_session(
            types.InitializeParams(
                capabilities=capabilities,
                client_info=types.ClientInfo(client_name) if client_name else None,
                initialization_options=options,
                root_uri=folder.as_uri() if folder else None,
                workspace_folders=folders,
            )
        )
        yield server
        await client.shutdown_session()
    finally:
        process = present(client._server)
        if process.returncode is None:  # a test has failed
            process.kill()
        await client.stop()


def environment(tmp_path: Path, more: dict[str, str] | None = None) -> dict[str, str]:
    """The environment of a server: the codespec that the tests import, and nothing of the user's own settings."""
    own = {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "CODESPEC_DATA": str(tmp_path / "data"),
        "CODESPEC_RUNTIME": str(tmp_path / "run"),
        "CODESPEC_IDLE_EXIT_S": "0",
        "CODESPEC_OFFER_AFTER_S": "1e9",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    }
    return {**os.environ, **own, **(more or {})}


async def until(condition: Callable[..., object], timeout: float = 120.0) -> None:
    """Poll."""
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end or condition(), "it did not happen in time"
        await asyncio.sleep(0.005)


class Raw:
    """A server at the end of a pipe, spoken to in bytes."""

    def __init__(self, process: subprocess.Popen[bytes], reader: Any, writer: Any) -> None:
        self.process = process
        self._reader = reader
        self._writer = writer
        self._messages: queue.Queue[Any] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def hang_up(self) -> None:
        """Close both ends of ours; a second call does nothing."""
        for stream in (self._writer, self._reader):
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def send(self, message: Any) -> None:
        self.send_body(json.dumps(message).encode())

    def send_body(self, body: bytes) -> None:
        self.send_bytes(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def send_bytes(self, data: bytes) -> None:
        self._writer.write(data)
        self._writer.flush()

    def request(self, id: int, method: str, params: Any = None) -> None:
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})

    def notify(self, method: str, params: Any = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def handshake(self, capabilities: Any = None) -> None:
        self.request(0, "initialize", {"processId": None, "rootUri": None, "capabilities": capabilities or {}})
        self.answer(0)
        self.notify("initialized", {})

    def open(self, text: str) -> None:
        item = {"uri": URI, "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def complete(self, id: int, line: int, character: int) -> None:
        params = {
            "textDocument": {"uri": URI},
            "position": {"line": line, "character": character},
            "context": {"triggerKind": 2},
        }
        self.request(id, "textDocument/inlineCompletion", params)

    def answer(self, id: int, timeout: float = 120.0) -> Any:
        """The response to a request; whatever comes before it is dropped."""
        return self._wait(lambda message: message.get("id") == id and "method" not in message, timeout)

    def asked(self, method: str, timeout: float = 120.0) -> Any:
        """A request or notification of the server; whatever comes before it is dropped."""
        return self._wait(lambda message: message.get("method") == method, timeout)

    def _wait(self, wanted: Callable[[Any], bool], timeout: float) -> Any:
        end = time.monotonic() + timeout
        while True:
            message = self._messages.get(timeout=max(0.0, end - time.monotonic()))
            assert isinstance(message, dict), message
            if wanted(message):
                return message

    def _read(self) -> None:
        stdout = self._reader
        try:
            while header := stdout.readline():
                assert header.startswith(b"Content-"), header
                length = int(header.split(b":")[1]) if header.startswith(b"Content-Length") else 0
                while (line := stdout.readline()) != b"\r\n":
                    assert line.startswith(b"Content-"), line
                self._messages.put(json.loads(stdout.read(length)))
        except Exception as error:
            self._messages.put(error)


@contextlib.contextmanager
def raw(tmp_path: Path, command: list[str] = STUB, env: dict[str, str] | None = None) -> Iterator[Raw]:
    """A server process that is killed at the end, if it still lives."""
    with (tmp_path / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment(tmp_path, env),
        )
    server = Raw(process, process.stdout, process.stdin)
    try:
        yield server
    finally:
        process.kill()
        process.wait()
        server.hang_up()


def run_command(server: Any, command: str, *arguments: Any) -> Any:
    return server.client.workspace_execute_command_async(types.ExecuteCommandParams(command, arguments=list(arguments)))


async def refused(server: Server, command: str, *arguments) -> str:
    """The message of the error that a command is answered with."""
    with pytest.raises(JsonRpcException) as error:
        await run_command(server, command, *arguments)
    assert error.value.code == -32602
    assert error.value.message.startswith(f"{command}: ")
    return error.value.message.removeprefix(f"{command}: ")


async def status(server: Server, *arguments) -> dict:
    return plain(await run_command(server, "codespec.status", *arguments))


def plain(value):
    """Named tuples, which the client makes of objects, as dictionaries."""
    if hasattr(value, "_asdict"):
        return {key: plain(each) for key, each in value._asdict().items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def wait_for_stderr(stderr: Path, text: str = "stub: begin", timeout: float = 120.0) -> None:
    end = time.monotonic() + timeout
    while text not in stderr.read_text():
        assert time.monotonic() < end
        time.sleep(0.005)
