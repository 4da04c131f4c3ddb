"""The language server: ``textDocument/inlineCompletion`` over a completer that runs in its own thread.

The event loop only moves messages. A request goes to the decode thread and is awaited there, so that a
``$/cancelRequest`` or a newer request can stop it in the middle of decoding.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest, JsonRpcServerNotInitialized, PyglsError
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.uris import to_fs_path

from codespec.completion.cache import CompletionCache
from codespec.lsp.ahead import did_change, prefetch
from codespec.lsp.documents import Document, Documents
from codespec.lsp.executor import DecodeThread
from codespec.lsp.items import to_item, to_request
from codespec.lsp.lessons import ACCEPTED, FORGET, Lessons
from codespec.lsp.progress import Progress
from codespec.lsp.settings import SECTION, Settings, needs_reload
from codespec.lsp.times import Answers
from codespec.protocols import CodespecError

if TYPE_CHECKING:
    from codespec.completion.completer import Completer, Completion, Request
    from codespec.config import Config

    Loader: TypeAlias = Callable[[Config, Callable[[str, int], None]], Completer]
    """Settings and a ``progress(message, percent)`` in, a completer out; blocks, and raises CodespecError."""

logger = logging.getLogger(__name__)

START_WITHIN_S = 30.0
"""A request that has not begun by then, because the model is still loading, is answered ``null``."""

CONFIGURATION_WITHIN_S = 2.0
"""How long loading waits for a client to answer ``workspace/configuration``."""

STATUS = "codespec.status"
"""The command that tells what is loaded and how it has done so far."""


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

    def handle_message(self, message: Any) -> None:
        """Act on a message, unless it comes out of order: pygls would let handlers fail, or not answer at all."""
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
        if self._shutdown:
            return JsonRpcInvalidRequest("the server was shut down")
        if self._workspace is None and method != types.INITIALIZE:
            return JsonRpcServerNotInitialized("the first request must be initialize")
        if self._workspace is not None and method == types.INITIALIZE:
            return JsonRpcInvalidRequest("the server is initialized already")
        return None


class CodespecServer(LanguageServer):
    """One session with one editor."""

    protocol: Protocol

    def __init__(self, load_completer: Loader) -> None:
        super().__init__("codespec", _version(), protocol_cls=Protocol)
        self.settings = Settings()
        self.decode = DecodeThread()
        self.lessons = Lessons(self.decode)
        self.cache = CompletionCache()
        self.requests = self.from_memory = 0
        self.answers = Answers()
        self.startup_messages: list[str] = []
        self._load_completer = load_completer
        self._loaded: Config | None = None
        self._progress: Progress | None = None
        self._told: list[str] = []
        self._last_failure = ""
        self._tasks: set[asyncio.Task[None]] = set()

    def document(self, uri: str) -> Document | None:
        """An open document; one that is not open is never read from the disk."""
        document = self.workspace.text_documents.get(unquote(uri))
        return document if isinstance(document, Document) else None

    def folder_of(self, uri: str) -> str:
        """The path of the workspace folder that a document lies in, the innermost of several; empty for none."""
        path = to_fs_path(uri)
        if not path:
            return ""
        found = [folder for folder in self.workspace_folders() if Path(path).is_relative_to(folder)]
        return max(found, key=lambda folder: len(Path(folder).parts), default="")

    def workspace_folders(self) -> list[str]:
        """The paths of all workspace folders that are on this machine."""
        uris = list(self.workspace.folders) or [self.workspace.root_uri or ""]
        return [path for uri in uris if uri and (path := to_fs_path(uri))]

    def report_server_error(self, error: Exception, source: type[PyglsError] | type[JsonRpcException]) -> None:
        """Log what pygls could not handle. Its own version opens a message box for every malformed message."""
        logger.error("%s: %s", source.__name__, error)

    def tell(self, messages: list[str]) -> None:
        """Show what is wrong with the settings, all in one message, unless it was shown last time."""
        if messages and messages != self._told:
            text = "codespec: " + "\n".join(messages)
            self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, text))
            for message in messages:
                self.log(message, types.MessageType.Warning)
        self._told = messages

    def log(self, message: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Write to the client's log."""
        self.window_log_message(types.LogMessageParams(kind, message))

    async def pull_settings(self) -> Any:
        """The client's settings, or None where it cannot be asked or does not answer."""
        workspace = self.client_capabilities.workspace
        if workspace is None or not workspace.configuration:
            return None
        params = types.ConfigurationParams(items=[types.ConfigurationItem(section=SECTION)])
        try:
            request = self.workspace_configuration_async(params)
            answer = await asyncio.wait_for(request, CONFIGURATION_WITHIN_S)
        except Exception as error:
            logger.warning("workspace/configuration: %s", str(error) or type(error).__name__)
            return None
        return answer[0] if answer else None

    async def listen_for_settings(self) -> None:
        """Ask the client to say when settings change, which some only do when asked."""
        workspace = self.client_capabilities.workspace
        supported = workspace and workspace.did_change_configuration
        if not supported or not supported.dynamic_registration:
            return
        method = types.WORKSPACE_DID_CHANGE_CONFIGURATION
        try:
            registrations = [types.Registration(id=method, method=method)]
            await self.client_register_capability_async(types.RegistrationParams(registrations))
        except Exception as error:
            logger.info("the client does not tell of changed settings: %s", error)

    def use_settings(self, messages: list[str]) -> None:
        """Act on settings that were just read; the models are loaded again only where the change concerns them."""
        config = self.settings.config
        logging.getLogger("codespec").setLevel(config.log_level.upper())
        self.tell(messages)
        if self._loaded is None or needs_reload(self._loaded, config):
            self._loaded = config
            self.cache.forget()
            self._load(config)

    def _load(self, config: Config) -> None:
        """Load the models in the decode thread and show how far that is."""
        loop = asyncio.get_running_loop()
        self._last_failure = ""
        if self._progress is not None:
            self._progress.end("replaced")
        self._progress = progress = Progress(self, "codespec")
        progress.report("loading the model", 0)
        self.keep(asyncio.create_task(progress.start()))

        def post(function: Callable[..., None], *arguments: Any) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the session is over
                loop.call_soon_threadsafe(function, *arguments)

        def loaded(error: Exception | None) -> None:
            progress.end("failed" if error else "ready")
            if error is not None:
                self.tell_failure(error)
            else:
                self.log("the model is loaded")

        load = partial(self._load_completer, config, partial(post, progress.report))
        self.decode.load(load, partial(post, loaded))

    def shutdown(self) -> None:
        """End the session. Unlike pygls this does not wait for the thread that reads standard input."""
        if self._stop_event is not None:
            self._stop_event.set()
        if self._thread_pool is not None:
            self._thread_pool.shutdown(wait=False, cancel_futures=True)
        if self._server is not None:
            self._server.close()

    def tell_failure(self, error: Exception) -> None:
        """Show why there are no completions, once until something else goes wrong."""
        if not isinstance(error, CodespecError):
            logger.error("the model could not be loaded", exc_info=error)
        text = f"codespec: {str(error) or type(error).__name__}"
        if text == self._last_failure:
            return
        self._last_failure = text
        self.window_show_message(types.ShowMessageParams(types.MessageType.Error, text))
        self.log(text, types.MessageType.Error)

    def keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def create_server(load_completer: Loader) -> CodespecServer:
    """A server that is ready to be started.

    Args:
        load_completer: called in the decode thread, after ``initialized`` and whenever the settings of the
            models change.
    """
    server = CodespecServer(load_completer)
    server.feature(types.INITIALIZE)(initialize)
    server.feature(types.INITIALIZED)(initialized)
    server.feature(types.SHUTDOWN)(shut_down)
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(did_change_configuration)
    # Open and close are advertised only where there are handlers for them.
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(did_open)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(did_change)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(did_save)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(did_close)
    # Without the options object pygls does not advertise the capability.
    server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())(inline_completion)
    server.command(ACCEPTED)(accepted)
    server.command(FORGET)(forget_workspace)
    server.command(STATUS)(status)
    return server


