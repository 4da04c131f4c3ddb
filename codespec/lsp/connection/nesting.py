"""Messages that are nested more deeply than Python reads. pygls only logs that, and the client waits for ever."""

from __future__ import annotations

import json
import re

DEEPEST = 200
"""Levels of a message; the protocol itself needs ten."""
TOO_DEEP = "$/nestedTooDeeply"
"""The method of what stands in for a message that is nested more deeply."""

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z)|[\[\]{}]', re.DOTALL)
_VALUE = re.compile(rb'[ \t\r\n]*:[ \t\r\n]*(-?[0-9]{1,15}|"[^"\\]{0,200}")')


def bounded(message: bytes) -> bytes:
    """A message of JSON-RPC; in place of one that is nested too deeply another one with its id, which is refused."""
    if message.count(b"[") + message.count(b"{") <= DEEPEST:
        return message
    depth, identifier, too_deep = 0, None, False
    for match in _TOKEN.finditer(message):
        sign = match.group()
        if sign in (b"[", b"{"):
            depth += 1
            too_deep = too_deep or depth > DEEPEST
        elif sign in (b"]", b"}"):
            depth -= 1
        elif depth == 1 and sign == b'"id"':
            value = _VALUE.match(message, match.end())
            identifier = json.loads(value[1]) if value is not None else identifier
    if not too_deep:
        return message
    refused = {"jsonrpc": "2.0", "method": TOO_DEEP} | ({"id": identifier} if identifier is not None else {})
    return json.dumps(refused).encode()
