"""The language server: ``textDocument/inlineCompletion`` over a completer that runs in its own thread.

The event loop only moves messages. A request goes to the decode thread and is awaited there, so that a
``$/cancelRequest`` or a newer request can stop it in the middle of decoding.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError, PyglsError
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from codespec.completion.cache import CompletionCache
from codespec.completion.executor import DecodeThread
from codespec.daemon.place import version
from codespec.lsp import commands, notebooks
from codespec.lsp.ahead import UNASKED, did_change
from codespec.lsp.answers import inline_completion
from codespec.lsp.documents import Document
from codespec.lsp.items import to_request
from codespec.lsp.kept import Kept
from codespec.lsp.lessons import Lessons
from codespec.lsp.logs import describe, make_discreet
from codespec.lsp.menu import register_where_needed
from codespec.lsp.offer import offer_model
from codespec.lsp.opened import did_close, did_open, did_save
from codespec.lsp.progress import Progress
from codespec.lsp.protocol import Protocol
from codespec.lsp.settings import SECTION, Settings, needs_reload
from codespec.lsp.statistics import Statistics
from codespec.lsp.status import Reporter
from codespec.lsp.surroundings import Surroundings, file_uri
from codespec.lsp.times import Answers
from codespec.lsp.traces import Traces
from codespec.lsp.training import Training
from codespec.lsp.units import Units
from codespec.protocols import CodespecError, Snippet
from codespec.terminal import printable_lines

if TYPE_CHECKING:
    from codespec.completion.jobs import Completes, Job
    from codespec.completion.request import Request
    from codespec.config import Config

    Loader: TypeAlias = Callable[[Config, Callable[[str, int], None]], Completes]
    """Settings and a ``progress(message, percent)`` in, a completer out; blocks, and raises CodespecError."""

logger = logging.getLogger(__name__)

FILES_EVERY_S = 0.5
"""How often it is looked whether a configuration file has changed: a client tells of none outside its folders,
and few tell of others."""

CONFIGURATION_WITHIN_S = 2.0
"""How long loading waits for a client to answer ``workspace/configuration``."""


class CodespecServer(LanguageServer):
    """One session with one editor.

    Attributes:
        requests, from_memory: how many completions were asked for, and how many of them memory has answered.
        decoding: requests that wait for the models.
        language: of the latest request.
        languages: that were asked for.
        unasked: changes since the client last asked for completions by itself.
        client_name: of the editor, as it calls itself; empty where it does not.
        ahead: of each document, what is completed before anybody asks.
    """

    protocol: Protocol

    def __init__(self, load_completer: Loader) -> None:
        super().__init__("codespec", version(), notebook_document_sync=notebooks.SELECTOR, protocol_cls=Protocol)
        make_discreet()
        self.settings = Settings()
        self.decode = DecodeThread()
        self.statistics = Statistics(self.document)
        self.kept = Kept()
        self.lessons = Lessons(self.decode, self.statistics, self.kept)
        self.training = Training(self)
        self.reporter = Reporter(self)
        self.cache = CompletionCache()
        self.surroundings = Surroundings(file_of=self.file_of)
        self.answers = Answers()
        self.traces = Traces()
        self.requests = self.from_memory = self.decoding = 0
        self.unasked = UNASKED
        self.ahead: dict[str, Job] = {}
        self.language = self.client_name = ""
        self.languages: set[str] = set()
        self.startup_messages: list[str] = []
        self._load_completer = load_completer
        self._loaded: Config | None = None
        self._progress: Progress | None = None
        self._told: list[str] = []
        self._last_failure = ""
        self._told_private: set[str] = set()
        self._private: dict[str, bool] = {}  # what `is_private` said of documents
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.end_models: Callable[[], object] = lambda: None

    def document(self, uri: str) -> Document | None:
        """An open document; one that is not open is never read from the disk."""
        document = self.workspace.text_documents.get(unquote(uri))
        return document if isinstance(document, Document) else None

    @property
    def units(self) -> Units:
        """What columns are counted in."""
        return Units(self.workspace.position_encoding)

    def file_of(self, uri: str) -> str:
        """The URI of the file that a document is or, as a cell of a notebook, is in."""
        notebook = notebooks.notebook_of(self, uri)
        return notebook.uri if notebook is not None else file_uri(uri)

    def folder_of(self, uri: str) -> str:
        """The path of the workspace folder that a document lies in, the innermost of several; empty for none."""
        path = to_fs_path(self.file_of(uri))
        if not path:
            return ""
        found = [folder for folder in self.workspace_folders() if Path(path).is_relative_to(folder)]
        return max(found, key=lambda folder: len(Path(folder).parts), default="")

    def is_private(self, document: Document, folder: str) -> bool:
        """Whether a document must be neither completed nor learnt; why is told once."""
        reason = self.surroundings.private(document, folder)
        before, self._private[document.uri] = self._private.get(document.uri), bool(reason)
        if reason and not before:
            self.traces.forget(document.uri)
        if reason and folder and not before:  # it may have been kept line by line, or in an earlier session
            self.lessons.forget_file(folder, to_fs_path(self.file_of(document.uri)) or "", learnt=before is False)
        if reason and document.uri not in self._told_private:
            self._told_private.add(document.uri)
            self.log(f"no completions in {document.filename}: {reason}")
        return bool(reason)

    def workspace_folders(self) -> list[str]:
        """The paths of all workspace folders that are on this machine."""
        uris = list(self.workspace.folders) or [self.workspace.root_uri or ""]
        return [path for uri in uris if uri and (path := to_fs_path(uri))]

    def report_server_error(self, error: Exception, source: type[PyglsError] | type[JsonRpcException]) -> None:
        """Log what pygls could not handle, without what the client sent.

        Its own version opens a message box for every malformed message.
        """
        told = isinstance(error, JsonRpcException) and not isinstance(error, JsonRpcInternalError)
        level = logging.INFO if told else logging.ERROR  # the client was told what is wrong with its message
        logger.log(level, "%s: %s", source.__name__, describe(error))

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
        self.window_log_message(types.LogMessageParams(kind, printable_lines(message)))

    def warn(self, message: str, show: bool = True) -> None:
        """Write to the client's log, and show it to the user; from any thread, once models are being loaded."""

        def say() -> None:
            self.log(message, types.MessageType.Warning)
            if show:
                text = f"codespec: {message}"
                self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, text))

        logger.warning("%s", message)
        with contextlib.suppress(RuntimeError):  # the loop is closed: the session is over
            if self._loop is not None:
                self._loop.call_soon_threadsafe(say)

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

    def request_at(self, document: Document, row: int, column: int, cursor: bool = True) -> Request:
        """What the completer needs to know about a place, with what is in force there.

        Args:
            cursor: whether somebody works there; else nothing is shown of other files.
        """
        excerpt = notebooks.within(self, document, document.excerpt(row, column))
        folder = self.folder_of(document.uri)
        shown: tuple[Snippet, ...] = ()
        if cursor:
            self.surroundings.visited(document, row, folder)
            shown = self.surroundings.context(document, row, folder)
        request = to_request(document, excerpt, notebooks.name_of(self, document), folder, shown)
        own = self.settings.config.for_language(request.language)
        grammar = self.settings.grammar_of(self.file_of(document.uri)) or own.grammar
        return replace(request, draft=own.draft, grammar=grammar)

    def use_settings(self, messages: list[str], again: bool = False) -> None:
        """Act on settings that were just read, and show what is wrong with them.

        Args:
            again: load the models again even where the change does not concern them.
        """
        self.tell(messages)
        self.settings_changed(again)

    def settings_changed(self, again: bool = False) -> None:
        """Act on other settings; the models are loaded again only where the change concerns them."""
        config = self.settings.config
        logging.getLogger("codespec").setLevel(config.log_level.upper())
        self.statistics.enabled = config.statistics
        self.kept.enabled = config.keep_accepted
        self.surroundings.use(config.context)
        self.cache.forget()
        self.ahead.clear()  # what other models would have said
        if again or self._loaded is None or needs_reload(self._loaded, config):
            self._load(config)
        self._loaded = config
        self.reporter.touch()

    def _load(self, config: Config) -> None:
        """Load the models in the decode thread and show how far that is."""
        loop = self._loop = asyncio.get_running_loop()
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
            self.reporter.touch()
            if error is not None:
                self.tell_failure(error)
            else:
                self.log("the model is loaded")

        load = partial(self._load_completer, config, partial(post, progress.report))
        self.decode.load(load, partial(post, loaded))

    def shutdown(self) -> None:
        """End the session. Unlike pygls this does not wait for the thread that reads standard input."""
        self.statistics.finish()
        self.training.kill()
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
    server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)(notebooks.did_open)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)(notebooks.did_change)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)(notebooks.did_close)
    # Without the options object pygls does not advertise the capability.
    server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())(inline_completion)
    commands.register(server)
    return server


