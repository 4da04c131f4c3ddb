"""Draft models in memory: loaded while others serve, the ones longest unused let go."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from codespec.completion.learnt import ModelCosts
from codespec.draft.costs import RunningCosts
from codespec.draft.foreign import ForeignDraft
from codespec.draft.model import ModelDraft
from codespec.llama.context import Context
from codespec.llama.model import Model
from codespec.protocols import CodespecError

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Loaded:
    """A draft model in memory.

    Attributes:
        running: what its passes cost, as far as that is known.
        costs: measures that; None for one with another vocabulary, which is not measured.
        note: what the user should know about it; empty: nothing.
    """

    model: Model
    context: Context
    draft: ModelDraft | ForeignDraft
    running: RunningCosts
    costs: ModelCosts | None = None
    note: str = ""

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        return self.model.size + self.model.kv_bytes_per_token * self.context.length

    def close(self) -> None:
        """Free it."""
        self.context.close()
        self.model.close()


class DraftModels:
    """The draft models of one target. For one thread; what loads them in the background is its own affair.

    Args:
        load: gives a model, or raises CodespecError; may run in any thread. It is to ask its second argument now and
            then whether it should go on.
        memory: bytes that all of them may take; the one in use may take more.
        gone: called with what is let go, before it is freed.
    """

    def __init__(
        self,
        load: Callable[[Path, Callable[[], bool]], Loaded],
        memory: int,
        gone: Callable[[Path, Loaded], None],
    ) -> None:
        self._load, self._memory, self._gone = load, memory, gone
        self._held: OrderedDict[Path, Loaded] = OrderedDict()
        self._coming: dict[Path, Future[Loaded]] = {}
        self._closing = threading.Event()

    def __iter__(self) -> Iterator[Loaded]:
        return iter(self._held.values())

    def __getitem__(self, path: Path) -> Loaded:
        return self._held[path]

    def get(self, path: Path, wait: bool) -> Loaded | None:
        """A model, loaded if it is not; None while it still loads and is not waited for.

        Raises:
            CodespecError: it cannot be loaded.
        """
        if path not in self._held:
            if wait and path not in self._coming:
                self._add(path, self._load(path, lambda: True))
            else:
                self._await(path, wait)
        if path in self._held:
            self._held.move_to_end(path)
        return self._held.get(path)

    def _await(self, path: Path, wait: bool) -> None:
        future = self._coming.get(path)
        if future is None:
            future = self._coming[path] = Future()
            name = f"load {path.name}"
            threading.Thread(target=self._fill, args=(path, future), name=name, daemon=True).start()
        if wait or future.done():
            del self._coming[path]
            self._add(path, future.result())

    def _fill(self, path: Path, future: Future[Loaded]) -> None:
        try:
            loaded = self._load(path, lambda: not self._closing.is_set())
        except Exception as error:
            future.set_exception(error)
            return
        if self._closing.is_set():
            loaded.close()
            future.set_exception(CodespecError("the engine was closed"))
        else:
            future.set_result(loaded)

    def _add(self, path: Path, loaded: Loaded) -> None:
        self._held[path] = loaded
        while len(self._held) > 1 and sum(each.size for each in self._held.values()) > self._memory:
            oldest, gone = self._held.popitem(last=False)
            _log.debug("%s: let go for others", oldest)
            self._gone(oldest, gone)
            gone.close()

    def close(self) -> None:
        """Free all of them; waits for those that are being loaded."""
        self._closing.set()
        for future in self._coming.values():
            if future.exception() is None:
                future.result().close()
        self._coming.clear()
        for loaded in self._held.values():
            loaded.close()
        self._held.clear()
