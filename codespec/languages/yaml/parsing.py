"""What the parser of YAML cannot hold."""

from __future__ import annotations

import re

_MOST_COLUMNS = 100
_LINE = re.compile(rb"(?:\A|(?<=[\r\n]))[ \t]*(?:[-?:][ \t]+)*")
_STEP = re.compile(rb"[-?:][ \t]+")


def overflows(data: bytes) -> bool:
    """Whether blocks may nest more deeply than the parser has room for (``tree-sitter-yaml`` 0.7 writes beyond its
    buffer at 254 levels). At most two begin in one column, of those where a line begins or something stands behind
    ``-``, ``?`` or ``:`` there."""
    columns: set[int] = set()
    for begin in set(_LINE.findall(data)):
        columns.add(len(begin) - len(begin.lstrip(b" \t")))
        columns.update(step.end() for step in _STEP.finditer(begin))
        if len(columns) > _MOST_COLUMNS:
            return True
    return False
