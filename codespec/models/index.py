"""Finds the installed models that can draft for a target, by vocabulary and language."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
from collections.abc import Iterator, Set
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codespec.files import StrPath
from codespec.languages import Language
from codespec.models.info import inspect
from codespec.models.registry import EMBEDDED, find_draft, is_whole, models_folder
from codespec.paths import cache_folder, make_private, write_whole
from codespec.protocols import CodespecError

GENERAL = "general"
"""The language of a draft for all languages without a draft of their own."""

LARGEST = 0.5
"""The share of a target's parameters that its draft has at most."""

SHIPPED = EMBEDDED / "index.json"
"""What is known of the models that come with codespec, so that nobody has to wait until they are read."""

_VERSION = 2
_BEGINNING = 1 << 16  # bytes of a file that stand for all of it, with its size
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Candidate:
    """The properties of a possible draft model.

    Attributes:
        vocabularies: hashes, see ``ModelInfo``.
        languages: that it was trained for, or ``GENERAL``; empty where the file does not say.
    """

    vocabularies: frozenset[str]
    parameters: int
    languages: tuple[str, ...]


def draft_of(target: Path, name: StrPath, language: Language) -> Path | None:
    """The file of a draft that an engine with this target takes for a name, see ``Drafting.find``.

    Raises:
        CodespecError: there is no draft of this name or path, or the target cannot be read.
    """
    info = inspect(target) if name == "auto" else None
    best = best_draft(language, info.vocabularies, info.parameters) if info is not None else None
    return best or find_draft(name, language)


def best_draft(language: Language, vocabularies: Set[str], parameters: float) -> Path | None:
    """The best installed draft model for a language; None where there is none with a vocabulary of the target's family.

    A draft for the language goes before a general one, a user's own before an embedded one, of those without languages
    the smallest before larger ones, a newer file before an older one.

    Args:
        vocabularies: of the target, see ``ModelInfo``.
        parameters: of the target; ``inf``: more than any draft has.
    """
    ranked = [
        (rank, folder != EMBEDDED, -found.parameters if not found.languages else 0, changed, path)
        for folder in (models_folder(), EMBEDDED)
        for path, changed, found in _candidates(folder)
        if found.vocabularies & vocabularies and 0 < found.parameters <= LARGEST * parameters
        if (rank := _rank(found.languages, language)) > 0
    ]
    return max(ranked)[-1] if ranked else None


def look_through() -> None:
    """Inspect new files ahead of ``best_draft``."""
    for folder in (models_folder(), EMBEDDED):
        list(_candidates(folder))


def _rank(languages: tuple[str, ...], language: Language) -> int:
    if language.id in languages or (language.draft and language.draft in languages):
        return 2
    return 1 if not languages or GENERAL in languages else 0


def _candidates(folder: Path) -> Iterator[tuple[Path, int, Candidate]]:
    """Files, when they changed, and what they are, kept until then: reading a vocabulary takes up to a second or two.
    A file that goes away meanwhile is left out."""
    cache = _Cache()
    files: list[Path] = []
    with suppress(OSError):
        files = sorted(folder.glob("*.gguf"))
    for path in filter(is_whole, files):
        with suppress(OSError):
            found = cache.get(path)
            if found is not None:
                yield path, path.stat().st_mtime_ns, found
    cache.save()


def _look_at(path: Path) -> Candidate:
    """Raises CodespecError where a file is no model that loads."""
    info = inspect(path)
    named = (path.stem.removeprefix("draft-"),) if path.parent == EMBEDDED else ()
    return Candidate(info.vocabularies, info.parameters, info.languages or named)


def look_beforehand() -> str:
    """What ``SHIPPED`` has to hold, as JSON."""
    found = {}
    for path in sorted(EMBEDDED.glob("*.gguf")):
        status = path.stat()
        found[_file_key(path, status.st_size, status.st_mtime_ns)] = _entry(_look_at(path))
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


def _candidate(entry: Any) -> Candidate:
    return Candidate(frozenset(entry["vocabularies"]), entry["parameters"], tuple(entry["languages"]))


def _entry(found: Candidate) -> dict[str, Any]:
    return {**asdict(found), "vocabularies": sorted(found.vocabularies)}


@functools.cache
def _shipped() -> dict[str, Candidate]:
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        entries = json.loads(SHIPPED.read_text("utf-8")).items()
        return {key: _candidate(entry) for key, entry in entries}
    return {}


@functools.lru_cache(maxsize=64)
def _file_key(path: Path, size: int, changed: int) -> str:
    with path.open("rb") as file:
        return f"{path.name} {size} {hashlib.sha256(file.read(_BEGINNING)).hexdigest()}"


class _Cache:
    def __init__(self) -> None:
        self._file = cache_folder() / "models.json"
        self._known: dict[str, Any] = {}
        self._changed = False
        with suppress(OSError, ValueError):
            found = json.loads(self._file.read_text("utf-8"))
            if isinstance(found, dict) and found.get("version") == _VERSION and isinstance(found.get("models"), dict):
                self._known = found["models"]

    def get(self, path: Path) -> Candidate | None:
        """None where the file is no model that loads."""
        status = path.stat()
        if path.parent == EMBEDDED:
            shipped = _shipped().get(_file_key(path, status.st_size, status.st_mtime_ns))
            if shipped is not None:
                return shipped
        key = f"{path} {status.st_size} {status.st_mtime_ns}"
        try:
            entry = self._known[key]
            return _candidate(entry) if entry else None
        except (KeyError, TypeError):
            pass
        found = None
        try:
            found = _look_at(path)
        except CodespecError as error:
            _log.debug("%s", error)
        self._known = {name: each for name, each in self._known.items() if not name.startswith(f"{path} ")}
        self._known[key] = _entry(found) if found is not None else None
        self._changed = self._changed or found is not None
        return found

    def save(self) -> None:
        """Save new candidates; where that fails, the files are read again next time."""
        if self._changed:
            with suppress(OSError):
                make_private(self._file.parent)
                # What does not load may do so another time: with other permissions, or another llama.cpp.
                models = {key: entry for key, entry in self._known.items() if entry is not None}
                write_whole(self._file, [json.dumps({"version": _VERSION, "models": models}).encode()])
