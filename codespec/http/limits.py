"""What one server gives its clients at most."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HttpLimits:
    """The bounds of a server.

    Attributes:
        head, body: bytes.
        bodies: bytes of memory that the bodies of all requests may take together, until each is answered; of one client
            three quarters of that.
        waiting: requests that wait, in all and of one client.
        texts: texts of one request: prompts times ``n``.
        tokens: generated for one text.
        told: tokens of all texts of one request that are told, with those told beside them (``logprobs``); texts are
            shorter where there would be more.
        seconds: that one request may generate; what there is by then is the answer.
        body_s: until the body has arrived.
        header_s: until the head of a request has arrived.
        send_s: until the client has taken a piece of the answer.
        connections: at a time; one more is answered 503.
    """

    head: int = 16 << 10
    body: int = 8 << 20
    bodies: int = 64 << 20
    waiting: int = 256
    waiting_of_client: int = 64
    texts: int = 128
    tokens: int = 8192
    told: int = 1 << 18
    seconds: float = 600.0
    body_s: float = 20.0
    header_s: float = 10.0
    send_s: float = 20.0
    connections: int = 1000
