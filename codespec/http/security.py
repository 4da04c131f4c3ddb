"""Who may ask: keys, hosts, origins. Before any body is read."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from codespec.errors import CodespecError
from codespec.hosts import is_loopback
from codespec.http.errors import HttpError, large_head
from codespec.http.limits import HttpLimits
from codespec.http.sse import send_json

PUBLIC = frozenset({"/health", "/v1/health"})
"""Paths that need no key, as llama-server has it: they tell nothing but whether the model is loaded."""
LEAST_KEY = 16
"""Characters of a key."""
CLIENT = "codespec.client"
"""The key of a scope under which the client is named that takes turns with others."""


@dataclass(frozen=True)
class Access:
    """Who may ask.

    Attributes:
        host: that the server listens on.
        keys: any of them is wanted; none: no key is.
        origins: of web pages that may ask, beside those of the server itself.
    """

    host: str
    keys: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse what would be open to others.

        Raises:
            CodespecError: it listens beyond this machine without a key, a key is short, or an origin is none.
        """
        if not self.keys and not is_loopback(self.host):
            raise CodespecError(
                f"{self.host} can be reached from other machines: give a key, with --api-key-file or CODESPEC_HTTP_KEY"
            )
        if any(len(key) < LEAST_KEY or not key.isascii() for key in self.keys):
            raise CodespecError(f"a key must have at least {LEAST_KEY} characters, all of them ASCII")
        if any(not origin.startswith(("http://", "https://")) or origin.count("/") != 2 for origin in self.origins):
            raise CodespecError("an origin is a scheme, a host and perhaps a port, such as http://localhost:3000")

    def who(self, scope: Scope, headers: Headers) -> str:
        """The client's name in the queue: its key and address.

        Raises:
            HttpError: it may not ask.
        """
        address = (scope.get("client") or ("", 0))[0]
        if not self.keys:
            return str(address)
        given = headers.get("x-api-key") or headers.get("api-key") or ""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = token.strip() if scheme.lower() == "bearer" else given
        # All of them, whichever it is: the time tells nothing.
        if sum([hmac.compare_digest(given.encode(), key.encode()) for key in self.keys]) == 0:
            message = "give the server's key, as `Authorization: Bearer KEY`"
            raise HttpError(401, message, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})
        return f"{hashlib.sha256(given.encode()).hexdigest()[:16]} {address}"

    def check_host(self, headers: Headers) -> None:
        """Refuse a name that a web page had resolved to this machine (DNS rebinding), where no key protects it.

        Raises:
            HttpError: 403.
        """
        host = host_of(headers.get("host", ""))
        if host and not self.keys and not (is_loopback(host) or host == self.host):
            raise HttpError(403, "this server is not known by that name; ask for localhost", code="wrong_host")

    def check_origin(self, headers: Headers) -> None:
        """Refuse a web page of another site.

        Raises:
            HttpError: 403.
        """
        origin = headers.get("origin")
        own = f"http://{headers.get('host', '')}"
        if origin is not None and origin not in (own, *self.origins):
            raise HttpError(403, "web pages of this origin may not ask; see --http-cors", code="wrong_origin")


def host_of(header: str) -> str:
    """The host of a ``Host`` header, without port and brackets."""
    host, colon, port = header.strip().lower().rpartition(":")
    host = host if colon and port.isdigit() else header.strip().lower()
    return host.removeprefix("[").removesuffix("]").removesuffix(".")


class Guard:
    """ASGI middleware that lets only those through who may ask."""

    def __init__(self, app: ASGIApp, access: Access, limits: HttpLimits) -> None:
        self._app, self._access, self._limits = app, access, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, and add what a web page must be told."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin", "")
        told = send if origin not in self._access.origins else _with_cors(send, origin)
        try:
            if _size(scope) > self._limits.head:  # one that came in one piece
                raise large_head(self._limits)
            self._access.check_host(headers)
            self._access.check_origin(headers)
            if scope["method"] == "OPTIONS" and origin and "access-control-request-method" in headers:
                await _preflight(scope, receive, told, headers.get("access-control-request-headers", ""))
                return
            if scope["path"] not in PUBLIC:
                scope[CLIENT] = self._access.who(scope, headers)
        except HttpError as error:
            await send_json(told, error.status, error.as_json(), error.headers)
            return
        await self._app(scope, receive, told)


def _size(scope: Scope) -> int:
    """Bytes of a head, about."""
    return (
        sum(len(name) + len(value) for name, value in scope["headers"])
        + len(scope["raw_path"])
        + len(scope["query_string"])
    )


async def _preflight(scope: Scope, receive: Receive, send: Send, wanted: str) -> None:
    headers = {
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": wanted,  # openai's client sends a dozen of its own
        "Access-Control-Max-Age": "600",
    }
    await Response(status_code=204, headers=headers)(scope, receive, send)


def _with_cors(send: Send, origin: str) -> Send:
    extra: Sequence[tuple[bytes, bytes]] = [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"vary", b"Origin"),
    ]

    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *extra]}
        await send(message)

    return told