def initialize(ls: CodespecServer, params: types.InitializeParams) -> None:
    """Read the settings; what is wrong with them is told once the client listens."""
    ls.protocol.use_documents()
    ls.startup_messages = ls.settings.start(_workspace_folder(params), params.initialization_options)


async def initialized(ls: CodespecServer, params: types.InitializedParams) -> None:
    """Ask for settings, then load the models."""
    options = await ls.pull_settings()
    ls.use_settings(ls.startup_messages if options is None else ls.settings.change(options))
    await ls.listen_for_settings()


async def did_change_configuration(ls: CodespecServer, params: types.DidChangeConfigurationParams) -> None:
    """Take over new settings."""
    # Some clients only say that something has changed.
    ls.use_settings(ls.settings.change(params.settings or await ls.pull_settings()))


def did_open(ls: CodespecServer, params: types.DidOpenTextDocumentParams) -> None:
    """Learn the text, which pygls keeps."""
    learn(ls, params.text_document.uri)


def did_save(ls: CodespecServer, params: types.DidSaveTextDocumentParams) -> None:
    """Learn the text."""
    learn(ls, params.text_document.uri)


def learn(ls: CodespecServer, uri: str) -> None:
    """Let the drafts learn a document, once no request waits."""
    document = ls.document(uri)
    if document is None:
        return
    request = to_request(document, 0, 0, ls.folder_of(uri))
    config = ls.settings.config
    if config.learn and config.for_language(request.language).enabled:
        ls.lessons.document(uri, request)


