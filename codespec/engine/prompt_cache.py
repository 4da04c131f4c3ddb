"""What the target has read of several documents stays read: their KV caches take turns in its sequence."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codespec.draft.sequence import common_prefix
from codespec.engine.prompt_store import PromptStore, PromptStoreFiles, StoredPrompt
from codespec.llama.context import LlamaSequence
from codespec.paths import name_of
from codespec.protocols import CodespecError
from codespec.speculative.generate import Generator

MIB = 1 << 20
WORTH = 32
"""Tokens that must be saved for a cache to be put aside or fetched: it costs as much as reading one token, at most."""
LEAST_MOVED = 64
"""Tokens in a row that are moved to another place, see ``PromptCacheSettings.shift``."""

_log = logging.getLogger("codespec")


@dataclass(frozen=True)
class PromptCacheSettings:
    """How much of what was read is kept.

    Attributes:
        memory: bytes of main memory for the documents that are not being completed; 0 keeps none.
        saved: bytes of one workspace that are kept between runs; 0 keeps none.
        folder: for those; None keeps none either.
        shift: whether text that was read at another place of the prompt is moved instead of read again. Lossy.
    """

    memory: int = 512 * MIB
    saved: int = 0
    folder: Path | None = None
    shift: bool = False


class PromptCache:
    """Decides what the target's sequence holds.

    Args:
        sequence: of the target, and the ``generator`` that decodes with it.
        about: what a KV cache depends on besides its tokens, see ``PromptStoreFiles``.
    """

    def __init__(
        self, sequence: LlamaSequence, generator: Generator, settings: PromptCacheSettings, about: Mapping[str, Any]
    ) -> None:
        self._sequence, self._generator = sequence, generator
        self._shift = settings.shift
        self._store = PromptStore(settings.memory)
        keep = settings.folder is not None and settings.saved > 0
        self._files = PromptStoreFiles(settings.folder, about, settings.saved) if keep and settings.folder else None
        self._workspace = self._reader = self._adapter = ""
        self._entered = {""}  # what belongs to no workspace is not kept

    @property
    def kept_bytes(self) -> int:
        """Of the documents that are not being completed; from any thread."""
        return self._store.size

    def enter(self, workspace: str) -> None:
        """What is read from now on belongs to this workspace; fetches what an earlier run has kept of it."""
        workspace = name_of(workspace)
        if workspace == self._workspace:
            return
        self._workspace = workspace
        if self._files is not None and workspace not in self._entered:
            self._entered.add(workspace)
            for each in reversed(self._files.load(workspace)):
                self._store.put(each)

    def change_adapter(self, adapter: str) -> None:
        """The model has another LoRA adapter from now on, of this key: nothing that was read before serves with it."""
        self._put_aside(0)
        self._drop(0)
        self._adapter = adapter

    def turn_to(self, prompt: Sequence[int]) -> None:
        """Let the sequence hold as much of what ``prompt`` begins with as was ever read and is still kept."""
        held = self._generator.held
        common = common_prefix(held, prompt)
        if not held:
            self._reader = self._workspace
        if common >= len(prompt) - WORTH:
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
        if self._shift:
            self._generator.reuse(prompt, LEAST_MOVED)
        if self._reader != self._workspace:
            self._drop(common_prefix(self._generator.held, prompt))
        self._reader = self._workspace

    def _drop(self, common: int) -> None:
        """Hold no more than that, whatever becomes of the prompt: the rest must not be kept with its workspace."""
        held = self._generator.held[:common]
        self._sequence.rollback(common)
        self._generator.hold(held)

    def _put_aside(self, common: int) -> None:
        """Keep what is held, if much of it is about to be lost."""
        held = self._generator.held
        if len(held) - common < WORTH:
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
        """Whether anything is kept for the next run."""
        return self._files is not None

    def forget(self, workspace: str) -> None:
        """Drop all that was read in a workspace.

        Raises:
            OSError: what was kept of it cannot be deleted.
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
        """Keep what was read of every workspace for the next run."""
        if self._files is None:
            return
        self._put_aside(0)
        for workspace in self._store.workspaces() - {""}:
            self._files.save(workspace, self._store.of(workspace))
