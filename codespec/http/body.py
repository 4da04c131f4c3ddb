"""The body of a request, in bounds of size and time, and of what all bodies hold together."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from codespec.http.apis.fields import Fields, read_fields
from codespec.http.apis.json_shape import size_of
from codespec.http.aside import SMALL, Aside
from codespec.http.errors import HttpError
from codespec.http.limits import HttpLimits
from codespec.http.security import CLIENT

_CLOSE = {"Connection": "close"}
"""Of answers to who is too slow. Others are let go on sending for a while: a connection closed on them would lose the
answer."""
_SHARE = "codespec.share"
"""The key of a scope under which the share of a request is."""


class Memory:
    """What bodies may take together: all of them, and of that three quarters those of one client.

    Args:
        most: bytes.
    """

    def __init__(self, most: int) -> None:
        self.most, self.most_of_client = most, most - most // 4
        self.taken: Counter[str] = Counter()
        self.lock = threading.Lock()

    def check(self, client: str, more: int) -> None:
        """Refuse what there is no room for.

        Raises:
            HttpError: there is none.
        """
        own = self.taken[client] + more > self.most_of_client
        if own or self.taken.total() + more > self.most:
            whose, most = ("your", self.most_of_client) if own else ("all", self.most)
            message = (
                f"the bodies of {whose} requests may take {most >> 20:,} MiB of memory together, and there is no room "
                "for this one; try again later"
            )
            raise HttpError(503, message, code="bodies_full", headers={"Retry-After": "1"})


class Share:
    """What the body of one request takes of the memory, until it is given back. From any thread."""

    def __init__(self, memory: Memory, client: str) -> None:
        self._memory, self._client = memory, client
        self._size = 0

    def grow(self, size: int) -> None:
        """Take so many bytes in all; a small body takes none.

        Raises:
            HttpError: 413 where the body alone is larger than there is memory, 503 where there is no room now. All is
                given back.
        """
        memory, more = self._memory, max(0, size - SMALL) - self._size
        try:
            if size - SMALL > memory.most_of_client:
                message = f"the values of the body take about {size >> 20:,} MiB of memory"
                limit = f"the bodies of all your requests may take {memory.most_of_client >> 20:,}"
                raise HttpError(413, f"{message}, {limit}", code="body_too_large")
            with memory.lock:
                if more > 0:
                    memory.check(self._client, more)
                    memory.taken[self._client] += more
                    self._size += more
        except HttpError:
            self.give_back()  # before others are refused for what is not read any further
            raise

    def give_back(self) -> None:
        """Once the request is answered."""
        with self._memory.lock:
            self._memory.taken[self._client] -= self._size
            self._memory.taken += Counter()  # without those that take nothing
            self._size = 0


class Bodies:
    """ASGI middleware that gives every request a share of the memory for bodies, for as long as it is answered."""

    def __init__(self, app: ASGIApp, limits: HttpLimits) -> None:
        self._app, self._memory = app, Memory(limits.bodies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and take the share back."""
        share = scope[_SHARE] = Share(self._memory, scope.get(CLIENT, ""))
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
