"""Texts from files and from standard input, read whole."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import BinaryIO, TypeAlias

from codespec.errors import CodespecError

StrPath: TypeAlias = "str | os.PathLike[str]"
"""A file or folder, as Python's own functions take one."""
MAX_TEXT = 64 * 1024 * 1024
"""Bytes of a text to complete or to test."""
STANDARD_INPUT = "-"
"""What names it on a command line."""


def read_input(name: str, limit: int) -> tuple[str, str]:
    """What a file that a command line names holds, ``-`` being standard input: its name for messages, and its text, a
    byte order mark dropped.

    Raises:
        CodespecError: missing, unreadable, larger than ``limit`` bytes, or not UTF-8; standard input that is closed
            or was read already.
    """
    if name != STANDARD_INPUT:
        return name, read_text(Path(name), limit)
    shown = "<stdin>"
    if sys.stdin is None or sys.stdin.closed:
        raise CodespecError(f"{shown}: closed, or read already; give - once")
    if sys.stdin.isatty():
        end = "Ctrl-Z and Enter" if sys.platform == "win32" else "Ctrl-D"
        print(f"codespec: reads standard input; {end} ends it", file=sys.stderr, flush=True)
    with sys.stdin.buffer as stream:
        return shown, decode(_read(stream, limit, shown), shown)


def read_text(path: Path, limit: int) -> str:
    """The text of a UTF-8 file of at most ``limit`` bytes, a byte order mark dropped.

    Raises:
        CodespecError: missing, unreadable, too large, or not UTF-8.
    """
    return decode(read_bytes(path, limit), path)


def read_bytes(path: Path, limit: int) -> bytes:
    """The content of a file of at most ``limit`` bytes.

    Raises:
        CodespecError: missing, unreadable or too large.
    """
    try:
        with path.open("rb") as stream:
            return _read(stream, limit, path)
    except FileNotFoundError:
        raise CodespecError(f"{path}: no such file; check the path") from None
    except OSError as error:
        raise CodespecError(f"{path}: cannot be read: {error.strerror}; give a readable file") from None


def _read(stream: BinaryIO, limit: int, name: str | Path) -> bytes:
    content = stream.read(limit + 1)
    if len(content) > limit:
        raise CodespecError(f"{name}: larger than {limit} bytes; give a smaller file")
    return content


def decode(content: bytes, name: str | Path) -> str:
    """``content`` as UTF-8, a byte order mark dropped.

    Raises:
        CodespecError: it is not; names line and column of the first wrong byte.
    """
    try:
        return content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode()
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise CodespecError(f"{name}:{line}:{column}: not UTF-8; save the file as UTF-8") from None
