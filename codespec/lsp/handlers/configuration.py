"""Settings that change, in the client or in configuration files."""

from __future__ import annotations

import asyncio

from lsprotocol import types

from codespec.lsp.session import CodespecServer

FILES_EVERY_S = 0.5
"""Seconds between two looks at the configuration files: clients report no changes outside their folders, and few
report others."""


async def did_change_configuration(ls: CodespecServer, params: types.DidChangeConfigurationParams) -> None:
    """Take over new settings."""
    # Some clients only say that something has changed; what they said before holds where they do not answer.
    pulled = None if params.settings else await ls.pull_settings()
    options = params.settings if pulled is None else pulled
    ls.use_settings(ls.settings.read() if options is None else ls.settings.change(options))


async def watch_files(ls: CodespecServer) -> None:
    """Take over what was changed in the configuration files."""
    while True:
        await asyncio.sleep(FILES_EVERY_S)
        if ls.settings.outdated:
            ls.use_settings(ls.settings.read())
