"""Answers over HTTP: whole, or as server-sent events while they grow; who goes away stops the work."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any, Protocol, TypeAlias

from starlette.types import Receive, Scope, Send

from codespec.errors import CodespecError
from codespec.http.aside import Aside
from codespec.http.errors import HttpError
from codespec.http.order import Piece, Totals
from codespec.http.queue import FairQueue, Ticket
from codespec.remote.errors import RemoteError

logger = logging.getLogger(__name__)

Event: TypeAlias = "Piece | Totals | Exception"
DONE = b"data: [DONE]\n\n"
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_AT_A_TIME = 64
"""Events that are written at once."""
_OF_A_TOKEN = 100
"""Bytes in which a token is told."""


class Shape(Protocol):
    """How one API writes an answer."""

    def piece(self, piece: Piece) -> Iterator[dict[str, Any]]:
        """The events of a piece."""
        ...

    def last(self, totals: Totals) -> Iterator[dict[str, Any]]:
        """The events at the end."""
        ...

    def whole(self, pieces: list[Piece], totals: Totals) -> Any:
        """The body of an answer that is not streamed: all ``pieces`` together, and the tokens counted."""
        ...

    @property
    def done(self) -> bytes:
        """What the stream ends with."""
        ...


def event(data: Any) -> bytes:
    """``data`` as one server-sent event."""
    return b"data: " + compact(data) + b"\n\n"


def compact(data: Any) -> bytes:
    """JSON without blanks, in ASCII."""
    return _ENCODER.encode(data).encode()


class Answer:
    """An ASGI response for a ticket of the queue.

    Args:
        stream: whether it is sent while it grows.
        aside: where large answers are written.
        size: bytes of the request, of which an answer may repeat some.
    """

    def __init__(
        self, queue: FairQueue, ticket: Ticket, shape: Shape, stream: bool, aside: Aside, size: int = 0
    ) -> None:
        self._queue, self._ticket, self._shape, self._stream = queue, ticket, shape, stream
        self._aside, self._size = aside, size

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and take the ticket back where the client goes away."""
        answering = asyncio.ensure_future(self._answer(send))
        leaving = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                answering.result()
        finally:
            self._queue.cancel(self._ticket)
            answering.cancel()
            leaving.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)

    async def _answer(self, send: Send) -> None:
        first = await self._ticket.events.get()
        if self._stream and not isinstance(first, Exception):
            await self._events(first, send)
        else:
            await self._whole(first, send)

    async def _whole(self, latest: Event, send: Send) -> None:
        pieces: list[Piece] = []
        while isinstance(latest, Piece):
            pieces.append(latest)
            latest = await self._ticket.events.get()
        if isinstance(latest, Exception):
            refused = refusal(latest)
            await send_json(send, refused.status, refused.as_json(), refused.headers)
            return
        totals, size = latest, self._size * len({each.index for each in pieces}) + sum(map(_size, pieces))
        data = await self._aside.run(size, lambda: compact(self._shape.whole(pieces, totals)))
        await _send(send, 200, data)

    async def _events(self, first: Event, send: Send) -> None:
        head = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        async for batch in self._batches(first):
            size = sum(_size(each) if isinstance(each, Piece) else self._size for each in batch)
            body = await self._aside.run(size, partial(self._all_written, batch))
            if body:
                await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _batches(self, latest: Event) -> AsyncIterator[list[Event]]:
        """All that is there at a time, up to the end."""
        events = self._ticket.events
        while True:
            batch = [latest]
            while isinstance(batch[-1], Piece) and not events.empty() and len(batch) < _AT_A_TIME:
                batch.append(events.get_nowait())
            yield batch
            if not isinstance(batch[-1], Piece):
                return
            latest = await events.get()

    def _all_written(self, batch: list[Event]) -> bytes:
        return b"".join(map(self._written, batch))

    def _written(self, each: Event) -> bytes:
        if isinstance(each, Piece):
            return b"".join(map(event, self._shape.piece(each)))
        if isinstance(each, Totals):
            return b"".join(map(event, self._shape.last(each))) + self._shape.done
        return event(refusal(each).as_json())


def refusal(error: Exception) -> HttpError:
    """What a failure is told as; the text of an unknown one may quote a prompt."""
    if isinstance(error, HttpError):
        return error
    if isinstance(error, RemoteError):
        return HttpError(502, str(error), code="engine_away")
    if isinstance(error, CodespecError):
        return HttpError(500, str(error))
    logger.error("a request failed", exc_info=error)
    return HttpError(500, f"internal failure ({type(error).__name__}); see the server's log")


def _size(piece: Piece) -> int:
    """Bytes that a piece has once it is written, about."""
    return len(piece.text) + 8 * len(piece.tokens) + sum(_OF_A_TOKEN * (1 + len(each.best)) for each in piece.chances)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def send_json(send: Send, status: int, data: Any, headers: dict[str, str] | None = None) -> None:
    """Send ``data`` as JSON with its length, in one piece."""
    await _send(send, status, compact(data), headers)


async def _send(send: Send, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
    head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    head += [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
