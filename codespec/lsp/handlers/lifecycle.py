"""The start and the end of a session."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types
from pygls.uris import to_fs_path

from codespec.lsp.handlers.completion import register_where_needed
from codespec.lsp.handlers.configuration import watch_files
from codespec.lsp.model_offer import offer_model
from codespec.lsp.session import CodespecServer


def initialize(ls: CodespecServer, params: types.InitializeParams) -> None:
    """Read the settings; problems with them are shown once the client listens."""
    ls.protocol.use_documents()
    ls.usage.client_name = params.client_info.name if params.client_info else ""
    register_where_needed(ls, params.capabilities)
    ls.settings.start(_workspace_folder(params), params.initialization_options)


async def initialized(ls: CodespecServer, params: types.InitializedParams) -> None:
    """Ask for settings, then load the models."""
    options = await ls.pull_settings()
    ls.use_settings(ls.settings.read() if options is None else ls.settings.change(options))
    ls.tasks.start(ls.feedback.statistics.keep_saving())
    ls.tasks.start(watch_files(ls))
    ls.tasks.start(offer_model(ls))
    await ls.listen_for_settings()


def shut_down(ls: CodespecServer, params: None) -> None:
    """Stop decoding, start to free the models and keep the statistics; ``exit`` follows."""
    ls.models.close()
    ls.fetching.cancel()
    ls.next_edits.applied.finish()
    ls.feedback.statistics.save()


def _workspace_folder(params: types.InitializeParams) -> Path | None:
    folders = params.workspace_folders or []
    uri = folders[0].uri if folders else params.root_uri
    path = to_fs_path(uri) if uri else params.root_path
    return Path(path) if path else None
