"""Connections that have not said who they are: few at a time, so that they do not use up what a process may open."""

from __future__ import annotations

import importlib
from typing import Any

SECONDS = 30.0
"""How long a connection may take to say who it is."""
MOST, MOST_OF_ONE = 64, 16
"""Connections that may be doing so at a time, in all and from one address."""


class Greetings:
    """Who is being listened to. Where too many are, the one that has taken longest is cut off: who knows the token says
    so at once, and is not kept out by those who say nothing."""

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
        """It has spoken, or is gone."""
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
