"""KV caches of prompts that are not in the target's sequence, in main memory and, between runs, in files.

To change from one document to another a sequence's cache is copied out and another one in: about 4 µs a token for a
model of 1.5 billion parameters, which prefills a token in 10 to 20 ms.
"""

from __future__ import annotations

import hashlib
import json
import logging
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from codespec.cache_files import remove_oldest, set_aside
from codespec.draft.sequence import common_prefix
from codespec.paths import make_private, write_whole

MOST_TEXTS = 32
"""Caches that are kept at most, however small they are."""

ALIKE = 0.75
"""A cache replaces another one of which it shares at least this part as a prefix: mostly an earlier state of its
document."""

MOST_FILES = 64
"""Files of workspaces that are kept; those longest unused are deleted first."""

MAGIC = b"codespec KV 1\n"
_LARGEST_HEADER = 1 << 26
_log = logging.getLogger(__name__)

Data = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class StoredPrompt:
    """The KV cache of one prompt.

    Attributes:
        tokens: of the prompt and what was generated after it.
        data: the cache as ``LlamaSequence.save`` returns it.
        workspace: that the prompt belongs to.
        adapter: the LoRA adapter that it was computed with, see ``Context.adapter_key``.
    """

    tokens: list[int]
    data: Data
    workspace: str
    adapter: str = ""


class PromptStore:
    """KV caches in main memory; the least recently used are dropped where they become too many or too large.

    Args:
        limit: bytes of all caches together; 0 keeps none.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._texts: list[StoredPrompt] = []  # the one used last at the end

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def size(self) -> int:
        """Bytes that all kept KV caches take together."""
        return sum(each.data.nbytes for each in list(self._texts))  # another thread may ask

    def put(self, stored: StoredPrompt) -> None:
        """Keep a cache, and drop those that it makes superfluous."""
        if stored.data.nbytes > self.limit:
            return
        self._texts = [each for each in self._texts if not _replaces(stored, each)]
        self._texts.append(stored)
        while self.size > self.limit or len(self._texts) > MOST_TEXTS:
            del self._texts[0]

    def best(self, tokens: Sequence[int], adapter: str = "") -> tuple[StoredPrompt | None, int]:
        """The cache with the longest common prefix with ``tokens``, and the length of that.

        Args:
            adapter: of the model now; a cache computed with another one is of no use.
        """
        found, most = None, 0
        for each in self._texts:
            common = common_prefix(each.tokens, tokens) if each.adapter == adapter else 0
            if common > most:
                found, most = each, common
        return found, most

    def take(self, stored: StoredPrompt) -> None:
        """Remove a cache that goes into use; ``put`` will bring it back as it is then."""
        self._texts.remove(stored)

    def of(self, workspace: str) -> list[StoredPrompt]:
        """The caches of a workspace, the most recently used first."""
        return [each for each in reversed(self._texts) if each.workspace == workspace]

    def workspaces(self) -> set[str]:
        """The workspaces that have caches."""
        return {each.workspace for each in self._texts}


def _replaces(new: StoredPrompt, old: StoredPrompt) -> bool:
    return new.adapter == old.adapter and common_prefix(new.tokens, old.tokens) >= ALIKE * len(old.tokens)


def delete_kept(folder: Path, workspace: str) -> None:
    """Delete the files of a workspace in ``folder``, of every model and setting.

    Raises:
        OSError: something cannot be deleted.
    """
    for path in folder.glob(f"{_digest(workspace)}-*"):
        path.unlink(missing_ok=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


class PromptStoreFiles:
    """Keeps the caches of workspaces between runs, in a file for each. Failures are logged, never raised.

    A cache reveals its prompt: the files are readable by their owner alone, and never leave the folder.

    Args:
        folder: need not exist.
        about: all that a cache depends on besides its tokens: the model, the library, the type of the cache. A file
            with another value is not used.
        limit: bytes of one workspace; 0 keeps and reads none.
    """

    def __init__(self, folder: Path, about: Mapping[str, Any], limit: int) -> None:
        self._folder, self._limit = folder, limit
        self._about = json.loads(json.dumps(about))  # as it is read back

    def load(self, workspace: str) -> list[StoredPrompt]:
        """The caches that were saved of a workspace, the most recently used first; a damaged file is set aside."""
        path = self._path(workspace)
        if not self._limit:
            return []
        try:
            content = path.read_bytes()
        except OSError:  # most likely there is none
            return []
        try:
            return list(self._parse(content, workspace))
        except ValueError as error:
            set_aside(path, error, "the text is read anew", _log)
            return []

    def save(self, workspace: str, texts: Sequence[StoredPrompt]) -> None:
        """Replace the file of the workspace by one with these caches, as many of the first as fit."""
        kept: list[StoredPrompt] = []
        room = self._limit
        for each in texts:
            room -= each.data.nbytes
            if room < 0:
                break
            kept.append(each)
        if not kept:
            return
        header = {
            "about": self._about,
            "workspace": workspace,
            "texts": [
                {
                    "tokens": each.tokens,
                    "adapter": each.adapter,
                    "size": each.data.nbytes,
                    "crc": zlib.crc32(each.data.data),
                }
                for each in kept
            ],
        }
        head = json.dumps(header).encode()
        try:
            make_private(self._folder)
            start = MAGIC + len(head).to_bytes(8, "little") + zlib.crc32(head).to_bytes(4, "little")
            write_whole(self._path(workspace), [start, head, *(each.data.data for each in kept)])
            remove_oldest(self._folder, ".kv", MOST_FILES)
        except OSError as error:
            _log.warning("%s: what the model has read is forgotten at the end: %s", self._folder, error)

    def forget(self, workspace: str) -> None:
        """Delete the files of a workspace, see ``delete_kept``."""
        delete_kept(self._folder, workspace)

    def _path(self, workspace: str) -> Path:
        about = _digest(json.dumps(self._about, sort_keys=True))
        return self._folder / f"{_digest(workspace)}-{about}.kv"

    def _parse(self, content: bytes, workspace: str) -> Iterator[StoredPrompt]:
        """The caches in a file's content; raises ValueError where ``save`` has not written it."""
        start = len(MAGIC) + 12
        if len(content) < start or not content.startswith(MAGIC):
            raise ValueError("another version, or no cache")
        length = int.from_bytes(content[len(MAGIC) : len(MAGIC) + 8], "little")
        head = content[start : start + length]
        if length > _LARGEST_HEADER or zlib.crc32(head) != int.from_bytes(content[start - 4 : start], "little"):
            raise ValueError("its header's checksum is wrong")
        header = json.loads(head)
        if header["about"] != self._about or header["workspace"] != workspace:
            raise ValueError("it is about something else")
        place = start + length
        for each in header["texts"]:
            data = np.frombuffer(content, np.uint8, count=-1, offset=place)[: each["size"]]
            if len(data) != each["size"] or zlib.crc32(data.data) != each["crc"]:
                raise ValueError("the checksum of a text is wrong")
            place += each["size"]
            # A copy, so that the whole file does not stay in memory for one text of it.
            yield StoredPrompt(each["tokens"], data.copy(), workspace, each.get("adapter", ""))
