r"""Line ends of documents: ``\n``, ``\r\n``, or ``\r`` alone, as old Macs wrote; all three end a line in the protocol.

Parsers, grammars and the patterns of checks know the first two. So a lone ``\r`` becomes ``\n`` wherever a document
comes in: it is as long, and no place moves.
"""

from __future__ import annotations

import re

CRLF = "\r\n"

_LONE = re.compile(r"\r(?!\n)")


def line_feeds(text: str) -> str:
    r"""The text with ``\n`` as its only line end."""
    return text.replace(CRLF, "\n").replace("\r", "\n") if "\r" in text else text


def without_lone_returns(text: str) -> str:
    r"""The text with ``\n`` in place of each ``\r`` that no ``\n`` follows; as many characters, in the same places."""
    return _LONE.sub("\n", text) if "\r" in text else text