def initialize(ls: CodespecServer, params: types.InitializeParams) -> None:
    """Read the settings; what is wrong with them is told once the client listens."""
    ls.protocol.use_documents()
    ls.client_name = params.client_info.name if params.client_info else ""
    register_where_needed(ls, params.capabilities)
    ls.startup_messages = ls.settings.start(_workspace_folder(params), params.initialization_options)


async def initialized(ls: CodespecServer, params: types.InitializedParams) -> None:
    """Ask for settings, then load the models."""
    options = await ls.pull_settings()
    ls.use_settings(ls.startup_messages if options is None else ls.settings.change(options))
    ls.keep(asyncio.create_task(ls.statistics.keep_saving()))
    ls.keep(asyncio.create_task(_watch_files(ls)))
    ls.keep(asyncio.create_task(offer_model(ls)))
    await ls.listen_for_settings()


async def _watch_files(ls: CodespecServer) -> None:
    """Take over what was changed in the configuration files."""
    while True:
        await asyncio.sleep(FILES_EVERY_S)
        if ls.settings.outdated:
            ls.use_settings(ls.settings.read())


async def did_change_configuration(ls: CodespecServer, params: types.DidChangeConfigurationParams) -> None:
    """Take over new settings."""
    # Some clients only say that something has changed; what they said before holds where they do not answer.
    pulled = None if params.settings else await ls.pull_settings()
    options = params.settings if pulled is None else pulled
    ls.use_settings(ls.settings.read() if options is None else ls.settings.change(options))


def shut_down(ls: CodespecServer, params: None) -> None:
    """Stop decoding, start to free the models and keep the statistics; ``exit`` follows."""
    ls.decode.close(timeout=0)
    ls.training.kill()
    ls.statistics.finish()


def _workspace_folder(params: types.InitializeParams) -> Path | None:
    folders = params.workspace_folders or []
    uri = folders[0].uri if folders else params.root_uri
    path = to_fs_path(uri) if uri else params.root_path
    return Path(path) if path else None
