"""A completer of an engine elsewhere, and one on this machine that answers while that is away."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import Any, TypeVar

from codespec.completion.completer import Completer
from codespec.completion.request import Completion, Request
from codespec.engine.engine import Engine
from codespec.grammar import Grammar
from codespec.protocols import Cancel, CodespecError, Limits
from codespec.remote.errors import Away, RemoteError

T = TypeVar("T")

PATIENCE = 20
"""A connection that failed is tried again after this many times as long as that took: at once where nothing listened,
not with every request where nothing answered."""

_log = logging.getLogger("codespec")


class FallbackCompleter:
    """Completes with an engine elsewhere, and with a model on this machine while that one is away; see ``Completer``.

    Every request asks the engine elsewhere first, which costs a millisecond where nothing listens, and nothing where
    it is known not to answer: so the first request after it is back is answered by it again.

    Args:
        connect: makes the completer of the engine elsewhere.
        load_local: makes the other one.

    Raises:
        CodespecError: the engine elsewhere is away, and the model on this machine cannot be loaded.

    Attributes:
        problems: a sentence each for the user.
    """

    def __init__(self, connect: Callable[[], Completer], load_local: Callable[[], Completer]) -> None:
        self._connect, self._load_local = connect, load_local
        self._remote: Completer | None = None
        self._local: Completer | None = None
        self._away = ""
        self._next_try = 0.0
        self.problems: list[str] = []
        self._running: Completer = self._either(lambda completer: completer)
        self.problems += self._running.problems

    @property
    def engine(self) -> Engine:
        """That answered last."""
        return self._running.engine

    def complete(self, request: Request, cancel: Cancel | None = None) -> list[Completion]:
        """As ``Completer.complete``."""
        return self._either(lambda completer: completer.complete(request, cancel))

    def prefill(self, request: Request, cancel: Cancel | None = None) -> int:
        """As ``Completer.prefill``."""
        return self._either(lambda completer: completer.prefill(request, cancel))

    def generate(
        self,
        prompt: str,
        grammar: Grammar | None = None,
        count: int = 1,
        limits: Limits | None = None,
        draft: str = "auto",
        language: str = "python",
        file_name: str = "",
    ) -> Iterator[Completion]:
        """As ``Completer.generate``; the texts come from one engine, all of them."""
        texts = self._either(
            lambda completer: list(completer.generate(prompt, grammar, count, limits, draft, language, file_name))
        )
        yield from texts

    def _either(self, work: Callable[[Completer], T]) -> T:
        try:
            self._running = self._connected()
            result = work(self._running)
        except RemoteError as error:
            self._lost(str(error))
        else:
            self._away = ""
            return result
        self._running = self._loaded()
        return work(self._running)

    def _connected(self) -> Completer:
        if self._remote is None:
            began = monotonic()
            if began < self._next_try:
                raise Away(self._away)
            try:
                self._remote = self._connect()
            except RemoteError:
                self._next_try = monotonic() + PATIENCE * (monotonic() - began)
                raise
        return self._remote

    def _lost(self, why: str) -> None:
        if not self._away:
            _log.warning("%s; until it answers again, the model on this machine does", why)
        self._away = why

    def _loaded(self) -> Completer:
        if self._local is None:
            self._local = self._load_local()
        return self._local

    def _both(self) -> list[Completer]:
        return [each for each in (self._remote, self._local) if each is not None]

    @property
    def reading(self) -> bool:
        """As ``Completer.reading``."""
        return self._running.reading

    def status(self, languages: Iterable[str] = ()) -> dict[str, Any]:
        """As ``Completer.status``, of the engine that answered last; ``away``: why that is not the one elsewhere."""
        return {**self._running.status(languages), **({"away": self._away} if self._away else {})}

    def learn(self, text: str, path: str, language: str, workspace: str = "", offset: int | None = None) -> None:
        """As ``Completer.learn``."""
        for each in self._both():
            each.learn(text, path, language, workspace, offset)

    def accepted(self, request: Request, text: str) -> None:
        """As ``Completer.accepted``."""
        for each in self._both():
            each.accepted(request, text)

    def forget(self, workspace: str) -> None:
        """As ``Completer.forget``."""
        for each in self._both():
            each.forget(workspace)

    def idle(self, go_on: Callable[[], bool]) -> bool:
        """As ``Completer.idle``; also loads the model on this machine, so that nobody waits for it later."""
        try:
            self._loaded()
        except CodespecError as error:  # a request that needs it will say so
            _log.debug("the model on this machine cannot be loaded: %s", error)
        try:
            return all(go_on() and each.idle(go_on) for each in self._both())
        except RemoteError as error:
            self._lost(str(error))
            return True

    def hasten(self, cancel: Cancel) -> None:
        """Nothing: it runs as fast as it can."""

    def abort(self) -> None:
        """Stop the running request; from any thread."""
        for each in self._both():
            each.abort()

    def close(self) -> None:
        """Save what was learnt and free the models."""
        for each in self._both():
            each.close()
