"""Columns in characters, and in the units of the protocol: bytes of UTF-8, units of UTF-16, or characters.

pygls' own codec looks at every character of a line in Python, which a file in a single line makes seconds of.
"""

from __future__ import annotations

from lsprotocol import types

_CONTINUATION = bytes(range(0x80, 0xC0))


class Units:
    """Counts in one encoding.

    Args:
        encoding: as negotiated; anything but ``utf-8`` and ``utf-32`` means the default, ``utf-16``.
    """

    def __init__(self, encoding: types.PositionEncodingKind | str | None = None) -> None:
        self._utf8 = encoding == types.PositionEncodingKind.Utf8
        self._utf32 = encoding == types.PositionEncodingKind.Utf32

    def length(self, text: str) -> int:
        """The length of ``text`` in the client's units: code points, bytes of UTF-8 or units of UTF-16."""
        if self._utf32 or text.isascii():
            return len(text)
        if self._utf8:
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2

    def columns(self, text: str, units: int) -> int:
        """Characters within the first ``units``: all of them beyond the end, and one that is cut in two is within."""
        text = text[:units]  # a character is a unit at least
        if self._utf32 or text.isascii():
            return len(text)
        if self._utf8:
            return len(text.encode("utf-8", "surrogatepass")[:units].translate(None, _CONTINUATION))
        # Half a pair decodes to one character.
        return len(text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "surrogatepass"))
