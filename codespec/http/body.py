"""The body of a request, in bounds of size and time."""

from __future__ import annotations

import asyncio

from starlette.requests import ClientDisconnect, Request

from codespec.http.apis.fields import Fields, read_fields
from codespec.http.errors import HttpError
from codespec.http.limits import HttpLimits

_CLOSE = {"Connection": "close"}
"""Of answers to who is too slow. Others are let go on sending for a while: a connection closed on them would lose the
answer."""


async def fields_in(request: Request, limits: HttpLimits, status: int = 400) -> Fields:
    """The fields of a JSON body.

    Args:
        status: of the refusal of a bad field.

    Raises:
        HttpError: it is too large, too slow, or no JSON.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise HttpError(415, "the body must be JSON: send `Content-Type: application/json`")
    length = request.headers.get("content-length", "0")
    too_large = HttpError(413, f"the body is larger than {limits.body >> 20} MiB")
    if length.isdigit() and int(length[:20]) > limits.body:
        raise too_large
    try:
        body = await asyncio.wait_for(_read(request, limits.body), limits.body_s)
    except (asyncio.TimeoutError, TimeoutError):
        raise HttpError(408, f"the body did not arrive within {limits.body_s:g} s", headers=_CLOSE) from None
    except ClientDisconnect:
        raise HttpError(400, "the client went away", headers=_CLOSE) from None
    if body is None:
        raise too_large
    return read_fields(body, status)


async def _read(request: Request, most: int) -> bytes | None:
    """The body; None where it has more than ``most`` bytes."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            return None
        parts.append(part)
    return b"".join(parts)
