"""What was learnt about models and this machine, kept between runs: what passes cost, how often drafts are right.

A file for each model and set-up, and one for each pair of target and draft. They hold figures and names of languages,
no text. Nothing here is ever an error: a folder that cannot be used keeps nothing, a damaged file is set aside.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from codespec.cache_files import remove_oldest, set_aside
from codespec.draft.acceptance import Acceptance
from codespec.draft.costs import CostCurve
from codespec.llama.context import Context
from codespec.llama.devices import devices
from codespec.llama.probe import fingerprint
from codespec.paths import cache_folder, make_private, write_whole

VARIABLE = "CODESPEC_PROFILES"
"""The environment variable: a folder for the profiles; empty keeps none."""

VERSION = 1
MOST_FILES = 200
"""The ones longest unused go first."""

_PART = 1 << 20  # bytes at either end of a model file that stand for all of it
_LARGEST = 1 << 22
_log = logging.getLogger(__name__)

T = TypeVar("T")


def default_folder() -> Path | None:
    """The folder of the profiles; None where none are kept."""
    chosen = os.environ.get(VARIABLE)
    if chosen is None:
        return cache_folder() / "profiles"
    return Path(chosen) if chosen else None


def model_hash(path: Path) -> str:
    """A hash of a model file's size, first and last MiB: cheap, and different for different models in practice.

    Raises:
        OSError: it cannot be read.
    """
    status = path.stat()
    return _model_hash(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=64)
def _model_hash(path: Path, size: int, _changed: int) -> str:
    digest = hashlib.sha256(f"{size}\n".encode())
    with path.open("rb") as file:
        digest.update(file.read(_PART))
        file.seek(max(0, size - _PART))
        digest.update(file.read(_PART))
    return digest.hexdigest()[:32]


@dataclass(frozen=True)
class Setup:
    """What the costs T(n) of a model depend on besides the model.

    Attributes:
        library: a hash of the build of llama.cpp and of the CPU's features.
        devices: what CPU and GPUs call themselves.
        rows: of logits that a pass asks for; 0 is all.
    """

    library: str
    devices: tuple[str, ...]
    gpu_layers: int
    threads: int
    kv_type: str
    flash_attention: str
    exact: bool
    rows: int

    @classmethod
    def of(cls, context: Context, rows: int | None) -> Setup:
        """The set-up of a context on this machine, for passes that ask for ``rows`` rows of logits; None: all."""
        return cls(
            library=fingerprint(),
            devices=(*devices(), *context.model.servers.addresses),
            gpu_layers=context.model.gpu_layers,
            threads=context.first_threads,
            kv_type=context.kv_type,
            flash_attention=context.flash_attention,
            exact=context.exact,
            rows=rows or 0,
        )


class Profiles:
    """The files of one folder; any number of processes may use it.

    Args:
        folder: need not exist; None keeps nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._complained = False

    def curve(self, model: Path, setup: Setup) -> CostCurve | None:
        """The cost curve that was measured of a model in just this set-up; None where none was."""
        return self._load("curve", {"model": model, **asdict(setup)}, CostCurve.from_json)

    def keep_curve(self, model: Path, setup: Setup, curve: CostCurve) -> None:
        """Store a measurement in place of an older one."""
        self._store("curve", {"model": model, **asdict(setup)}, curve.as_json())

    def acceptance(
        self, target: Path, draft: Path | None, adapters: tuple[str, str] = ("", "")
    ) -> dict[str, Acceptance]:
        """How often guesses of a draft were accepted, by kind of text.

        Args:
            adapters: keys of the target's and the draft's LoRA adapter.
        """
        return self._load("acceptance", _pair(target, draft, adapters), _acceptance) or {}

    def keep_acceptance(
        self,
        target: Path,
        draft: Path | None,
        counts: Mapping[str, Acceptance],
        adapters: tuple[str, str] = ("", ""),
    ) -> None:
        """Store counts; kinds of text that are not among them stay as they are."""
        if self._folder is None or not counts:
            return
        stored = self.acceptance(target, draft, adapters)  # another process may have learnt another language
        data = {kind: found.as_json() for kind, found in {**stored, **counts}.items()}
        self._store("acceptance", _pair(target, draft, adapters), data)

    def _load(self, name: str, about: Mapping[str, Any], parse: Callable[[Any], T]) -> T | None:
        if self._folder is None:
            return None
        try:
            path, key = self._place(name, about)
            content = path.read_bytes()
        except OSError:  # most likely there is none
            return None
        try:
            found = parse(_checked(content, key))
        except ValueError as error:
            set_aside(path, error, "it is measured anew", _log)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # used now
        return found

    def _store(self, name: str, about: Mapping[str, Any], data: Any) -> None:
        if self._folder is None:
            return
        try:
            path, key = self._place(name, about)
            body = {"about": key, "data": data}
            make_private(path.parent)
            write_whole(path, (json.dumps({"sha256": _sum(body), **body}, indent=1).encode(), b"\n"))
            remove_oldest(path.parent, ".json", MOST_FILES)
        except OSError as error:
            if not self._complained:
                self._complained = True
                _log.warning("%s: what is measured is forgotten at the end: %s", self._folder, error)

    def _place(self, name: str, about: Mapping[str, Any]) -> tuple[Path, dict[str, Any]]:
        """The file, and what it says that it is about: models by their hash."""
        assert self._folder is not None
        key: dict[str, Any] = {"version": VERSION, "kind": name}
        for field, value in about.items():
            key[field] = model_hash(value) if isinstance(value, Path) else value
        key = json.loads(json.dumps(key))  # as it is read back
        return self._folder / f"{name}-{_sum(key)[:24]}.json", key


def _pair(target: Path, draft: Path | None, adapters: tuple[str, str]) -> dict[str, Any]:
    return {"target": target, "draft": draft, **({"adapters": list(adapters)} if any(adapters) else {})}


def _checked(content: bytes, key: Mapping[str, Any]) -> Any:
    """The data of a file.

    Raises:
        ValueError: it was changed, or is about something else.
    """
    if len(content) > _LARGEST:
        raise ValueError("too large")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError("no JSON") from error
    if not isinstance(found, dict) or found.keys() != {"sha256", "about", "data"}:
        raise ValueError("no profile")
    if found.pop("sha256") != _sum(found) or found["about"] != key:
        raise ValueError("its checksum is wrong")
    return found["data"]


def _sum(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _acceptance(data: Any) -> dict[str, Acceptance]:
    if not isinstance(data, dict):
        raise ValueError("no counts by kind of text")
    return {kind: Acceptance.from_json(counts) for kind, counts in data.items()}
