"""HTTP/1.1 by hand: sends any bytes, and reads answers as strictly as the standard says (RFC 9112)."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

LONGEST = 64 << 20


class BadAnswerError(Exception):
    """What the server sent is no HTTP."""


@dataclass
class Reply:
    """One answer."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)


async def read_reply(reader: asyncio.StreamReader, method: str = "POST") -> Reply | None:
    """The next answer; None where the connection was closed before one.

    Raises:
        BadAnswerError: it is none, or was cut off.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise BadAnswerError(f"cut off in the head: {error.partial[:100]!r}") from None
        return None
    first, *lines = head[:-4].decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    if version != "HTTP/1.1" or not rest[:3].isdigit():
        raise BadAnswerError(f"no status line: {first[:100]!r}")
    reply = Reply(int(rest[:3]))
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise BadAnswerError(f"no header: {line[:100]!r}")
        reply.headers[name.lower()] = value.strip()
    if reply.status // 100 == 1:
        return await read_reply(reader, method)
    if method == "HEAD" or reply.status in (204, 304):
        return reply
    try:
        reply.body = await _body(reader, reply.headers)
    except (asyncio.IncompleteReadError, ValueError) as error:
        raise BadAnswerError(f"cut off in the body of a {reply.status}: {type(error).__name__}") from None
    return reply


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding") == "chunked":
        parts = []
        while size := int((await reader.readuntil(b"\r\n"))[:-2], 16):
            parts.append(await reader.readexactly(size))
            if await reader.readexactly(2) != b"\r\n":
                raise ValueError("a chunk has no end")
        await reader.readexactly(2)
        return b"".join(parts)
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    return await reader.read(LONGEST)


async def closed(writer: asyncio.StreamWriter) -> None:
    """Close a connection, and wait until it is."""
    writer.close()
    with suppress(OSError, asyncio.TimeoutError):
        await asyncio.wait_for(writer.wait_closed(), 5)


def written(
    body: Any = None,
    path: str = "/v1/completions",
    method: str = "POST",
    headers: dict[str, str] | None = None,
    host: str = "localhost",
) -> bytes:
    """The bytes of a request; ``body`` is bytes, or what becomes JSON."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    fields = {"Host": host, "Content-Type": "application/json", "Content-Length": str(len(data)), **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("utf-8", "surrogateescape") + data


async def ask(port: int, data: bytes, host: str = "127.0.0.1", seconds: float = 60, method: str = "POST") -> Reply:
    """The answer to a request on a connection of its own.

    Raises:
        BadAnswerError: there was none.
        TimeoutError: it did not come in time.
    """
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 20)
    try:
        writer.write(data)
        reply = await asyncio.wait_for(read_reply(reader, method), seconds)
    finally:
        await closed(writer)
    if reply is None:
        raise BadAnswerError("closed without an answer")
    return reply
