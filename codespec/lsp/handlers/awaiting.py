"""What handlers await of the models."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from codespec.lsp.session import CodespecServer

if TYPE_CHECKING:
    from codespec.daemon.asked import Asked

START_WITHIN_S = 30.0
"""A request that has not begun by then, because the model is still loading, is answered ``null``."""


async def result_of(ls: CodespecServer, asked: Asked) -> Any:
    """The answer; what was asked for is cancelled with the request that waits for it."""
    give_up = asyncio.get_running_loop().call_later(START_WITHIN_S, ls.models.give_up, asked)
    try:
        return await asked.future
    except asyncio.CancelledError:
        ls.models.cancel(asked)
        raise
    finally:
        give_up.cancel()
