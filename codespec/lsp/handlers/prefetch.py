"""Work ahead of requests: prefilling the typed text, and completing after a completion that is shown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lsprotocol import types

from codespec.lsp.completions import UNASKED
from codespec.lsp.session import CodespecServer
from codespec.lsp.workspace import notebooks

if TYPE_CHECKING:
    from codespec.completion.request import Request

logger = logging.getLogger(__name__)


def changed(ls: CodespecServer, uri: str, changes: Sequence[types.TextDocumentContentChangeEvent]) -> None:
    """Prefill after changes of a document, which are applied already: editors wait a moment before they ask."""
    document = ls.document(uri)
    if document is None:
        return
    folder = ls.folder_of(uri)
    ls.surroundings.changed(document, folder, changes)
    change = changes[-1] if changes else None
    if ls.private.holds(document, folder) or not isinstance(change, types.TextDocumentContentChangePartial):
        return
    row, column = document.end_of_change(change)
    if notebooks.is_foreign(ls.workspace, document, row):
        return
    request = ls.request_at(document, row, column)
    config = ls.settings.config
    if not config.for_language(request.language).enabled or ls.completions.cache.find(uri, request) is not None:
        return
    ls.completions.unasked += 1
    if ls.power.is_quiet(config.quiet):
        return
    if config.generate_ahead and config.automatic and ls.completions.unasked <= UNASKED:
        ls.tasks.start(_complete(ls, uri, replace(request, ahead=True)))
    elif config.prefill:
        ls.models.prefill(uri, request)


def prefetch(ls: CodespecServer, uri: str, request: Request, text: str) -> None:
    r"""Complete after a completion that is shown, so that the next one is there when that is accepted.

    Args:
        text: of the completion, with ``\n`` as its line ends.
    """
    offset = request.offset
    if "\r\n" in request.text:  # as the editor will write it
        text = text.replace("\n", "\r\n")
    text = request.text[:offset] + text + request.text[offset:]
    following = replace(request, text=text, offset=offset + len(text) - len(request.text), count=1, ahead=True)
    if ls.completions.cache.find(uri, following) is None:
        ls.tasks.start(_complete(ls, uri, following))


async def _complete(ls: CodespecServer, uri: str, request: Request) -> None:
    """Put the answer to a request into the completion cache. A request that comes meanwhile takes it over."""
    config = ls.settings.config
    key = replace(request, ahead=False)
    asked = ls.completions.ahead[uri] = ls.models.submit("complete", uri, ahead=True, key=key, request=request)
    try:
        completions = await asked.future
        if completions is not None and ls.settings.config is config:
            ls.completions.keep(uri, request, completions, current=True)
    except asyncio.CancelledError:
        ls.models.cancel(asked)
        raise
    except Exception as error:  # who asks for it will be told
        logger.info("nothing could be completed ahead: %s", error)
    finally:
        if ls.completions.ahead.get(uri) is asked:
            del ls.completions.ahead[uri]
