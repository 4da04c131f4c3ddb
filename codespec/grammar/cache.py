"""Lowered grammars on disk, so that an unrolled grammar is ready in milliseconds the second time; and token classes.

An entry is a file named by a hash of all that it depends on: the source, the options, and the code that lowers it.
Nothing here is ever an error: a folder that cannot be used is no cache, a damaged entry is no entry.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import os
import shutil
from pathlib import Path
from typing import Any

import llguidance

from codespec.grammar.errors import GrammarError
from codespec.grammar.levels import usual
from codespec.places import machine_folder, make_private, write_whole

VARIABLE = "CODESPEC_GRAMMAR_CACHE"
"""The environment variable: a folder for the cache, or ``off``; what was lowered beforehand then does not count."""
BEFOREHAND = Path(__file__).parents[1] / "data/lowered"
"""Entries for the shipped grammars, made when the package is built; there need not be any."""
MAX_BYTES = 64 * 1024 * 1024
"""Of all entries together; the ones longest unused go first."""
MAX_ENTRY = 16 * 1024 * 1024
_BLOCK = 4096  # bytes that a small file takes on most disks

collected: dict[str, str] | None = None
"""What is stored is put here as well, in a process that hands it on to another."""

_HEAD = b"codespec grammar 1 "
_SUFFIX = ".grammar"
_log = logging.getLogger(__name__)


def folder() -> Path | None:
    """Where entries lie; None where there is no cache."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen.lower() in ("off", "0", "no"):
        return None
    return Path(chosen) if chosen else machine_folder() / "grammars"


def key(text: str, **options: Any) -> str:
    """What an entry for the source ``text`` is called, with ``options`` that JSON can hold."""
    parts = json.dumps([_code(), llguidance.__version__, options], sort_keys=True)
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
        _log.info("%s: damaged, set aside; the grammar is lowered again", path)
        with contextlib.suppress(OSError):
            path.replace(path.with_suffix(".damaged"))
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # used now
    return body.decode()


def lower_beforehand() -> None:
    """Fill ``BEFOREHAND``, as building the package does: each shipped grammar from its root, and from where a document
    is entered in the middle; those of blocks by indentation for the usual ones."""
    from codespec.grammar.grammar import Grammar
    from codespec.grammar.library import shipped

    shutil.rmtree(BEFOREHAND, ignore_errors=True)
    os.environ[VARIABLE] = str(BEFOREHAND)
    for name in shipped():
        leveled = Grammar.load(name).leveled
        for levels in usual(yaml=name == "yaml") if leveled else ():
            Grammar.load(name, levels=levels)
        with contextlib.suppress(GrammarError):  # not every grammar has them
            Grammar.load(name, start="statements")
    for path in BEFOREHAND.iterdir():
        path.chmod(0o644)  # for everybody who may use the package


def store(name: str, text: str) -> None:
    """Keep ``text`` under a key; another process sees all of it or nothing."""
    if collected is not None:
        collected[name] = text
    place = folder()
    body = text.encode("utf-8", "replace")
    if place is None or len(body) > MAX_ENTRY:
        return
    try:
        make_private(place)
        write_whole(place / f"{name}{_SUFFIX}", [_HEAD + _sum(body) + b"\n" + body])
        _shrink(place)
    except OSError as error:
        _log.info("%s: no cache of grammars: %s", place, error)


def _shrink(place: Path) -> None:
    """Removes what is longest unused, until the rest fits; what a killed process left behind is longest unused too."""
    found = []
    for path in place.iterdir():
        if path.suffix in (_SUFFIX, ".damaged", ".tmp"):
            with contextlib.suppress(OSError):  # another process was faster
                status = path.stat()
                found.append((status.st_mtime, max(status.st_size, _BLOCK), path))
    left = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if left <= MAX_BYTES:
            break
        left -= size
        with contextlib.suppress(OSError):
            path.unlink()


def _sum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()


@functools.cache
def _code() -> str:
    """A hash of the code that makes the lowered text, so that no change of it is ever forgotten."""
    total = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*")):
        if path.suffix in (".py", ".lark"):
            total.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()
