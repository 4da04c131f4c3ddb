"""How large a JSON text becomes when it is read, without reading it."""

from __future__ import annotations

import numpy as np

_STEP = 1 << 20
"""Bytes that are looked at together."""
_LEVELS = np.zeros(256, np.int8)
_LEVELS[list(b"[{")] = 1
_LEVELS[list(b"]}")] = -1
_VALUES = np.zeros(256, bool)
_VALUES[list(b"[{,:")] = True
_OF_A_VALUE = 64
"""Bytes that an object of Python takes beside its characters, and its place in a list."""


def size_of(text: bytes | bytearray) -> tuple[int, int]:
    """About the bytes that the values of a JSON text take in memory at most, and its levels of lists and objects.

    A few linear passes; a text that is no JSON is measured up to where that shows.
    """
    # One character beyond Latin-1 or the Basic Multilingual Plane makes all of a text wider.
    width = 1 if text.isascii() and b"\\u" not in text else 4
    characters, values, deepest, level, inside = len(text) * width, 1, 0, 0, np.False_
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    for start in range(0, len(text), _STEP):
        part = np.frombuffer(text, np.uint8, min(_STEP, len(text) - start), start)
        outside = ~(np.logical_xor.accumulate(part == ord('"')) ^ inside)
        inside = ~outside[-1]
        part = part[outside]
        levels = np.cumsum(_LEVELS[part], dtype=np.int32)
        deepest = max(deepest, level + int(levels.max(initial=0)))
        level += int(levels[-1]) if len(levels) else 0
        values += int(np.count_nonzero(_VALUES[part]))
    return characters + _OF_A_VALUE * values, deepest
