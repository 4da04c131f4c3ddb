"""Connections that have not authenticated yet: few at a time, so that they do not use up the file descriptors."""

from __future__ import annotations

import importlib
from typing import Any

SECONDS = 30.0
"""Seconds that a connection may take to authenticate."""
MOST, MOST_OF_ONE = 64, 16
"""Connections that may be doing so at a time, in all and from one address."""


class Greetings:
    """The connections that are authenticating. Where there are too many, the one that has taken longest is closed: a
    client with the token sends it at once, and is not kept out by others that send nothing."""

    def __init__(self) -> None:
        self._addresses: dict[Any, str] = {}  # by transport, the oldest first

    def begin(self, transport: Any) -> None:
        """A connection was made; ``end`` has to follow."""
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if isinstance(peer, tuple) and peer else ""
        own = [each for each, known in self._addresses.items() if known == address]
        if len(own) >= MOST_OF_ONE:
            self._cut_off(own[0])
        elif len(self._addresses) >= MOST:
            self._cut_off(next(iter(self._addresses)))
        self._addresses[transport] = address

    def end(self, transport: Any) -> None:
        """The connection has authenticated, or is gone."""
        self._addresses.pop(transport, None)

    def _cut_off(self, transport: Any) -> None:
        self.end(transport)
        transport.abort()


def limited_web_socket() -> Any:
    """The class of connections for the library for web sockets."""
    library = importlib.import_module("websockets.asyncio.server")
    greetings = Greetings()

    class Limited(library.ServerConnection):  # type: ignore[misc,name-defined]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            greetings.begin(transport)

        async def handshake(self, *arguments: Any, **named: Any) -> None:
            try:
                await super().handshake(*arguments, **named)
            finally:
                greetings.end(self.transport)

    return Limited
