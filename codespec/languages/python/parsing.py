"""What the parser of Python cannot hold."""

from __future__ import annotations

import re

_INDENTATION = re.compile(rb"(?:\A|(?<=[\r\n]))[ \t\f]*")
_MOST_INDENTATIONS = 250


def overflows(data: bytes) -> bool:
    """Whether blocks may nest more deeply than the parser has room for (``tree-sitter-python`` 0.25 writes beyond its
    buffer at about 500 levels; Python itself takes 100). Each level has another indentation."""
    return len(set(_INDENTATION.findall(data))) > _MOST_INDENTATIONS
