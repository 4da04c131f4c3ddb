"""The jobs and tasks of the decode thread, and the protocol of the worker that carries them out."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from codespec.completion.request import Request
    from codespec.protocols import Cancel

logger = logging.getLogger(__name__)


class Worker(Protocol):
    """The interface that the decode thread calls, each method as in ``Completer``; it passes requests on unread."""

    def complete(self, request: Any, cancel: Cancel) -> Any:
        """Answer a request; None where it was stopped."""
        ...

    def prefill(self, request: Any, cancel: Cancel) -> Any:
        """Prefill the prompt of a request."""
        ...

    def idle(self, go_on: Callable[[], bool]) -> bool:
        """Use idle time; whether nothing is left to do."""
        ...

    @property
    def reading(self) -> bool:
        """Whether a prompt is being prefilled; from any thread."""
        ...

    def status(self, languages: Iterable[str] = ()) -> dict[str, Any]:
        """The status as plain data, with the ``drafts`` of languages; from any thread."""
        ...

    def abort(self) -> None:
        """Stop the running request; from any thread."""
        ...

    def close(self) -> None:
        """Free everything."""
        ...


class Completes(Worker, Protocol):
    """A completer of a language server: ``Completer`` itself, or the client of one in another process."""

    def learn(self, text: str, path: str, language: str, workspace: str = "", offset: int | None = None) -> None:
        """Learn the n-grams of a document."""
        ...

    def accepted(self, request: Request, text: str) -> None:
        """Learn the n-grams of an accepted completion."""
        ...

    def forget(self, workspace: str) -> None:
        """Delete the n-grams and KV caches of a workspace."""
        ...


@dataclass(eq=False)
class Job:
    """A request on its way through the decode thread.

    Attributes:
        document: the jobs of one document replace each other.
        future: the completions; None where the request was superseded or given up; or the completer's exception.
        cancel: set once nobody wants the answer any more.
        ahead: nobody waits for it yet: every other request goes first, and stops it.
        prefill: only the prompt is to be decoded; there are no completions.
        key: equal for jobs that ask for the same; None equals no other.
        stopped: when it was stopped, in seconds of ``perf_counter``; 0 if it was not.
        reading: whether it was stopped while a prompt was read.
    """

    document: str
    request: Any
    ahead: bool = False
    prefill: bool = False
    key: Any = None
    future: Future[Any] = field(default_factory=Future)
    cancel: threading.Event = field(default_factory=threading.Event)
    stopped: float = 0.0
    reading: bool = False

    @property
    def succeeded(self) -> bool:
        """Whether the completions are there."""
        done = self.future.done() and not self.future.cancelled() and self.future.exception() is None
        return done and self.future.result() is not None

    def resolve(self, completions: Any) -> None:
        """Set the answer, unless there is one."""
        try:
            if not self.future.done():
                self.future.set_result(completions)
        except InvalidStateError:
            pass  # cancelled between the two lines

    def fail(self, error: Exception) -> None:
        """Set an error as the answer, unless there is an answer."""
        try:
            if not self.future.done():
                self.future.set_exception(error)
        except InvalidStateError:
            pass


@dataclass(eq=False)
class Task:
    """A call with the completer for when no request waits.

    Attributes:
        future: resolves once the call has returned, or will never be made.
    """

    work: Callable[[Any], None]
    future: Future[None] = field(default_factory=Future)

    def run(self, completer: Worker) -> None:
        """Make the call; exceptions are logged."""
        try:
            self.work(completer)
        except Exception:
            logger.exception("a task of the decode thread failed")
        self.end()

    def end(self) -> None:
        """Resolve the future."""
        try:
            if not self.future.done():
                self.future.set_result(None)
        except InvalidStateError:
            pass  # cancelled between the two lines
