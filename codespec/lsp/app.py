"""The language server: a session with its handlers."""

from __future__ import annotations

from lsprotocol import types

from codespec.daemon.own_models import OwnModels
from codespec.lsp.handlers import commands, lifecycle, next_edit, notebooks, text_documents
from codespec.lsp.handlers.configuration import did_change_configuration
from codespec.lsp.handlers.inline_completion import inline_completion
from codespec.lsp.handlers.status import status_of
from codespec.lsp.session import CodespecServer


def create_server(own: OwnModels, shared: bool) -> CodespecServer:
    """A server that is ready to be started; see ``CodespecServer``."""
    server = CodespecServer(own, shared, status_of)
    server.feature(types.INITIALIZE)(lifecycle.initialize)
    server.feature(types.INITIALIZED)(lifecycle.initialized)
    server.feature(types.SHUTDOWN)(lifecycle.shut_down)
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(did_change_configuration)
    # Open and close are advertised only where there are handlers for them.
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(text_documents.did_open)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(text_documents.did_change)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(text_documents.did_save)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(text_documents.did_close)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)(notebooks.did_open)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)(notebooks.did_change)
    server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)(notebooks.did_close)
    # Without the options object pygls does not advertise the capability.
    server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())(inline_completion)
    next_edit.register(server)
    commands.register(server)
    return server
