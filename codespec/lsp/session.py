"""One session with one editor: its documents, its settings, and the context of a position in them.

The event loop only passes messages on. A request goes to the models and is awaited, so that a ``$/cancelRequest`` or a
newer request can stop it in the middle of decoding.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError, PyglsError
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from codespec.daemon.address import version
from codespec.daemon.client import ModelClient
from codespec.daemon.own_models import OwnModels
from codespec.lsp.completions import Completions, Usage
from codespec.lsp.connection.logs import describe, make_discreet
from codespec.lsp.connection.protocol import Protocol
from codespec.lsp.feedback import Feedback
from codespec.lsp.items import to_request
from codespec.lsp.messages import Messages
from codespec.lsp.model_fetch import ModelFetch
from codespec.lsp.model_loader import ModelLoader
from codespec.lsp.next_edits import NextEdits
from codespec.lsp.power import Power
from codespec.lsp.settings import SECTION, Settings
from codespec.lsp.statistics import UsageStatistics
from codespec.lsp.status_reporter import StatusReporter
from codespec.lsp.tasks import Tasks
from codespec.lsp.workspace import folders, notebooks
from codespec.lsp.workspace.documents import Document, open_document
from codespec.lsp.workspace.private_documents import PrivateDocuments
from codespec.lsp.workspace.surroundings import Surroundings, file_uri
from codespec.lsp.workspace.units import Units
from codespec.protocols import Snippet

if TYPE_CHECKING:
    from codespec.completion.request import Request

logger = logging.getLogger(__name__)

CONFIGURATION_WITHIN_S = 2.0
"""Seconds that loading waits for a client to answer ``workspace/configuration``."""


class CodespecServer(LanguageServer):
    """One session with one editor.

    Args:
        own: has the models where they are not shared.
        shared: whether they may be in the model process.
        status: returns the session's status as plain data; called when it may have changed, in a thread of its own.
    """

    protocol: Protocol

    def __init__(self, own: OwnModels, shared: bool, status: Callable[[CodespecServer], dict[str, Any]]) -> None:
        super().__init__("codespec", version(), notebook_document_sync=notebooks.SELECTOR, protocol_cls=Protocol)
        make_discreet()
        self.settings = Settings()
        self.messages, self.tasks = Messages(self), Tasks()
        self.models = ModelClient(self.messages.warn, own, shared)
        self.reporter = StatusReporter(partial(status, self), self.protocol.notify)
        touch = self.reporter.touch
        self.loader = ModelLoader(self, self.models, self.messages, self.tasks, touch)
        self.feedback = Feedback(self.models, UsageStatistics())
        self.power = Power()
        self.fetching = ModelFetch(self, self.messages, self.tasks)
        self.surroundings = Surroundings(file_of=self.file_of)
        self.completions, self.usage = Completions(), Usage()
        forget = self.completions.traces.forget
        self.private = PrivateDocuments(self.surroundings, self.feedback, self.messages, forget)
        self.next_edits = NextEdits(self.surroundings, self.private, self.feedback.statistics, self.folder_of)

    def document(self, uri: str) -> Document | None:
        """An open document; one that is not open is never read from the disk."""
        return open_document(self.workspace, uri)

    @property
    def units(self) -> Units:
        """The units of the protocol's columns."""
        return Units(self.workspace.position_encoding)

    def file_of(self, uri: str) -> str:
        """The URI of the file that a document is or, as a cell of a notebook, is in."""
        notebook = notebooks.notebook_of(self.workspace, uri)
        return notebook.uri if notebook is not None else file_uri(uri)

    def folder_of(self, uri: str) -> str:
        """The path of the workspace folder that a document lies in, the innermost of several; empty for none."""
        path = to_fs_path(self.file_of(uri))
        return folders.innermost(path, self._folders()) if path else ""

    def workspace_folders(self) -> list[str]:
        """The paths of all workspace folders that are on this machine."""
        return folders.paths_of(self._folders())

    def _folders(self) -> tuple[str, ...]:
        return tuple(self.workspace.folders) or (self.workspace.root_uri or "",)

    def report_server_error(self, error: Exception, source: type[PyglsError] | type[JsonRpcException]) -> None:
        """Log what pygls could not handle, without what the client sent.

        Its own version opens a message box for every malformed message.
        """
        told = isinstance(error, JsonRpcException) and not isinstance(error, JsonRpcInternalError)
        level = logging.INFO if told else logging.ERROR  # the client was told what is wrong with its message
        logger.log(level, "%s: %s", source.__name__, describe(error))

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
        """The completer's request for a position, with the settings in force there.

        Args:
            cursor: whether it is the user's cursor; else no snippets of other files are added.
        """
        excerpt = notebooks.within(self.workspace, document, document.excerpt(row, column))
        folder = self.folder_of(document.uri)
        shown: tuple[Snippet, ...] = ()
        if cursor:
            self.surroundings.visited(document, row, folder)
            shown = self.surroundings.context(document, row, folder)
        request = to_request(document, excerpt, notebooks.name_of(self.workspace, document), folder, shown)
        request = replace(request, language=notebooks.language_of(self.workspace, document) or request.language)
        own = self.settings.config.for_language(request.language)
        grammar = self.settings.grammar_of(self.file_of(document.uri)) or own.grammar
        return replace(request, draft=own.draft, grammar=grammar)

    def use_settings(self, messages: list[str], again: bool = False) -> None:
        """Follow settings that were just read, and show their problems.

        Args:
            again: load the models again even where the change does not concern them.
        """
        self.messages.settings(messages)
        self.settings_changed(again)

    def settings_changed(self, again: bool = False) -> None:
        """Follow changed settings; the models are loaded again only where the change concerns them."""
        config = self.settings.config
        logging.getLogger("codespec").setLevel(config.log_level.upper())
        self.feedback.use(config)
        self.reporter.enabled = config.status
        self.surroundings.use(config.context)
        self.completions.forget_all()  # what other models would have said
        documents = (self.document(uri) for uri in self.workspace.text_documents)
        self.next_edits.use(config.edits.mode, [each for each in documents if each is not None])
        self.loader.use(config, again)
        self.reporter.touch()

    def shutdown(self) -> None:
        """End the session. Unlike pygls this does not wait for the thread that reads standard input."""
        self.next_edits.applied.finish()
        self.feedback.statistics.save()
        self.fetching.cancel()
        if self._stop_event is not None:
            self._stop_event.set()
        if self._thread_pool is not None:
            self._thread_pool.shutdown(wait=False, cancel_futures=True)
        if self._server is not None:
            self._server.close()
