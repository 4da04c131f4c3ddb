"""The engines of the model process: each model is loaded once, however many completers use it."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codespec.completion.completer import Completer
from codespec.completion.load import completer_of, load_edit_engine, load_engine
from codespec.completion.remote_completer import RemoteCompleter
from codespec.config import Config
from codespec.engine.engine import Engine
from codespec.models.registry import find_edit_model, find_target
from codespec.protocols import Cancel, CodespecError
from codespec.worker.edit_model import EditModel

logger = logging.getLogger(__name__)

KEPT_S = 60.0
"""Seconds that an unused model stays in memory, so that an editor can be restarted, or settings changed."""


@dataclass(eq=False)
class _Loaded:
    """An engine, or a model of next edits, and what of those who use it has work for idle time."""

    engine: Engine | EditModel
    users: dict[object, Completer | EditModel] = field(default_factory=dict)
    unused_since: float = 0.0


class Models:
    """The engines in memory; the worker of the model process's decode thread.

    Only ``release``, ``abort``, ``count`` and ``overdue`` may be called from other threads.
    """

    def __init__(self, load: Callable[[Config, Callable[[str, int], None] | None], Engine] = load_engine) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._loaded: dict[tuple[Any, ...], _Loaded] = {}
        self._running: Cancel | None = None

    @property
    def count(self) -> int:
        """How many targets are loaded."""
        with self._lock:
            return sum(not isinstance(each.engine, EditModel) for each in self._loaded.values())

    def completer(
        self, user: object, config: Config, progress: Callable[[str, int], None]
    ) -> Completer | RemoteCompleter:
        """A completer with these settings; its engine is loaded unless it is there.

        Args:
            user: owner of the completer until ``release``; an earlier completer of the same user is dropped.

        Raises:
            CodespecError: the model cannot be loaded.
        """
        self.release(user)
        return completer_of(config, lambda settings: self._completer(user, settings, progress))

    def _completer(self, user: object, config: Config, progress: Callable[[str, int], None]) -> Completer:
        loaded, engine = self._engine(config, progress)
        completer = Completer(engine, config, patient=False)
        with self._lock:
            loaded.users[user] = completer
        return completer

    def edit_model(self, user: object, config: Config) -> EditModel:
        """The model of next edits of these settings, for this user until ``release``; its first request loads it.

        Raises:
            CodespecError: there is no such model.
        """
        key = edit_key(config)
        loaded = self._loaded.get(key)
        model = loaded.engine if loaded is not None else EditModel(lambda: load_edit_engine(config))
        assert isinstance(model, EditModel)
        with self._lock:
            self._loaded.setdefault(key, _Loaded(model)).users[user] = model
        return model

    def load_ahead(self, config: Config) -> None:
        """Load the engine of these settings ahead of the first request. A failure is reported to who asks for it."""
        with contextlib.suppress(CodespecError):
            self._engine(config, lambda text, percent: None)[1].warm_up()

    def _engine(self, config: Config, progress: Callable[[str, int], None]) -> tuple[_Loaded, Engine]:
        key = engine_key(config)
        loaded = self._loaded.get(key)
        if loaded is None:
            self.free_unused(0.0)  # there may not be room for both
            loaded = _Loaded(self._load(config, progress), unused_since=time.monotonic())
            with self._lock:
                self._loaded[key] = loaded
        assert not isinstance(loaded.engine, EditModel)
        return loaded, loaded.engine

    def release(self, user: object) -> None:
        """Drop the completers of a user."""
        with self._lock:
            for loaded in self._loaded.values():
                if loaded.users.pop(user, None) is not None:
                    loaded.unused_since = time.monotonic()

    def free_unused(self, kept_s: float = KEPT_S) -> None:
        """Free the engines that nobody has used for ``kept_s`` seconds."""
        latest = time.monotonic() - kept_s
        with self._lock:
            old = [key for key, each in self._loaded.items() if not each.users and each.unused_since <= latest]
            freed = [self._loaded.pop(key) for key in old]
        for each in freed:
            each.engine.close()

    def has_unused(self, kept_s: float = KEPT_S) -> bool:
        """Whether there are such engines."""
        latest = time.monotonic() - kept_s
        with self._lock:
            return any(not each.users and each.unused_since <= latest for each in self._loaded.values())

    @contextlib.contextmanager
    def running(self, cancel: Cancel) -> Iterator[None]:
        """While something runs that ends soon after ``cancel`` is set."""
        self._running = cancel
        try:
            yield
        finally:
            self._running = None

    @property
    def overdue(self) -> Cancel | None:
        """The flag of what runs although it was to stop."""
        running = self._running
        return running if running is not None and running.is_set() else None

    # What the decode thread calls.

    @property
    def reading(self) -> bool:
        """Whether a prompt is being prefilled."""
        with self._lock:
            return any(each.engine.reading for each in self._loaded.values())

    def idle(self, go_on: Callable[[], bool]) -> bool:
        """Let every completer use idle time."""
        with self._lock:
            completers = [each for loaded in self._loaded.values() for each in loaded.users.values()]
        return all(go_on() and completer.idle(go_on) for completer in completers)

    def abort(self) -> None:
        """Stop the running call: of the engines that do not run there is nothing to stop."""
        with self._lock:
            engines = [each.engine for each in self._loaded.values()]
        for engine in engines:
            engine.abort()

    def close(self) -> None:
        """Free all engines; one that cannot be freed is logged, and the others are freed."""
        with self._lock:
            loaded, self._loaded = list(self._loaded.values()), {}
        for each in loaded:
            try:
                each.engine.close()
            except (OSError, CodespecError):
                logger.exception("a model could not be freed")


def engine_key(config: Config) -> tuple[Any, ...]:
    """The settings, and the state of the file, that two completers must have in common to share an engine.

    Raises:
        CodespecError: there is no such model.
    """
    if config.remote.kind:
        return config.remote, config.draft_length
    path = find_target(config.target.path)
    return (*_file(path), config.target, config.draft_length, config.draft_memory_mib, config.cache)


def edit_key(config: Config) -> tuple[Any, ...]:
    """The same of two users of a model of next edits.

    Raises:
        CodespecError: there is no such model.
    """
    return ("edits", *_file(find_edit_model(config.edits.model)), config.target.threads, config.target.gpu_layers)


def _file(path: Path) -> tuple[Any, ...]:
    """Which file it is, and its state."""
    try:
        status = path.stat()
    except OSError:  # loading it will say what is wrong
        return (str(path),)
    return str(path.resolve()), status.st_size, status.st_mtime_ns
