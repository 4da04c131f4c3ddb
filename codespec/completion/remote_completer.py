"""A completer of an engine elsewhere, and one on this machine for what is not sent there, and while it is away."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import Any, TypeVar

from codespec.completion.completer import Completer
from codespec.completion.request import Completion, Request
from codespec.engine.engine import Engine, Generating
from codespec.privacy.public_files import PublicFiles
from codespec.protocols import Cancel, CodespecError
from codespec.remote.errors import Away, Private, RemoteError

T = TypeVar("T")

QUICK_S = 0.5
"""A connection that fails within this time, because nothing listens, is tried with the next request again."""
PATIENCE = 20
"""Another one, because nothing answers, is tried again after this many times as long as that took."""

_log = logging.getLogger("codespec")


class RemoteCompleter:
    """Completes with an engine elsewhere; see ``Completer``. Documents that hold secrets, or that the workspace
    ignores, are not sent there: like everything while that engine is away, a model on this machine completes them.

    Every other request asks the engine elsewhere first, which costs a millisecond where nothing listens, and nothing
    where it is known not to answer: so the first request after it is back is answered by it again.

    Args:
        connect: makes the completer of the engine elsewhere.
        load_local: makes the other one; None: there is none, and nothing is completed in its place.

    Raises:
        CodespecError: the engine elsewhere is away, and the model on this machine cannot be loaded.
        Refused: the engine elsewhere refuses, and there is to be no model on this machine.

    Attributes:
        problems: a sentence each for the user.
    """

    def __init__(self, connect: Callable[[], Completer], load_local: Callable[[], Completer] | None) -> None:
        self._connect, self._load_local = connect, load_local
        self._public = PublicFiles()
        self._remote: Completer | None = None
        self._local: Completer | None = None
        self._away = ""
        self._next_try = 0.0
        self.problems: list[str] = []
        self._running: Completer | None = None
        try:
            self.problems += self._either(lambda completer: completer).problems
        except Away as error:
            self.problems.append(str(error))

    @property
    def engine(self) -> Engine:
        """That answered last.

        Raises:
            Away: none has.
        """
        if self._running is None:
            raise Away(self._away)
        return self._running.engine

    def complete(self, request: Request, cancel: Cancel | None = None) -> list[Completion]:
        """As ``Completer.complete``."""
        if self._may_send(request):
            return self._either(lambda completer: completer.complete(request, cancel))
        return self._here().complete(request, cancel) if self._load_local is not None else []

    def prefill(self, request: Request, cancel: Cancel | None = None) -> int:
        """As ``Completer.prefill``."""
        if self._may_send(request):
            return self._either(lambda completer: completer.prefill(request, cancel))
        return self._here().prefill(request, cancel) if self._load_local is not None else 0

    def _may_send(self, request: Request) -> bool:
        return self._public.may_send(request.path, request.workspace, request.text, request.offset)

    def generate(self, prompt: str, *arguments: Any, **options: Any) -> Iterator[Completion]:
        """As ``Completer.generate``; the texts come from one engine, all of them. Token ids are an engine's own: see
        ``answer``."""
        yield from self._either(lambda completer: list(completer.generate(prompt, *arguments, **options)))

    def answer(
        self, work: Callable[[Completer], T], documents: Iterable[Request] = (), engine: Generating | None = None
    ) -> T:
        """What work gives with the completer of the engine elsewhere: while that is away, or where it must not get one
        of the ``documents``, with the one on this machine, from the beginning.

        Args:
            engine: with which the work was begun; None: it was not.

        Raises:
            RemoteError: as ``work``, or it must not get a document, and there is no model on this machine.
        """
        begun_here = engine is not None and self._local is not None and engine is self._local.engine
        if not begun_here and all(map(self._may_send, documents)):
            return self._either(work)
        if self._load_local is None:
            raise Private
        return work(self._here())

    def _either(self, work: Callable[[Completer], T]) -> T:
        try:
            self._running = remote = self._connected()
            result = work(remote)
        except Private:
            if self._load_local is None:
                raise
        except RemoteError as error:
            self._lost(error)
            if self._load_local is None:
                raise
        else:
            self._away = ""
            return result
        return work(self._here())

    def _here(self) -> Completer:
        self._running = local = self._loaded()
        return local

    def _connected(self) -> Completer:
        if self._remote is None:
            began = monotonic()
            if began < self._next_try:
                raise Away(self._away)
            try:
                self._remote = self._connect()
            except RemoteError:
                took = monotonic() - began
                self._next_try = began if took < QUICK_S else began + (1 + PATIENCE) * took
                raise
        return self._remote

    def _lost(self, error: RemoteError) -> None:
        if not self._away and self._load_local is not None:
            while_away = "until it answers again, the model on this machine does"
            _log.warning(
                "%s; %s", error, while_away if isinstance(error, Away) else "the model on this machine answers"
            )
        self._away = str(error)

    def _loaded(self) -> Completer:
        if self._local is None:
            assert self._load_local is not None
            self._local = self._load_local()
        return self._local

    def _both(self) -> list[Completer]:
        return [each for each in (self._remote, self._local) if each is not None]

    @property
    def reading(self) -> bool:
        """As ``Completer.reading``."""
        return self._running is not None and self._running.reading

    def status(self, languages: Iterable[str] = ()) -> dict[str, Any]:
        """As ``Completer.status``, of the engine that answered last; ``away``: why that is not the one elsewhere."""
        status = self._running.status(languages) if self._running is not None else {}
        return {**status, **({"away": self._away} if self._away else {})}

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
            if self._load_local is not None:
                self._loaded()
        except CodespecError as error:  # a request that needs it will say so
            _log.debug("the model on this machine cannot be loaded: %s", error)
        try:
            return all(go_on() and each.idle(go_on) for each in self._both())
        except RemoteError as error:
            self._lost(error)
            return True

    def abort(self) -> None:
        """Stop the running request; from any thread."""
        for each in self._both():
            each.abort()

    def close(self) -> None:
        """Save what was learnt and free the models."""
        for each in self._both():
            each.close()