async def accepted(ls: CodespecServer, *arguments: Any) -> None:
    """The user has taken the completion that was offered under an identifier, the first argument."""
    await asyncio.wrap_future(ls.lessons.accepted(arguments[0] if arguments else None))


def status(ls: CodespecServer, *arguments: Any) -> dict[str, Any]:
    """The state of the models, their drafts' success, and how many requests memory has answered, how fast.

    With ``"answers"`` as an argument also what the latest answers took.
    """
    latest = {"answers": ls.answers.latest()} if "answers" in arguments else {}
    counts = {"requests": ls.requests, "from_memory": ls.from_memory, "memory_ms": ls.answers.from_memory()}
    return {**ls.decode.status(), **counts, **latest}


async def forget_workspace(ls: CodespecServer, *arguments: Any) -> None:
    """Forget all that was learnt in the folders given (paths or URIs), or in all folders of the workspace."""
    folders = [each for each in arguments if isinstance(each, str) and each] or ls.workspace_folders()
    try:
        await asyncio.wrap_future(ls.lessons.forget(folders))
    except CodespecError as error:
        ls.tell_failure(error)
        return
    ls.log("what was learnt in this workspace is forgotten")


def did_close(ls: CodespecServer, params: types.DidCloseTextDocumentParams) -> None:
    """Nobody waits for completions in a closed document."""
    ls.decode.cancel_document(params.text_document.uri)
    ls.cache.forget(params.text_document.uri)


def shut_down(ls: CodespecServer, params: None) -> None:
    """Stop decoding and start to free the models; ``exit`` follows."""
    ls.decode.close(timeout=0)


async def inline_completion(
    ls: CodespecServer, params: types.InlineCompletionParams
) -> types.InlineCompletionList | None:
    """Complete at the cursor. None, which keeps what the editor shows, where there is nothing to say about that."""
    began = perf_counter()
    try:
        document = ls.document(params.text_document.uri)
        if document is None:
            return None
        row, column = document.locate(params.position)
        request = to_request(document, row, column, ls.folder_of(params.text_document.uri))
        if not ls.settings.config.for_language(request.language).enabled:
            return None
        uri = params.text_document.uri
        completions = ls.cache.find(uri, request)
        from_memory = completions is not None
        ls.requests += 1
        ls.from_memory += from_memory
        if completions is None:
            completions = await _decode(ls, uri, request)
            if completions is None:
                return None
            ls.cache.store(uri, request, completions)
        items = [
            to_item(each, document, row, column, ls.lessons.offer(request, each.text))
            for each in completions
            if each.text
        ]
        if ls.settings.config.learn and not from_memory:
            ls.lessons.document(uri, request, edited=True)
        if ls.settings.config.prefetch and items:
            prefetch(ls, uri, request, next(each.text for each in completions if each.text))
        at = params.position
        ls.answers.add(at.line, at.character, (perf_counter() - began) * 1e3, from_memory, completions)
        return types.InlineCompletionList(items)
    except CodespecError as error:
        ls.tell_failure(error)
        return None
    except Exception:
        logger.exception("textDocument/inlineCompletion failed")
        return None


async def _decode(ls: CodespecServer, uri: str, request: Request) -> list[Completion] | None:
    job = ls.decode.submit(uri, request)
    give_up = asyncio.get_running_loop().call_later(START_WITHIN_S, ls.decode.give_up, job)
    try:
        return await asyncio.wrap_future(job.future)
    except asyncio.CancelledError:
        ls.decode.cancel(job)
        raise
    finally:
        give_up.cancel()


def _workspace_folder(params: types.InitializeParams) -> Path | None:
    folders = params.workspace_folders or []
    uri = folders[0].uri if folders else params.root_uri
    path = to_fs_path(uri) if uri else params.root_path
    return Path(path) if path else None


def _version() -> str:
    try:
        return metadata.version("codespec")
    except metadata.PackageNotFoundError:  # run from a checkout
        return "0"
