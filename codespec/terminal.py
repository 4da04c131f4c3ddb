"""Standard output and standard error on which nothing acts that a file, a model or a network said."""

from __future__ import annotations

import contextlib
import os
import sys
import unicodedata
from collections.abc import Iterator
from typing import Any, TextIO, cast

_JOINERS = "\u200c\u200d"
"""Format characters that words and emoji are written with."""


class _Printable(dict[int, int | str]):
    """Filled as characters come."""

    def __missing__(self, code: int) -> int | str:
        character = chr(code)
        stays = character.isprintable() or character in _JOINERS or unicodedata.category(character) == "Zs"
        return self.setdefault(code, code if stays else "\N{REPLACEMENT CHARACTER}")


_INLINE = _Printable()
_LINES = _Printable({ord(character): character for character in "\n\t"})


def printable(text: str) -> str:
    """``text`` in one line, without characters that a terminal would act on."""
    return text if text.isprintable() else text.translate(_INLINE)


def printable_lines(text: str) -> str:
    """The same with line ends and tabs."""
    return text if text.isprintable() else text.replace("\r\n", "\n").translate(_LINES)


class Terminal:
    """A stream that writes lines of what is printable; everything else of it is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write what is printable of a text."""
        self.stream.write(printable_lines(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        """Write what is printable of some texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def write_own(text: str, stream: TextIO) -> None:
    """Write a text with codespec's own escape sequences in it; what comes from elsewhere has to be ``printable``."""
    own = stream.stream if isinstance(stream, Terminal) else stream
    own.write(text)
    own.flush()


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Standard error, and standard output where a person looks at it, are ``Terminal`` until the block ends.

    What goes to a file or a program stays as it is.
    """
    before = sys.stdout, sys.stderr
    if sys.stdout is not None and (sys.stdout.isatty() or os.environ.get("FORCE_COLOR")):
        sys.stdout = cast("TextIO", Terminal(sys.stdout))
    if sys.stderr is not None:
        sys.stderr = cast("TextIO", Terminal(sys.stderr))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
