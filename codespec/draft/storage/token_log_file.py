"""What a token log looks like on disk, and the lock that two editors take turns with.

A header line ``codespec ngrams 1 VOCABULARY NONCE`` and then records, one for each segment of text::

    count of tokens      uint32
    crc32 of the count   uint32
    crc32 of the tokens  uint32
    tokens               int32, ``count`` times

All little-endian. The nonce is new whenever the file is written anew, so that another process notices. The count has
a checksum of its own: a record that was cut off can be told from one whose length is damaged.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import struct
import sys
import time
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from zlib import crc32

from codespec.paths import make_private, try_lock, unlock, write_whole

VERSION = 1
PATIENCE = 2.0
"""Seconds to wait for a process that has the log; it normally has it for less than a millisecond."""
_HEAD = struct.Struct("<III")
_COUNT = struct.Struct("<I")
_NONCE = 16

HeaderKind = Literal["ours", "torn", "other", "damaged"]


@dataclass(frozen=True)
class ParsedLog:
    """The whole records at the beginning of some bytes: ``size`` bytes of them, and whether what follows is damage."""

    segments: list[array[int]]
    size: int
    damaged: bool


def new_header(vocabulary: str) -> bytes:
    """The first line of a new file."""
    return b"codespec ngrams %d %s %s\n" % (VERSION, vocabulary.encode(), secrets.token_hex(_NONCE // 2).encode())


def kind_of(header: bytes, vocabulary: str) -> HeaderKind:
    """Whose file begins with ``header``, which is as long as one of ours or cut off."""
    own = b"codespec ngrams %d %s " % (VERSION, vocabulary.encode())
    if re.fullmatch(rb"%s[0-9a-f]{%d}\n" % (re.escape(own), _NONCE), header):
        return "ours"
    if len(header) < len(own) + _NONCE + 1 and (own.startswith(header) or header.startswith(own)):
        return "torn"
    return "other" if re.match(rb"codespec ngrams \d+ \w+ ", header) else "damaged"


def record(segment: array[int]) -> bytes:
    """One segment as it is stored."""
    tokens = _swapped(segment).tobytes()
    return _HEAD.pack(len(segment), crc32(_COUNT.pack(len(segment))), crc32(tokens)) + tokens


def parse(data: bytes) -> ParsedLog:
    """The records in ``data``, up to the first that is cut off or damaged.

    A record that was cut off by a crash is no damage, nor are the zeros that some file systems leave in its place.
    """
    segments: list[array[int]] = []
    at = 0
    while at + _HEAD.size <= len(data):
        count, count_sum, tokens_sum = _HEAD.unpack_from(data, at)
        if crc32(data[at : at + _COUNT.size]) != count_sum:
            return ParsedLog(segments, at, damaged=bool(data[at:].strip(b"\0")))
        start, end = at + _HEAD.size, at + _HEAD.size + 4 * count
        if end > len(data):
            break
        if crc32(data[start:end]) != tokens_sum:
            return ParsedLog(segments, at, damaged=True)
        segments.append(_swapped(array("i", data[start:end])))
        at = end
    return ParsedLog(segments, at, damaged=False)


def newest(segments: Sequence[array[int]], room: int) -> list[array[int]]:
    """The last segments, ``room`` tokens of them at most, each only where it comes last; oldest first."""
    kept: list[array[int]] = []
    seen: set[bytes] = set()
    for segment in reversed(segments):
        if room <= 0:
            break
        content = segment.tobytes()
        if content not in seen:
            seen.add(content)
            kept.append(segment[-room:])
            room -= len(segment)
    return kept[::-1]


def _swapped(segment: array[int]) -> array[int]:
    """From this machine's byte order to the file's, or back."""
    if sys.byteorder == "big":
        segment = segment[:]
        segment.byteswap()
    return segment


def replace(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file anew, readable by its owner alone; another process sees all of it or what was there before."""
    make_private(path.parent)
    write_whole(path, parts)


def append(path: Path, data: bytes) -> None:
    """Add ``data`` at the end in one write: all of it, or none.

    Raises:
        OSError: none of it; the disk may be full.
    """
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0))
    try:
        size = os.fstat(handle).st_size
        written = os.write(handle, data)
        if written < len(data):
            os.ftruncate(handle, size)
            raise OSError(f"only {written:,} of {len(data):,} bytes could be written; is the disk full?")
    finally:
        os.close(handle)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``; without a lock where the file system has none.

    Raises:
        OSError: the file cannot be made, or another process holds it for longer than ``PATIENCE``.
    """
    handle = _acquire(path)
    try:
        yield
    finally:
        unlock(handle)
        os.close(handle)


def _acquire(path: Path) -> int:
    until = time.monotonic() + PATIENCE
    while True:
        make_private(path.parent)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if try_lock(handle) and _is_at(handle, path):  # elsewhere: the folder was cleared while this process waited
            return handle
        os.close(handle)
        if time.monotonic() > until:
            raise TimeoutError(f"{path}: another process has held it for {PATIENCE:.0f} seconds")
        time.sleep(0.002)


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except OSError:
        return False
