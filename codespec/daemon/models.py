"""The models of the model process: each loaded once, whoever uses it."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from codespec.completion.completer import Completer
from codespec.completion.load import load_engine
from codespec.completion.local import LocalEngine
from codespec.config import Config
from codespec.models.registry import find_target
from codespec.protocols import Cancel, CodespecError

logger = logging.getLogger(__name__)

KEPT_S = 60.0
"""How long a model that nobody uses any more stays, so that an editor can be started again, or settings changed."""


@dataclass(eq=False)
class Work:
    """Something that the decode thread is to do: what it calls a request.

    Attributes:
        run: given a flag that is set once nobody wants it any more.
        stops: it ends soon after that flag is set.
    """

    run: Callable[[Cancel], Any]
    stops: bool = True


@dataclass(eq=False)
class _Loaded:
    """An engine and the completers of those who use it."""

    engine: LocalEngine
    users: dict[object, Completer] = field(default_factory=dict)
    unused_since: float = 0.0


class Models:
    """Every engine that is in use, and what the decode thread takes for its completer.

    Only ``release``, ``abort``, ``count`` and ``overdue`` may be called from other threads.
    """

    def __init__(self, load: Callable[[Config, Callable[[str, int], None] | None], LocalEngine] = load_engine) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._loaded: dict[tuple[Any, ...], _Loaded] = {}
        self._running: tuple[Work, Cancel] | None = None

    @property
    def count(self) -> int:
        """How many targets are loaded."""
        return len(self._loaded)

    def completer(self, user: object, config: Config, progress: Callable[[str, int], None]) -> Completer:
        """A completer with these settings; its engine is loaded unless it is there.

        Args:
            user: who has it until ``release``; takes the place of the one it had.

        Raises:
            CodespecError: the model cannot be loaded.
        """
        self.release(user)
        loaded = self._engine(config, progress)
        completer = Completer(loaded.engine, config, patient=False)
        with self._lock:
            loaded.users[user] = completer
        return completer

    def load_ahead(self, config: Config) -> None:
        """Load the engine of these settings, which is most likely asked for next. Where that fails, whoever asks for it
        will hear why."""
        with contextlib.suppress(CodespecError):
            self._engine(config, lambda text, percent: None).engine.warm_up()

    def _engine(self, config: Config, progress: Callable[[str, int], None]) -> _Loaded:
        key = engine_key(config)
        loaded = self._loaded.get(key)
        if loaded is None:
            self.free_unused(0.0)  # there may not be room for both
            loaded = _Loaded(self._load(config, progress), unused_since=time.monotonic())
            with self._lock:
                self._loaded[key] = loaded
        return loaded

    def release(self, user: object) -> None:
        """Somebody needs its completer no longer."""
        with self._lock:
            for loaded in self._loaded.values():
                if loaded.users.pop(user, None) is not None:
                    loaded.unused_since = time.monotonic()

    def free_unused(self, kept_s: float = KEPT_S) -> None:
        """Free what nobody has used for ``kept_s`` seconds."""
        latest = time.monotonic() - kept_s
        with self._lock:
            old = [key for key, each in self._loaded.items() if not each.users and each.unused_since <= latest]
            freed = [self._loaded.pop(key) for key in old]
        for each in freed:
            each.engine.close()

    def has_unused(self, kept_s: float = KEPT_S) -> bool:
        """Whether there is something to free."""
        latest = time.monotonic() - kept_s
        with self._lock:
            return any(not each.users and each.unused_since <= latest for each in self._loaded.values())

    @property
    def overdue(self) -> Work | None:
        """What runs although it was to stop."""
        running = self._running
        return running[0] if running is not None and running[0].stops and running[1].is_set() else None

    # What the decode thread calls.

    def complete(self, work: Work, cancel: Cancel) -> Any:
        """Do it."""
        self._running = work, cancel
        try:
            return work.run(cancel)
        finally:
            self._running = None

    def prefill(self, work: Work, cancel: Cancel) -> Any:
        """Do it, though it may be stopped by whatever comes."""
        return self.complete(work, cancel)

    @property
    def reading(self) -> bool:
        """Whether a prompt is being read."""
        with self._lock:
            return any(each.engine.reading for each in self._loaded.values())

    def idle(self, go_on: Callable[[], bool]) -> bool:
        """Let every completer use the time."""
        with self._lock:
            completers = [each for loaded in self._loaded.values() for each in loaded.users.values()]
        return all(go_on() and completer.idle(go_on) for completer in completers)

    def hasten(self, work: Work) -> None:
        """Nothing: it runs as fast as it can."""

    def abort(self) -> None:
        """Stop what runs; of the others there is nothing to stop."""
        with self._lock:
            engines = [each.engine for each in self._loaded.values()]
        for engine in engines:
            engine.abort()

    def status(self, languages: Iterable[str] = ()) -> dict[str, Any]:
        """Nothing: each completer has its own."""
        return {}

    def close(self) -> None:
        """Free everything."""
        with self._lock:
            loaded, self._loaded = list(self._loaded.values()), {}
        for each in loaded:
            try:
                each.engine.close()
            except (OSError, CodespecError):
                logger.exception("a model could not be freed")


def engine_key(config: Config) -> tuple[Any, ...]:
    """What has to be the same for two completers to share an engine, the file included.

    Raises:
        CodespecError: there is no such model.
    """
    path = find_target(config.target.path)
    try:
        status = path.stat()
        file: tuple[Any, ...] = (str(path.resolve()), status.st_size, status.st_mtime_ns)
    except OSError:  # loading it will say what is wrong
        file = (str(path),)
    return (*file, config.target, config.draft_length, config.draft_memory_mib, config.cache)
