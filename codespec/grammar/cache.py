"""Lowered grammars on disk, so that an unrolled grammar is ready in milliseconds the second time; and token classes.

An entry is a file named by a hash of all that it depends on: the source, the options, and the code that lowers it.
Failures raise no error: a folder that cannot be used is no cache, a damaged entry is no entry.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import os
import re
from pathlib import Path
from typing import Any

import llguidance

from codespec.cache_files import remove_oldest, set_aside
from codespec.paths import machine_folder, make_private, write_whole
from codespec.privacy.secrets import is_secret

VARIABLE = "CODESPEC_GRAMMAR_CACHE"
"""The environment variable: a folder for the cache, or ``off``; what was lowered beforehand then does not count."""
BEFOREHAND = Path(__file__).parents[1] / "data/lowered"
"""Entries for the shipped grammars, made when the package is built; there need not be any."""
MAX_BYTES = 64 * 1024 * 1024
"""Bytes of all entries together; those longest unused are deleted first."""
MAX_ENTRY = 16 * 1024 * 1024
MOST_ENTRIES = 16_384

collected: dict[str, str] | None = None
"""Stored entries are collected here as well, in a process that passes them on to another."""

_HEAD = b"codespec grammar 1 "
_SUFFIX = ".grammar"
_log = logging.getLogger(__name__)


def folder() -> Path | None:
    """The folder of the entries; None where there is no cache."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen.lower() in ("off", "0", "no"):
        return None
    return Path(chosen) if chosen else machine_folder() / "grammars"


def key(text: str, **options: Any) -> str:
    """The key of an entry: a hash of the source ``text``, of ``options`` that JSON can hold, and of the code."""
    parts = json.dumps([code_hash(), llguidance.__version__, options], sort_keys=True)
    return hashlib.sha256(f"{parts}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()


def load(name: str) -> str | None:
    """The text stored under a key, or None."""
    places = [folder()] if os.environ.get(VARIABLE) else [BEFOREHAND, folder()]
    return next((found for place in places if place and (found := _load(place / f"{name}{_SUFFIX}")) is not None), None)


def _load(path: Path) -> str | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    head, _, body = content.partition(b"\n")
    if head != _HEAD + _sum(body):
        set_aside(path, "its checksum is wrong", "the grammar is lowered again", _log, logging.INFO)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # used now
    return body.decode()


def store(name: str, text: str) -> None:
    """Keep ``text`` under a key; another process sees all of it or nothing. What looks like a secret is not kept."""
    if collected is not None:
        collected[name] = text
    place = folder()
    body = text.encode("utf-8", "replace")
    if place is None or len(body) > MAX_ENTRY or _is_private(text):
        return
    try:
        make_private(place)
        write_whole(place / f"{name}{_SUFFIX}", [_HEAD + _sum(body) + b"\n" + body])
        remove_oldest(place, _SUFFIX, MOST_ENTRIES, MAX_BYTES)
    except OSError as error:
        _log.info("%s: no cache of grammars: %s", place, error)


_CHARACTER = re.compile(r"\[(?:\\u\{([0-9a-f]{1,6})\}|([^\\\]^]))\]")
"""A class of one character, as which lowered grammars write each character of a text."""


def _is_private(text: str) -> bool:
    plain = _CHARACTER.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], text)
    return is_secret("a.py", plain)


def _sum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()


@functools.cache
def code_hash(folder: Path = Path(__file__).parent) -> str:
    """A hash of all code under ``folder``, by default of what lowers grammars, so that no change of it is forgotten."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".lark") and path.is_file():  # editors leave links to nowhere as locks
            name = path.relative_to(folder).as_posix()
            total.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()
