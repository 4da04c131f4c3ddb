"""What the target has read of several documents stays read: their KV caches take turns in its sequence."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from codespec.draft.sequence import common_prefix
from codespec.engine.engine import KeptPrompts
from codespec.engine.prompt_store import PromptStore, PromptStoreFiles, StoredPrompt
from codespec.llama.sequence import LlamaSequence
from codespec.paths import name_of
from codespec.protocols import CodespecError
from codespec.speculative.generate import Generator

MIB = 1 << 20
WORTH = 32
"""Tokens that must be saved for a cache to be put aside or fetched, which costs at most as much as decoding one
token."""

_log = logging.getLogger("codespec")


@dataclass(frozen=True)
class PromptCacheSettings:
    """How many KV caches of earlier prompts are kept.

    Attributes:
        memory: bytes of main memory for the documents that are not being completed; 0 keeps none.
        saved: bytes of one workspace that are kept on the disk between runs; 0 keeps none.
        folder: for these files; None keeps none either.
    """

    memory: int = 512 * MIB
    saved: int = 0
    folder: Path | None = None


class PromptCache(KeptPrompts):
    """Exchanges the KV cache in the target's sequence by prompt and workspace, and keeps those that are not in it.

    Args:
        sequence: of the target, and the ``generator`` that decodes with it.
        about: all that a KV cache depends on besides its tokens, see ``PromptStoreFiles``.
    """

    def __init__(
        self, sequence: LlamaSequence, generator: Generator, settings: PromptCacheSettings, about: Mapping[str, Any]
    ) -> None:
        self._sequence, self._generator = sequence, generator
        self._store = PromptStore(settings.memory)
        keep = settings.folder is not None and settings.saved > 0
        self._files = PromptStoreFiles(settings.folder, about, settings.saved) if keep and settings.folder else None
        self._workspace = self._reader = self._adapter = ""
        self._entered = {""}  # caches of no workspace are not kept on the disk

    @property
    def kept_bytes(self) -> int:
        """Bytes of the KV caches that are not in the target's sequence; from any thread."""
        return self._store.size

    def enter(self, workspace: str) -> None:
        """Prompts from now on belong to this workspace; loads the caches that an earlier run has saved of it."""
        workspace = name_of(workspace)
        if workspace == self._workspace:
            return
        self._workspace = workspace
        if self._files is not None and workspace not in self._entered:
            self._entered.add(workspace)
            for each in reversed(self._files.load(workspace)):
                self._store.put(each)

    def change_adapter(self, adapter: str) -> None:
        """The model has another LoRA adapter from now on, of this key: caches computed before do not serve with it."""
        self._put_aside(0)
        self._drop(0)
        self._adapter = adapter

    def longest(self, prompt: Sequence[int]) -> int:
        """How many tokens of ``prompt`` a cache that is not in the target's sequence begins with."""
        return self._store.best(prompt, self._adapter)[1]

    def keep(self, tokens: Sequence[int], save: Callable[[], npt.NDArray[np.uint8]]) -> None:
        """Keep what another sequence of the model has read, and is about to lose, of prompts of no workspace."""
        if len(tokens) >= WORTH and self._store.limit:
            self._store.put(StoredPrompt(list(tokens), save(), "", self._adapter))

    def give(self, prompt: Sequence[int], least: int) -> StoredPrompt | None:
        """What was read of a prompt, if that is ``least`` tokens or more: for another sequence of the model, which is
        asked to ``keep`` it again."""
        held = self._generator.held
        common = common_prefix(held, prompt)
        found, most = self._store.best(prompt, self._adapter)
        if max(common, most) < least:
            return None
        if found is not None and most > common:
            if not found.workspace:
                self._store.take(found)
            return found
        self._sequence.rollback(len(held))
        self._generator.hold(held)
        return StoredPrompt(held, self._sequence.save(), self._reader, self._adapter)

    def turn_to(self, prompt: Sequence[int]) -> None:
        """Put the kept cache with the longest common prefix with ``prompt`` into the target's sequence."""
        held = self._generator.held
        common = common_prefix(held, prompt)
        if not held:
            self._reader = self._workspace
        if common >= len(prompt) - WORTH:
            self._put_aside(common)  # little is to be read, and yet much may be lost
            if not self._workspace:  # what must not be kept is not, however little of it is new
                self._reader = ""
            return
        found, most = self._store.best(prompt, self._adapter)
        if found is not None and most >= common + WORTH:
            self._store.take(found)  # first: what is put aside may take its place
            self._put_aside(common)
            self._fetch(found)
        else:
            self._put_aside(common)
        if self._reader != self._workspace:
            self._drop(common_prefix(self._generator.held, prompt))
        self._reader = self._workspace

    def _drop(self, common: int) -> None:
        """Roll back to ``common`` tokens, so that the rest is not kept under the prompt's workspace."""
        held = self._generator.held[:common]
        self._sequence.rollback(common)
        self._generator.hold(held)

    def _put_aside(self, common: int) -> None:
        """Store the sequence's cache, if rolling back to ``common`` tokens would lose much of it."""
        held = self._generator.held
        if len(held) - common < WORTH or not self._store.limit:
            return
        self._sequence.rollback(len(held))
        self._store.put(StoredPrompt(held, self._sequence.save(), self._reader, self._adapter))
        self._generator.hold(held)

    def _fetch(self, stored: StoredPrompt) -> None:
        try:
            self._sequence.restore(stored.data, len(stored.tokens))
        except CodespecError as error:
            _log.warning("%s; the text is read again", error)
            self._generator.hold([])
        else:
            self._generator.hold(stored.tokens)

    @property
    def lasting(self) -> bool:
        """Whether caches are kept on the disk for the next run."""
        return self._files is not None

    def forget(self, workspace: str) -> None:
        """Drop all caches of a workspace, in memory and on the disk.

        Raises:
            OSError: a file cannot be deleted.
        """
        workspace = name_of(workspace)
        for each in self._store.of(workspace):
            self._store.take(each)
        if workspace == self._reader:
            self._sequence.rollback(0)
            self._generator.hold([])
        if self._files is not None:
            self._files.forget(workspace)

    def save(self) -> None:
        """Write the caches of every workspace to the disk for the next run."""
        if self._files is None:
            return
        self._put_aside(0)
        for workspace in self._store.workspaces() - {""}:
            self._files.save(workspace, self._store.of(workspace))
