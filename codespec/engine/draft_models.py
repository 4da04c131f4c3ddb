"""Draft models in memory: loaded in the background while others serve; those longest unused are freed."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from codespec.draft.costs import RunningCosts
from codespec.draft.model import ModelDraft
from codespec.draft.other_vocabulary import OtherVocabularyDraft
from codespec.engine.adapters import Adapters, file_state
from codespec.engine.calibration import ModelCosts
from codespec.llama.context import Context
from codespec.llama.devices import ResolvedSetting
from codespec.llama.model import Model
from codespec.protocols import CodespecError

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Loaded:
    """A draft model in memory.

    Attributes:
        running: the costs of its forward passes, as far as they are known.
        placed: how many layers are on a GPU.
        adapters: LoRA adapters of its context.
        costs: measures the costs; None for a model with another vocabulary, which is not measured.
        note: a message about it for the user; empty: none.
    """

    model: Model
    context: Context
    draft: ModelDraft | OtherVocabularyDraft
    running: RunningCosts
    placed: ResolvedSetting
    adapters: Adapters
    costs: ModelCosts | None = None
    note: str = ""

    @property
    def size(self) -> int:
        """About how many bytes weights and KV cache take."""
        return self.model.size + self.model.kv_bytes_per_token * self.context.length

    def close(self) -> None:
        """Free context, adapters and weights; do not use the draft afterwards."""
        self.context.close()
        self.adapters.close()
        self.model.close()


class OwnHeads(Loaded):
    """The target's own heads as its draft: the model is the target's."""

    @property
    def size(self) -> int:
        """Bytes of memory beside the target, about: the cache of a layer."""
        return self.model.kv_bytes_per_token * self.context.length

    def close(self) -> None:
        """Free their context."""
        self.context.close()
        self.adapters.close()


class DraftModels:
    """The draft models of one target. For one thread; loads models in threads of its own.

    Args:
        load: loads a model, or raises CodespecError; runs in any thread, and asks its second argument now and then
            whether to go on.
        memory: bytes that all models together may take; the one in use may take more.
        gone: called with a model that is about to be freed.
    """

    def __init__(
        self,
        load: Callable[[Path, Callable[[], bool]], Loaded],
        memory: int,
        gone: Callable[[Path, Loaded], None],
    ) -> None:
        self._load, self._memory, self._gone = load, memory, gone
        self._held: OrderedDict[Path, Loaded] = OrderedDict()
        self._states: dict[Path, object] = {}  # of the files, as they were loaded, or could not be
        self._failed: dict[Path, CodespecError] = {}
        self._coming: dict[Path, Future[Loaded]] = {}
        self._closing = threading.Event()

    def __iter__(self) -> Iterator[Loaded]:
        return iter(self._held.values())

    def __getitem__(self, path: Path) -> Loaded:
        return self._held[path]

    def peek(self, path: Path | None) -> Loaded | None:
        """A model if it is in memory; from any thread."""
        return self._held.get(path) if path is not None else None

    def get(self, path: Path, wait: bool) -> Loaded | None:
        """A model, loaded if it is not; None while it still loads and is not waited for.

        Raises:
            CodespecError: it cannot be loaded.
        """
        self._collect()
        if path not in self._coming and self._states.get(path) != file_state(path):  # new, or another file by now
            self._failed.pop(path, None)
            if path in self._held:
                self._let_go(path)
            self._states[path] = file_state(path)
            self._begin(path)
        if wait and path in self._coming:
            self._coming[path].exception()  # waits
        self._collect()
        if path in self._failed:
            raise self._failed[path]
        if path in self._held:
            self._held.move_to_end(path)
            self._shrink()
        return self._held.get(path)

    def _begin(self, path: Path) -> None:
        future: Future[Loaded] = Future()
        name = f"load {path.name}"
        threading.Thread(target=self._fill, args=(path, future), name=name, daemon=True).start()
        self._coming[path] = future  # now: where no thread is to be had, nobody waits for it

    def _collect(self) -> None:
        """Take over the models that have finished loading, wanted or not by now."""
        for path in [path for path, future in self._coming.items() if future.done()]:
            error = self._coming[path].exception()
            loaded = self._coming.pop(path)
            if error is None:
                self._held[path] = loaded.result()
            elif isinstance(error, CodespecError):
                self._failed[path] = error
            else:
                self._failed[path] = CodespecError(f"{path}: cannot be loaded ({error})")

    def _fill(self, path: Path, future: Future[Loaded]) -> None:
        try:
            loaded = self._load(path, lambda: not self._closing.is_set())
        except BaseException as error:  # a panic of native code is no Exception
            future.set_exception(error)
            return
        if self._closing.is_set():
            loaded.close()
            future.set_exception(CodespecError("the engine was closed"))
        else:
            future.set_result(loaded)

    def _shrink(self) -> None:
        while len(self._held) > 1 and sum(each.size for each in self._held.values()) > self._memory:
            self._let_go(next(iter(self._held)))

    def _let_go(self, path: Path) -> None:
        _log.debug("%s: let go", path)
        gone = self._held.pop(path)
        self._states.pop(path, None)
        self._gone(path, gone)
        gone.close()

    def close(self) -> None:
        """Free all models; waits for those that are being loaded."""
        self._closing.set()
        for future in self._coming.values():
            if future.exception() is None:
                future.result().close()
        self._coming.clear()
        for loaded in self._held.values():
            loaded.close()
        self._held.clear()
