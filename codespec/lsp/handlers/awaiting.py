"""What handlers await of the decode thread."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from codespec.lsp.session import CodespecServer

if TYPE_CHECKING:
    from codespec.worker.jobs import Job

START_WITHIN_S = 30.0
"""A request that has not begun by then, because the model is still loading, is answered ``null``."""


async def result_of(ls: CodespecServer, job: Job) -> Any:
    """What a job comes to; it is cancelled with the request that waits for it."""
    give_up = asyncio.get_running_loop().call_later(START_WITHIN_S, ls.decode.give_up, job)
    try:
        return await asyncio.wrap_future(job.future)
    except asyncio.CancelledError:
        ls.decode.cancel(job)
        raise
    finally:
        give_up.cancel()
