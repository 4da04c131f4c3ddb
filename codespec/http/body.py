"""The body of a request, in bounds of size and time, and of what all bodies hold together."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from codespec.http.apis.fields import Fields, read_fields
from codespec.http.apis.json_shape import size_of
from codespec.http.aside import SMALL, Aside
from codespec.http.errors import HttpError
from codespec.http.limits import HttpLimits

_CLOSE = {"Connection": "close"}
"""Of answers to who is too slow. Others are let go on sending for a while: a connection closed on them would lose the
answer."""
_SHARE = "codespec.share"
"""The key of a scope under which the share of a request is."""


class Share:
    """What the body of one request takes of the memory for all, until it is given back. From any thread.

    Args:
        most: bytes that all of ``held`` may take together.
    """

    def __init__(self, held: _Held, most: int) -> None:
        self._held, self._most = held, most
        self._size = 0

    def grow(self, size: int) -> None:
        """Take so many bytes, unless as many are taken already; a small body takes none of the memory for all.

        Raises:
            HttpError: 413 where the body alone is larger than all may be, 503 where there is no room now.
        """
        if size - SMALL > self._most:
            raise HttpError(
                413, f"the values of the body take about {size >> 20:,} MiB of memory, all bodies together may take "
                f"{self._most >> 20:,}", code="body_too_large",
            )  # fmt: skip
        with self._held.lock:
            more = max(0, size - SMALL) - self._size
            if more <= 0:
                return
            if self._held.size + more > self._most:
                message = (
                    f"the bodies of all requests may take {self._most >> 20:,} MiB of memory together, and there is "
                    "no room for this one; try again later"
                )
                raise HttpError(503, message, code="bodies_full", headers={"Retry-After": "1"})
            self._held.size += more
            self._size += more

    def give_back(self) -> None:
        """Once the request is answered."""
        with self._held.lock:
            self._held.size -= self._size
            self._size = 0


class _Held:
    """Bytes that are taken."""

    def __init__(self) -> None:
        self.size, self.lock = 0, threading.Lock()


class Bodies:
    """ASGI middleware that gives every request a share of the memory for bodies, for as long as it is answered."""

    def __init__(self, app: ASGIApp, limits: HttpLimits) -> None:
        self._app, self._most = app, limits.bodies
        self._held = _Held()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and take the share back."""
        share = scope[_SHARE] = Share(self._held, self._most)
        try:
            await self._app(scope, receive, send)
        finally:
            share.give_back()


@dataclass(frozen=True)
class Body:
    """A body that was read.

    Attributes:
        size: bytes that its values take, about.
    """

    fields: Fields
    size: int


async def body_of(request: Request, limits: HttpLimits, aside: Aside, status: int = 400) -> Body:
    """The fields of a JSON body.

    Args:
        aside: where it is read.
        status: of the refusal of a bad field.

    Raises:
        HttpError: it is too large, too slow, or no JSON, or too much of the memory for all bodies is taken.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise HttpError(415, "the body must be JSON: send `Content-Type: application/json`")
    length, share = request.headers.get("content-length", "0"), request.scope[_SHARE]
    announced = int(length[:20]) if length.isdigit() else 0
    if announced > limits.body:
        raise _too_large(limits)
    share.grow(announced)
    try:
        data = await asyncio.wait_for(_read(request, limits, share), limits.body_s)
    except (asyncio.TimeoutError, TimeoutError):
        raise HttpError(408, f"the body did not arrive within {limits.body_s:g} s", headers=_CLOSE) from None
    except ClientDisconnect:
        raise HttpError(400, "the client went away", headers=_CLOSE) from None

    def read() -> Body:
        size, depth = size_of(data)
        share.grow(size)
        return Body(read_fields(data, depth, status), size)

    return await aside.run(len(data), read)


def _too_large(limits: HttpLimits) -> HttpError:
    return HttpError(413, f"the body is larger than {limits.body >> 20} MiB")


async def _read(request: Request, limits: HttpLimits, share: Share) -> bytearray:
    """The body."""
    data = bytearray()
    async for part in request.stream():
        if len(data) + len(part) > limits.body:
            raise _too_large(limits)
        share.grow(len(data) + len(part))
        data += part
    return data
